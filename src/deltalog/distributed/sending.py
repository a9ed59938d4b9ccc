"""What is sent to tasks: values that are pickled together with the credentials that they need."""

from __future__ import annotations

import pickle
from typing import Any, Generic, TypeVar

from deltalog.storage.options import sent_to_tasks

T = TypeVar("T")


class Sent(Generic[T]):
    """A value for the tasks of the caller's own job.

    Credentials that a catalog has lent go with its pickle, as with no other; its repr shows nothing
    of it, since engines log what they send.

    Args:
        value: what the tasks get.
    """

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value: T = value

    def __reduce__(self) -> tuple[Any, ...]:
        with sent_to_tasks():
            return _received, (_dumps(self.value),)

    def __repr__(self) -> str:
        return f"Sent(a {type(self.value).__name__})"


def _dumps(value: object) -> bytes:
    """The pickle of a value; functions of the caller's, such as those for credentials, too."""
    try:
        import cloudpickle  # noqa: PLC0415  # Dask brings it
    except ImportError:
        return pickle.dumps(value)
    data: bytes = cloudpickle.dumps(value)
    return data


def _received(data: bytes) -> Sent[Any]:
    return Sent(pickle.loads(data))  # noqa: S301  # of the job that this task belongs to
