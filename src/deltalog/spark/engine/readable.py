"""Errors of Spark in terms of the user's statement: without the columns and plans of deltalog.

Spark evaluates conditions and values. Its errors keep their classes and conditions, for which
users' code may search.

Protocol: none
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark.errors import PySparkException

from deltalog.spark.session.failures import naming_files

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalog.operations.changes.request import ChangeMetrics, PlannedChange

_Result = TypeVar("_Result")
_OWN_COLUMN: Final = re.compile(r"(?:, )?(?:`\w+`\.)?`__deltalog\w*`")
_PLAN: Final = re.compile(r"(?:; line \d+ pos \d+)?;?\n+[+'*!]?'?[A-Z]\w+ .*", re.DOTALL)
"""The plan after a message of Spark's analysis, which contains deltalog's own columns."""
_CALL: Final = re.compile(r"\n== DataFrame ==\n.*? was called from\n\S*deltalog\S*\n?")
"""The place in deltalog's code that made an expression, in messages of Spark."""
_MESSAGE_ATTRIBUTES: Final = ("_desc", "_message")
"""The attributes with the messages of errors of a classic and of a remote session."""


@contextmanager
def readable_errors(attempt: str) -> Iterator[None]:
    """Make the messages of Spark's errors in the block name what was attempted.

    Args:
        attempt: the operation and the table, such as `run UPDATE on /data/t`.
    """
    try:
        with naming_files(attempt):
            yield
    except PySparkException as error:
        for name in _MESSAGE_ATTRIBUTES:
            text = getattr(error, name, None)
            if isinstance(text, str):
                setattr(error, name, readable(text, attempt))
        raise


def readable(text: str, attempt: str) -> str:
    """Return a message of Spark with what was attempted, without what only deltalog knows."""
    if text.startswith("cannot "):
        return text
    if "__deltalog" in text:
        text = _PLAN.sub("", text)
    text = _OWN_COLUMN.sub("", _CALL.sub("", text)).replace("[, ", "[")
    return f"cannot {attempt}: {text}"


@dataclass(frozen=True, slots=True)
class ReadablePlan:
    """A planned change whose errors are readable; see `PlannedChange`."""

    plan: PlannedChange
    attempt: str

    def apply(self) -> ChangeMetrics:
        """Apply the change."""
        return self._run(self.plan.apply)

    def preview(self) -> tuple[ChangeMetrics, pa.Table]:
        """Return the files that would change."""
        return self._run(self.plan.preview)

    def explain(self) -> str:
        """Describe how the rows are found."""
        return self._run(self.plan.explain)

    def _run(self, act: Callable[[], _Result]) -> _Result:
        with readable_errors(self.attempt):
            return act()
