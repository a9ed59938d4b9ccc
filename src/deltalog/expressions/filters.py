"""Converting conditions from every form that users may pass to resolved expressions.

Converts deltalake's filter tuples, and contains the entry point `as_expression`.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.argument_types import kind_of, shortened
from deltalog._util.escaping import name_key, path_key
from deltalog._util.kernels import pc
from deltalog.errors import InvalidInputError
from deltalog.expressions import nodes
from deltalog.expressions.analyze import resolve_predicate
from deltalog.expressions.arrow_filters import from_arrow_expression
from deltalog.expressions.evaluation import fold
from deltalog.expressions.nodes import Column, Expression, Literal, col
from deltalog.expressions.render import shown_sql
from deltalog.expressions.rows import NO, YES
from deltalog.expressions.sql import parse_sql
from deltalog.expressions.sql_session import RULES_OF_TABLES, SqlSession, TextRules
from deltalog.expressions.substrait import as_meant
from deltalog.expressions.trees import columns as columns_of
from deltalog.expressions.trees import conjunction
from deltalog.expressions.trees import walk as walk_nodes
from deltalog.schema.arrow import to_arrow_schema
from deltalog.schema.columns import find_field, walk
from deltalog.schema.types import STRING, DataType, StructType

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

logger: logging.Logger = logging.getLogger(__name__)

_OPERATORS: Final = {
    "=": "=", "==": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip


def as_expression(
    predicate: Expression | str | Sequence[Any] | pc.Expression,
    schema: StructType,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    session: SqlSession = RULES_OF_TABLES,
    *,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> Expression:
    """Convert a condition in any form, resolve it against a schema, and fold its constant parts.

    Args:
        predicate: an expression, Spark SQL, filter tuples or a pyarrow expression.
        schema: the schema of the rows.
        parameters: values for `?` or `:name` in SQL.
        session: the current time and the time zone.
        text_rules: how strings are compared; a pyarrow expression always compares bytes.

    Raises:
        InvalidInputError: the predicate is not a condition on this schema.
    """
    found: Expression
    if isinstance(predicate, Expression):
        found = predicate
    elif isinstance(predicate, str):
        if not predicate.strip():
            raise InvalidInputError("a condition is an empty string: for all rows, leave it out")
        found = parse_sql(predicate, parameters=parameters, columns=schema.names, quotes_names=True)
    elif isinstance(predicate, list | tuple):
        found = from_filters(predicate, schema)
    elif isinstance(predicate, pc.Expression):
        found = as_meant(from_arrow_expression(predicate, to_arrow_schema(schema)), schema)
    else:
        raise _no_condition(predicate)
    if isinstance(predicate, Expression | str):
        warn_of_null(found)
    if isinstance(predicate, str):
        check_quoted_names(found, predicate, schema.names)
    if isinstance(predicate, pc.Expression):
        # Engines that pass a pyarrow expression compare the bytes of strings.
        text_rules = TextRules.BYTES
    return fold(resolve_predicate(found, schema, session, text_rules=text_rules))


def _no_condition(given: Any) -> InvalidInputError:
    """Return the error about an object that is no condition, with what to write instead."""
    hint, shown = "", shortened(given)
    if isinstance(given, Mapping):
        pairs = ", ".join(f"({name!r}, '=', {shortened(value)})" for name, value in given.items())
        hint = f"; for equal values, write [{pairs}]" if given else "; for all rows, leave it out"
    elif hasattr(given, "__array__"):
        hint, shown = "; a condition names columns, as in 'id > 1'", kind_of(given)
    elif type(given).__module__.partition(".")[0] == "polars":
        hint = "; a condition of Polars filters to_polars(lazy=True)"
    elif callable(given):
        hint = "; deltalog.col('name') > 1 is an expression"
    elif isinstance(given, bool):
        hint = "; for all rows, leave it out"
    elif isinstance(given, int):
        hint = f"; a condition names columns, as in 'id = {given}'"
    return InvalidInputError(
        f"cannot use {shown} as a condition: expected an expression, SQL, a list of "
        f"(column, operator, value) or a pyarrow expression{hint}"
    )


def warn_of_null(condition: Expression) -> None:
    """Log comparisons with the literal NULL, which are never true, although SQL allows them."""
    negated = set()
    for node in walk_nodes(condition):
        if isinstance(node, nodes.Comparison) and node.operator != "<=>":
            if _is_null(node.left) or _is_null(node.right):
                instead = "IS NOT NULL" if node.operator == "<>" else "IS NULL"
                logger.warning("%s is never true; use %s", shown_sql(node), instead)
        elif (
            isinstance(node, nodes.Not)
            and isinstance(node.operand, nodes.In)
            and any(map(_is_null, node.operand.options))
        ):
            logger.warning(
                "%s is never true, because of the NULL; use IS NOT NULL for it", shown_sql(node)
            )
            negated.add(id(node.operand))
        elif (
            isinstance(node, nodes.In)
            and id(node) not in negated
            and any(map(_is_null, node.options))
        ):
            logger.warning(
                "%s does not match NULL: write … OR %s IS NULL for it",
                *(shown_sql(node), shown_sql(node.operand)),
            )


_TESTS: Final = (nodes.Comparison, nodes.In, nodes.IsNull, nodes.Like)
_TEST_CALLS: Final = frozenset({"rlike", "startswith", "endswith", "contains"})


def check_quoted_names(condition: Expression, sql: str, names: Collection[str]) -> None:
    """Raise for a test of strings alone, one of which is meant as a column.

    `'name' <> 'x'` is true for all rows, so that a delete would remove them all.

    Args:
        condition: the parsed condition.
        sql: the condition as the caller wrote it. A string from a parameter is not in it.
        names: the columns.

    Raises:
        InvalidInputError: one of the strings has the name of a column, or double quotes.
    """
    if "'" not in sql and '"' not in sql:
        return
    known = {name_key(name) for name in names}
    for node in walk_nodes(condition):
        is_test = isinstance(node, _TESTS) or (
            isinstance(node, nodes.Call) and node.function in _TEST_CALLS
        )
        if not is_test or columns_of(node):
            continue
        for text in _strings(node):
            if name_key(text) in known and (f"'{text}'" in sql or f'"{text}"' in sql):
                raise InvalidInputError(
                    f"cannot use {sql!r}: {text!r} in quotes is a string, not the column; write "
                    f"the column without quotes, as in {_without_quotes(sql, text)!r}"
                )
            if f'"{text}"' in sql:
                raise InvalidInputError(
                    f'cannot use {sql!r}: "{text}" is a string, because there is no column with '
                    f"this name; the columns are {', '.join(map(repr, list(names)[:20]))}"
                )


def _strings(node: Expression) -> list[str]:
    literals = (part for part in walk_nodes(node) if isinstance(part, Literal))
    return [part.value for part in literals if isinstance(part.value, str)]


def _without_quotes(sql: str, name: str) -> str:
    return sql.replace(f"'{name}'", name).replace(f'"{name}"', name)


def _is_null(node: Expression) -> bool:
    return isinstance(node, Literal) and node.value is None


def from_filters(filters: Sequence[Any], schema: StructType | None = None) -> Expression:
    """Convert deltalake's filters: a list of tuples means AND, a list of lists means OR of ANDs.

    A string is cast to the column's type. None means NULL, and so does an empty string if the
    column is not a string, as in partition values.

    Args:
        filters: `[(column, operator, value)]` or `[[…], […]]`; operators are `= == != <> < <= >
            >= in`, and `not in`. A column is a name, a dotted path, or a tuple of names.
        schema: the schema of the rows, if known.

    Raises:
        InvalidInputError: a filter does not have this form.
    """
    if _is_filter(filters):
        return _one(filters, schema)
    if not filters:
        return Literal(YES)
    if all(_is_filter(item) for item in filters):
        return _all(filters, schema)
    if all(
        isinstance(group, list | tuple) and group and all(map(_is_filter, group))
        for group in filters
    ):
        groups = tuple(_all(group, schema) for group in filters)
        return groups[0] if len(groups) == 1 else nodes.Or(groups)
    raise InvalidInputError(
        f"cannot read the filters {shortened(filters)}: expected [(column, operator, value), …] "
        f"or a list of such lists{_sql_instead(filters)}"
    )


def _sql_instead(filters: Sequence[Any]) -> str:
    """Return how to pass a list of something else: of conditions in SQL, or of values."""
    if all(isinstance(one, str) for one in filters):
        return f"; SQL is one string, as in {' AND '.join(filters)!r}"
    if all(isinstance(one, int) for one in filters):
        values = shortened(list(filters))
        return f"; for rows with these values, name their column: [('id', 'in', {values})]"
    return ""


def _is_filter(item: Any) -> bool:
    return (
        isinstance(item, list | tuple)
        and len(item) == 3
        and _is_name(item[0])
        and isinstance(item[1], str)
    )


def _is_name(item: Any) -> bool:
    if isinstance(item, tuple):
        return bool(item) and all(isinstance(name, str) for name in item)
    return isinstance(item, str)


def _all(filters: Sequence[Any], schema: StructType | None) -> Expression:
    return conjunction([_one(item, schema) for item in filters])


def _one(item: Sequence[Any], schema: StructType | None) -> Expression:
    name, operator, value = item
    word = " ".join(operator.lower().split())
    column, data_type = _column(name, schema), None
    if schema is not None:
        data_type = find_field(schema, column.path).type
    if word in {"in", "not in"}:
        return _membership(column, word, value, data_type)
    symbol = _OPERATORS.get(word)
    if symbol is None:
        raise InvalidInputError(
            f"cannot read the filter {tuple(item)!r}: the operator {operator!r} is not one "
            f"of {', '.join([*_OPERATORS, 'in', 'not in'])}{_instead(column, word, value)}"
        )
    constant = _constant(value, data_type)
    # deltalake's ("p", "=", None) selects NULL; SQL's `=` would select nothing.
    if constant.value is None and symbol in {"=", "<>"}:
        is_null = nodes.IsNull(column)
        return is_null if symbol == "=" else nodes.Not(is_null)
    return nodes.Comparison(symbol, column, constant)


_WRITTEN: Final = {
    **dict.fromkeys(("eq", "equals", "is", "is null", "isnull", "is_null", "null"), "="),
    **dict.fromkeys(("ne", "not", "is not", "not null", "is not null", "notnull", "=!"), "!="),
    **dict.fromkeys(("gt", "greater"), ">"),
    **dict.fromkeys(("ge", "gte", "=>"), ">="),
    **dict.fromkeys(("lt", "less"), "<"),
    **dict.fromkeys(("le", "lte", "=<"), "<="),
    **dict.fromkeys(("isin", "is_in", "any"), "in"),
    **dict.fromkeys(("not_in", "notin", "nin", "not isin"), "not in"),
}
"""Operator of other libraries → the operator of a filter."""


def _instead(column: Column, word: str, value: object) -> str:
    """Return what to write instead of a filter with an unknown operator."""
    shown, written = ".".join(column.path), _WRITTEN.get(word)
    if written is not None:
        is_null = "null" in word or (value is None and written in {"=", "!="})
        return f": write ({shown!r}, {written!r}, {None if is_null else value!r})"
    is_constant = isinstance(value, str | int | float | Decimal | dt.date)
    text = shown_sql(Literal(value)) if is_constant else "value"
    match word.replace("_", "").replace(" ", ""):
        case "startswith" | "endswith" | "contains" as name:
            condition = f"{name}({shown}, {text})"
        case "between" if isinstance(value, list | tuple) and len(value) == 2:
            low, high = (shown_sql(Literal(one)) for one in value)
            condition = f"{shown} BETWEEN {low} AND {high}"
        case "regex" | "regexp" | "match" | "matches" | "rlike" | "~":
            condition = f"{shown} RLIKE {text}"
        case _:
            condition = f"{shown} {word.upper()} {text}" if "like" in word else f"{shown} > {text}"
    return f"; other conditions are SQL instead of a list, as in {condition!r}"


def _column(name: str | tuple[str, ...], schema: StructType | None) -> Column:
    """Return the column that a filter names. In deltalake, names with dots are not quoted.

    So `a.b` means the column `a.b` if it exists, otherwise the field `b` of column `a`. If neither
    exists, `a.b.c` may mean the field `b.c` of column `a`.
    """
    if isinstance(name, tuple):
        return Column(name)
    if schema is None:
        return col(name)
    if name_key(name) in {name_key(known) for known in schema.names}:
        return Column((name,))
    column = col(name)
    if "`" in name or has_field(schema, column.path):
        return column
    wanted = path_key(name.split("."))
    fields = [path for path, _ in walk(schema) if path_key(".".join(path).split(".")) == wanted]
    paths = [path for path in fields if has_field(schema, path)]  # excludes fields inside lists
    if len(paths) > 1:
        meant = " or ".join(".".join(f"`{part}`" for part in path) for path in paths)
        raise InvalidInputError(f"cannot filter by {name!r}: it may be {meant}; write one of these")
    return Column(paths[0]) if paths else column


def has_field(schema: StructType, path: tuple[str, ...]) -> bool:
    """Whether a schema has a column or field at a path."""
    try:
        find_field(schema, path)
    except InvalidInputError:
        return False
    return True


def _membership(
    column: Expression, word: str, value: Any, data_type: DataType | None
) -> Expression:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InvalidInputError(
            f"a filter with {word!r} needs a list of values, found {shortened(value)}"
        )
    constants = [_constant(item, data_type) for item in value]
    known = tuple(constant for constant in constants if constant.value is not None)
    found: Expression = nodes.In(column, known) if known else Literal(NO)
    if len(known) < len(constants):
        found = nodes.Or((found, nodes.IsNull(column)))
    return nodes.Not(found) if word == "not in" else found


def _constant(value: Any, data_type: DataType | None) -> Literal:
    if isinstance(value, Literal):
        return value
    if data_type is not None and data_type != STRING and value == "":
        return Literal(None)
    if data_type == STRING and value is not None and not isinstance(value, str):
        return Literal(_as_text(value))
    return Literal(value)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return str(value)
