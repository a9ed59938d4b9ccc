"""Conditions and new values in the forms in which callers give them, resolved for a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from deltalog import expressions
from deltalog.errors import InvalidInputError
from deltalog.expressions.text_rules import TextRules
from deltalog.metadata_columns import CHANGE_COLUMNS
from deltalog.names import name_key
from deltalog.schema import Field, StructType, from_arrow_type
from deltalog.schema.metadata_fields import with_metadata_columns
from deltalog.schema.types import STRING
from deltalog.sql_session import SqlSession

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.expressions import Expression
    from deltalog.snapshot import Snapshot


def with_blanks_as_nulls(filters: Any, partition_columns: Sequence[str]) -> Any:
    """Filter tuples with None where deltalake's users write `''` for a null partition value.

    Protocol: Partition Value Serialization (the empty string is null)
    """
    if isinstance(filters, list):
        return [with_blanks_as_nulls(one, partition_columns) for one in filters]
    if isinstance(filters, tuple) and len(filters) == 3 and filters[0] in partition_columns:
        name, operator, value = filters
        return (name, operator, None if isinstance(value, str) and not value else value)
    return filters


def as_condition(
    schema: StructType,
    *conditions: Any,
    session: SqlSession,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> Expression | None:
    """All conditions that are given as one, over a table's columns and those of `_metadata`.

    Args:
        schema: of the table.
        conditions: SQL, expressions, or deltalake's filters; None and an empty list are none.
        session: the current time and the time zone.
        parameters: of SQL.
        text_rules: by what texts are compared.

    Raises:
        InvalidInputError: parameters without a condition: it was forgotten, and all rows are meant
            without one.
    """
    given = [
        condition
        for condition in conditions
        if condition is not None and not (isinstance(condition, list) and not condition)
    ]
    if parameters and not given:
        raise InvalidInputError(
            f"cannot use parameters={parameters!r}: there is no predicate that they are for"
        )
    known = with_metadata_columns(schema)
    for condition in given:
        _check_texts(condition, schema)
    found = [
        expressions.as_expression(condition, known, parameters, session, text_rules=text_rules)
        for condition in given
    ]
    return reduce(and_, found) if found else None


def _check_texts(filters: Any, schema: StructType) -> None:
    """Refuse filters of a text column by a value that is no single one: its `repr` is no text."""
    if isinstance(filters, list):
        for one in filters:
            _check_texts(one, schema)
    if not isinstance(filters, tuple) or len(filters) != 3 or not isinstance(filters[0], str):
        return
    name, operator, value = filters
    types = {name_key(field.name): field.type for field in schema}
    if types.get(name_key(name)) != STRING:
        return
    is_list = isinstance(value, list | tuple | set | frozenset)
    for one in value if is_list and "in" in str(operator).lower().split() else [value]:
        if isinstance(one, Mapping | list | tuple | set | frozenset | bytes | bytearray):
            raise InvalidInputError(
                f"cannot compare the text column {name!r} with {one!r} in the filter {filters!r}: "
                "expected a text, or a list of texts for 'in'"
            )


def as_updates(
    updates: Mapping[str, str | Expression] | None,
    new_values: Mapping[str, object] | None,
    parameters: Sequence[object] | Mapping[str, object] | None,
    columns: Sequence[str] = (),
) -> dict[str | tuple[str, ...], object]:
    """Column → expression, from either of the two arguments; SQL is over the table's columns."""
    if (updates is None) is (new_values is None):
        raise InvalidInputError("an update takes either updates (SQL) or new_values (Python)")
    for given in (updates, new_values):
        if given is not None and not isinstance(given, Mapping):
            raise InvalidInputError(
                f"cannot update with {given!r}: expected a dictionary, column name to value"
            )
    if new_values is not None:
        return {name: expressions.lit(value) for name, value in new_values.items()}
    named = parameters if hasattr(parameters, "keys") else None
    found: dict[str | tuple[str, ...], object] = {}
    for name, value in (updates or {}).items():
        if not isinstance(value, str | expressions.Expression):
            raise InvalidInputError(
                f"updates[{name!r}]: expected SQL or an expression, found {value!r}; Python values "
                "go into new_values"
            )
        found[name] = value
        if isinstance(value, str):
            found[name] = expressions.parse_sql(
                value, parameters=named, columns=columns, quotes_names=True
            )
    return found


def as_constraints(given: Any, columns: Sequence[str]) -> Any:
    """Constraints, name to SQL, with columns in backticks where callers have double quotes.

    Stored double quotes are those of a text for Spark.
    """
    if not isinstance(given, Mapping):
        return given  # what takes them says what it expects
    from deltalog.expressions.sql import with_backticks  # noqa: PLC0415  # few tables have any

    return {name: with_backticks(text, columns) for name, text in given.items()}


def left_for_predicate(parameters: Any, predicate: object, updates: object) -> Any:
    """Return the parameters that the predicate of an update takes; None if all are for values."""
    return None if predicate is None and updates and isinstance(parameters, Mapping) else parameters


def as_changes_condition(
    schema: StructType, predicate: Any, *, session: SqlSession
) -> Expression | None:
    """Return a condition over the columns of a table and those of its change data feed."""
    if predicate is None:
        return None
    fields = [Field(name, from_arrow_type(kind)) for name, kind in CHANGE_COLUMNS.items()]
    return expressions.as_expression(predicate, StructType([*schema, *fields]), session=session)


def for_each_version(
    predicate: Any, *, changes: bool
) -> Callable[[Snapshot], Expression | None] | None:
    """Return what gives a condition over the columns of a version of a table; None if it is None.

    Args:
        predicate: the condition.
        changes: whether it may name columns of the change data feed.
    """
    if predicate is None:
        return None
    find = as_changes_condition if changes else as_condition

    def condition(snapshot: Snapshot) -> Expression | None:
        schema, session = snapshot.configuration.schema, snapshot.context.session
        return find(schema, predicate, session=session)

    return condition


def check_given(predicate: object) -> None:
    """Refuse an empty list of filters where rows change: it would mean all of them."""
    if isinstance(predicate, list | tuple) and not predicate:
        raise InvalidInputError(
            f"cannot change the rows of {predicate!r}: an empty list would mean all of them; leave "
            "the predicate out if that is meant"
        )
