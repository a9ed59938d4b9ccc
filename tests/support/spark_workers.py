"""How PySpark sends objects to its Python workers, and what a driver of its own starts with."""

from __future__ import annotations

import os
import pickle
from typing import Any, TypeVar

from pyspark.serializers import CloudPickleSerializer

Sent = TypeVar("Sent")
_serializer: Any = CloudPickleSerializer()  # it has no types


def packed(what: object) -> bytes:
    """An object as it goes to a worker."""
    data: bytes = _serializer.dumps(what)
    return data


def sent(what: Sent) -> Sent:
    """An object as a worker gets it."""
    found: Sent = pickle.loads(packed(what))
    return found


def own_environment(**more: str) -> dict[str, str]:
    """The environment of a process that starts a session: a remote one here leaves its traces."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_", "MASTER"))
    }
    return {**kept, **more}
