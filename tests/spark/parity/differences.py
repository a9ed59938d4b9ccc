"""Where Spark may differ from the core, and why: whatever is not listed here is a defect.

Cases in which nothing can be compared are named where cases are taken: `cases` has the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.errors import PySparkException

from deltalog.errors import DeltaError, InvalidInputError, SchemaMismatchError
from deltalog.spark.session.failures import WrongTypeError

TOLD_BY_SPARK: Final[Mapping[type[DeltaError], tuple[str, ...]]] = {
    # Spark evaluates conditions and values, so what is wrong with them is Spark's to say: by an
    # error of PySpark whose condition begins with one of these.
    InvalidInputError: (
        "AMBIGUOUS_REFERENCE",
        "CAST_INVALID_INPUT",
        "CAST_OVERFLOW",
        "DATATYPE_MISMATCH",
        "UNRESOLVED_COLUMN",
    ),
    # An upsert converts values as a write does; Spark's MERGE casts them.
    SchemaMismatchError: ("CAST_INVALID_INPUT", "CAST_OVERFLOW"),
}

OTHER_ERRORS: Final[Mapping[str, tuple[type[Exception], str]]] = {
    "test_filters_that_came_out_empty_are_not_every_row": (
        WrongTypeError,
        "conditions of Delta's tables are SQL and columns: a list is none of them, empty or not",
    ),
    "test_new_columns_are_an_error_that_says_what_to_do": (
        InvalidInputError,
        # as in Delta, `*` is the table's columns there, in the core it is the source's
        "the source must have all columns of the table, and what it has more is ignored",
    ),
}
"""Case → what Spark says instead, and why."""


def may_say(found: Exception, instead_of: DeltaError, case: str) -> bool:
    """Whether Spark may refuse a statement by one error where the core does by another."""
    same = type(instead_of)
    if type(found) is same or (isinstance(found, same) and isinstance(found, PySparkException)):
        return True
    other = OTHER_ERRORS.get(case)
    if other is not None and type(found) is other[0]:
        return True
    if not isinstance(found, PySparkException):
        return False
    condition = found.getCondition() or ""
    return any(condition.startswith(one) for one in TOLD_BY_SPARK.get(type(instead_of), ()))
