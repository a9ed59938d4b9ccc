"""`IDENTIFIER(…)` of Spark's SQL: a name as the value of a constant expression.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.query.lexer import TextParts, split
from deltalog.query.names import QualifiedName
from deltalog.query.relations import end_of_value
from deltalog.spark.session.formats import left_to_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltalog.statements.reader import Parameters

_CALLED: Final = re.compile(r"\bidentifier\s*\(", re.IGNORECASE)


def with_names(spark: SparkSession, text: Any, parameters: Parameters) -> tuple[str, Parameters]:
    """Return a statement with names in place of `IDENTIFIER(…)`, and the values it still needs.

    Whatever has no value without a row stays as it is: `identifier` may be the name of a table.

    Args:
        spark: the session, which knows the values of expressions.
        text: of the statement.
        parameters: values for `?` or `:name`.

    Cost: a call of Spark for each `IDENTIFIER(…)`.
    """
    if not (isinstance(text, str) and _CALLED.search(text)):
        return text, parameters
    try:
        words = split(text)
    except InvalidInputError:
        return text, parameters
    is_listed = isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes)
    left: list[Any] = list(parameters) if is_listed else []  # type: ignore[arg-type]
    kept: list[Any] = []
    parts = TextParts(text)
    place = 0
    while (word := words[place]).kind != "end":
        end = place + 1
        is_part = place > 0 and words[place - 1].says(".")
        if word.says("IDENTIFIER") and words[end].says("(") and not is_part:
            end = end_of_value(words, place)
        marks = sum(one.says("?") for one in words[place:end])
        given, left = left[:marks], left[marks:]
        name = None
        if end > place + 1:
            expression = text[words[place + 1].start : words[end - 1].end]
            name = _name(spark, expression, given if is_listed else parameters)
        if name is None:
            kept += given
        else:
            parts.replace(word.start, words[end - 1].end, str(name))
        place = end
    return parts.done(len(text)).text, [*kept, *left] if is_listed else parameters


def _name(spark: SparkSession, expression: str, given: Any) -> QualifiedName | None:
    values = dict(given) if isinstance(given, Mapping) else given or None
    try:
        with left_to_spark():
            found = spark.sql(f"SELECT {expression}", args=values).collect()
        return QualifiedName.parse(found[0][0])
    except Exception:  # noqa: BLE001  # no constant, or no name: Spark says what is wrong with it
        return None
