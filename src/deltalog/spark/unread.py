"""Statements about tables of ours that only Spark's grammar has: one sentence says what to do.

Spark would ask the format for the rows of such tables without their location, when it plans or
later, and fail.

Protocol: none
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.names import name_key
from deltalog.query.lexer import begins_query, split
from deltalog.query.names import QualifiedName, unquoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from deltalog.query.lexer import Word
    from deltalog.spark.cluster_session import ClusterSession

_BEFORE_TABLE: Final = ("JOIN", "INTO", "TABLE", "UPDATE", "USING", "OVERWRITE")
_AFTER_RELATIONS: Final = ("SELECT", "WHERE", "GROUP", "ORDER", "HAVING", "SET", "ON", ">", ";")
_BY_ITSELF: Final = re.compile(
    r"PYTHON_DATA_SOURCE_ERROR|NOT_SUPPORTED_COMMAND_FOR_V2_TABLE|INVALID_PARTITION_OPERATION"
    r"|UNSUPPORTED_FEATURE\.TABLE_OPERATION|[Tt]able does not support"
)
# What is wrong behind the first word: at that, our list of all statements would be shown.
_PLACE: Final = re.compile(r"at line (?!1, character 1:)\d+, character \d+: .*", re.DOTALL)
_EXCERPT: Final = 80
_KIND_WORDS: Final = 6


def left_alone(
    session: ClusterSession,
    text: str,
    problem: InvalidInputError,
    run: Callable[[], DataFrame],
) -> DataFrame | None:
    """Return what Spark makes of a statement that names a table of ours; None if it names none.

    Args:
        session: in which tables are found.
        text: of the statement.
        problem: why deltalog does not read it.
        run: lets Spark run it.

    Raises:
        InvalidInputError: Spark would read or change the table by itself.
    """
    try:
        words = split(text)
    except InvalidInputError:
        return None
    table = next(filter(session.is_concerned, _tables(words)), None)
    if table is None:
        return None
    shown = text.strip()
    shown = shown if len(shown) <= _EXCERPT else shown[:_EXCERPT] + "…"
    attempt = f"cannot run the statement {shown!r} about the Delta table {table}"
    if words[0].says("BEGIN"):
        raise InvalidInputError(
            f"{attempt} in a script: run the statements of BEGIN … END one by one with spark.sql"
        )
    if any(map(words[0].says, ("CREATE", "ALTER"))):
        kinds = words[1:_KIND_WORDS]
        if any(word.says("FUNCTION") for word in kinds):
            raise InvalidInputError(
                f"{attempt}: a function of Spark cannot read it; put the query where the function "
                "would be called"
            )
        if any(word.says("VIEW") for word in kinds):
            raise InvalidInputError(
                f"{attempt}: expected CREATE [OR REPLACE] TEMPORARY VIEW name AS query, with names "
                "of columns in the query"
            )
    found = _PLACE.search(str(problem))
    why = f" ({found[0]})" if found is not None else ""
    refusal = (
        f"{attempt}: deltalog does not know this form of it{why}, and Spark alone can neither read "
        f"nor change the table; use another form, or the data frame spark.table({str(table)!r})"
    )
    try:
        frame = run()
        is_read = begins_query(words, 0) and bool(frame.columns)
    except Exception as error:
        if _BY_ITSELF.search(str(error)) is None:
            raise
        raise InvalidInputError(refusal) from error
    if is_read:
        raise InvalidInputError(refusal) from problem
    return frame


def _tables(words: Sequence[Word]) -> Iterator[QualifiedName]:
    """The names that stand where tables do, without those that WITH gives to queries."""
    given = {
        name_key(unquoted(word.text))
        for place, word in enumerate(words[:-2])
        if words[place + 1].says("AS") and words[place + 2].says("(")
    }
    # For each bracket around a word: whether a query is in it, and whether a relation came last.
    around = [[True, False]]
    for place, word in enumerate(words[:-1]):
        before = words[place - 1] if place else words[-1]
        follows = False
        if word.says("("):
            around.append([begins_query(words, place + 1), False])
        elif word.says(")"):
            del around[max(1, len(around) - 1) :]
        elif word.says("FROM"):
            follows = around[-1][1] = around[-1][0] and not before.says("DISTINCT")
        elif word.says(","):
            follows = around[-1][1]
        elif any(map(word.says, _AFTER_RELATIONS)):
            around[-1][1] = False
        else:
            follows = any(map(word.says, _BEFORE_TABLE))
        parts = _path(words, place + 1) if follows else ()
        if parts and not (len(parts) == 1 and name_key(parts[0]) in given):
            yield QualifiedName(parts)


def _path(words: Sequence[Word], place: int) -> tuple[str, ...]:
    """Return the parts of the name at a word; none if no name is there."""
    parts: list[str] = []
    while words[place].kind in {"word", "quoted"}:
        parts.append(unquoted(words[place].text))
        if not words[place + 1].says("."):
            break
        place += 2
    return tuple(parts)
