"""How much memory and time the evaluation of an expression may take.

Whoever writes to a table evaluates the expressions that its author wrote: constraints, generated
columns and defaults. Some few characters of them can ask for terabytes, or for years:
`transform(sequence(1, 3000), x -> repeat('a', 1000000))`. So what they take is counted, and what
is too much for so many rows of so many bytes is refused.

Bytes are those of all values that are made on the way. Steps are about 10 nanoseconds each.
Expressions that callers write themselves have no budget.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

BASE_BYTES: Final = 512 << 20
BYTES_OF_ROW: Final = 4 << 10
BYTES_OF_BYTE: Final = 64
BASE_STEPS: Final = 200_000_000
STEPS_OF_ROW: Final = 10_000
STEPS_OF_BYTE: Final = 2_000
# What a kernel takes, however few rows there are.
STEPS_OF_CALL: Final = 1_000
# Of a list or a text, what a kernel makes in one step.
BYTES_OF_STEP: Final = 2


@dataclass(slots=True)
class RuleBudget:
    """What is left for the evaluation of an expression.

    Args:
        what: the rule, for the error.
        rows: the number of rows.
        most_bytes: that may be made.
        most_steps: that may be taken.
        num_bytes: that are left.
        steps: that are left.
    """

    what: str
    rows: int
    most_bytes: int
    most_steps: int
    num_bytes: float = 0
    steps: float = 0

    def __post_init__(self) -> None:
        """Start with all that may be spent."""
        self.num_bytes, self.steps = self.most_bytes, self.most_steps

    def spend(self, num_bytes: float, steps: float) -> None:
        """Take from what is left.

        Raises:
            InvalidInputError: too little is left.
        """
        self.num_bytes -= num_bytes
        self.steps -= steps
        if self.num_bytes < 0 or self.steps < 0:
            needs, limit = (
                ("bytes", self.most_bytes) if self.num_bytes < 0 else ("steps", self.most_steps)
            )
            raise InvalidInputError(
                f"cannot evaluate a rule of the table for {self.rows:,} row(s): it takes more than "
                f"{limit:,} {needs}, which is the most for as many; change or drop {self.what}"
            )


_ACTIVE: ContextVar[RuleBudget | None] = ContextVar("deltalog_expression_budget", default=None)


@contextmanager
def bounded(what: str, data: pa.RecordBatch) -> Iterator[RuleBudget]:
    """Count what evaluations in the block take.

    Args:
        what: the rule, for the error.
        data: the rows that it is evaluated for.
    """
    rows, size = max(data.num_rows, 1), data.nbytes
    budget = RuleBudget(
        what,
        rows,
        BASE_BYTES + BYTES_OF_ROW * rows + BYTES_OF_BYTE * size,
        BASE_STEPS + STEPS_OF_ROW * rows + STEPS_OF_BYTE * size,
    )
    token = _ACTIVE.set(budget)
    try:
        yield budget
    finally:
        _ACTIVE.reset(token)


def spend(num_bytes: float = 0, steps: float = 0) -> None:
    """Take from the budget of the evaluation, if it has one.

    Raises:
        InvalidInputError: too little is left; the message names the rule.
    """
    budget = _ACTIVE.get()
    if budget is not None:
        budget.spend(num_bytes, steps)


def is_bounded() -> bool:
    """Whether the evaluation has a budget."""
    return _ACTIVE.get() is not None


def spent_on(value: Any, *, is_made: bool) -> Any:
    """The value of a part of the expression, taken from the budget if it is made and not read."""
    budget = _ACTIVE.get()
    if budget is not None and is_made:
        if isinstance(value, pa.Scalar):
            budget.spend(size_of(value), STEPS_OF_CALL)
        else:
            budget.spend(value.nbytes, STEPS_OF_CALL + len(value) + value.nbytes / BYTES_OF_STEP)
    return value


def size_of(constant: Any) -> int:
    """About how many bytes a constant takes as an element of an array."""
    if not constant.is_valid:
        return 1
    if isinstance(constant, pa.StringScalar | pa.BinaryScalar):
        return 4 + int(constant.as_buffer().size)
    if isinstance(constant, pa.ListScalar):  # a map too
        values: Any = constant.values
        return 4 + (0 if values is None else int(values.nbytes))
    if isinstance(constant, pa.StructScalar):
        return sum(size_of(part) for part in constant.values()) + 1
    return 16
