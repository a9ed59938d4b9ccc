"""Checks of declarations: generated, identity and default columns, and constraints.

A declaration that deltalog cannot evaluate would make the table unwritable, so creating it is an
error. Writers evaluate the declarations.

Protocol: Generated Columns, Identity Columns, Default Columns, CHECK Constraints
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog import expressions
from deltalog._util.escaping import name_key, path_key
from deltalog._util.json import JsonObject, loads
from deltalog.errors import InvalidInputError, InvalidMetadataError
from deltalog.expressions.sql_session import RULES_OF_TABLES
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.features.char_varchar import length_limits
from deltalog.protocol.features.identity_columns import (
    identity_columns,
)
from deltalog.protocol.features.schema_needs import (
    INVARIANTS_KEY,
    has_generated_columns,
)
from deltalog.schema.columns import Path, find_field, walk
from deltalog.schema.evolve import can_store
from deltalog.schema.types import (
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_STEP_KEY,
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from deltalog.expressions import Expression
    from deltalog.schema.types import Field

# An arbitrary timestamp for trial evaluations, whose results are discarded.
_SOME_TIME: Final = dt.datetime(2001, 2, 3, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependent:
    """A constraint or generated column, with the columns that its SQL uses.

    Args:
        what: description for messages, such as `the CHECK constraint 'positive'`.
        text: Spark SQL.
        paths: paths of the columns in the SQL, as spelled there.
        owner: the generated column; None for a constraint.
    """

    what: str
    text: str
    paths: tuple[Path, ...]
    owner: str | None = None

    def needs(self, path: Path) -> bool:
        """Return whether the SQL uses the column, one of its fields, or a parent of it."""
        wanted = path_key(path)
        return any(
            found[: len(wanted)] == wanted[: len(found)] for found in map(path_key, self.paths)
        )


def dependents(configuration: Mapping[str, str], schema: StructType) -> tuple[Dependent, ...]:
    """Return the constraints and generated columns of a table, with the columns that they use.

    SQL that cannot be parsed is skipped, because such a table cannot be written anyway.
    """
    rules: list[tuple[str, str, str | None]] = [
        (f"the {check.kind} constraint {check.name!r}", check.text, None)
        for check in table_checks(configuration, schema)
    ]
    for name, text in generation_expressions(schema).items():
        rules.append((f"the generated column {name!r}", text, name))
    return tuple(
        Dependent(what=what, text=text, paths=paths, owner=owner)
        for what, text, owner in rules
        if (paths := _paths_in(text, schema)) is not None
    )


def check_declarations(
    configuration: Mapping[str, str],
    schema: StructType,
    partition_columns: Collection[str] = (),
    *,
    known: StructType | None = None,
    known_configuration: Mapping[str, str] | None = None,
) -> None:
    """Raise for new declarations that deltalog cannot evaluate.

    Args:
        configuration: the new properties.
        schema: the new schema.
        partition_columns: names of the partition columns, spelled as in the schema.
        known: the current schema; unchanged declarations are not checked, because another engine
            may have made them.
        known_configuration: the current properties.

    Raises:
        InvalidInputError: the message contains the column or the constraint, and the reason.
    """
    # A declaration counts as changed if a column that it uses has changed.
    now = {field.name: field for field in schema.fields}
    before = known.fields if known else ()
    unchanged = {field.name for field in before if now.get(field.name) == field}
    _check_nested(schema)
    _check_identity(schema, partition_columns)
    stored = generation_expressions(known) if known else {}
    for name, text in generation_expressions(schema).items():
        if name not in unchanged or not _is_as_before(text, schema, unchanged):
            _check_generated(name, text, schema, is_new=stored.get(name) != text)
    for path, text in default_expressions(schema).items():
        if path[0] not in unchanged:
            _check_default(path, text, schema)
    old = {check.text for check in table_checks(known_configuration or {}, known)} if known else ()
    for check in table_checks(configuration, schema):
        is_new = check.text not in old
        if is_new or not _is_as_before(check.text, schema, unchanged):
            what = f"the {check.kind} constraint {check.name!r}"
            check_condition(what, check.text, schema, is_new=is_new)


def check_condition(what: str, text: str, schema: StructType, *, is_new: bool = True) -> Expression:
    """Return the resolved condition of a constraint.

    Args:
        what: description for messages.
        text: the SQL of the constraint.
        schema: schema of the table.
        is_new: whether the constraint is new, so that it must be valid in Spark.

    Raises:
        InvalidInputError: the SQL is not a condition on the table's columns, or is not
            deterministic.
    """
    try:
        parsed = _parsed(text, schema, is_new=is_new)
        return expressions.resolve_predicate(parsed, schema)
    except InvalidInputError as error:
        raise InvalidInputError(f"{what} ({text}) is not valid: {error}") from error


def _check_nested(schema: StructType) -> None:
    for path, field in walk(schema):
        name = ".".join(path)
        kinds = [
            word
            for word, key in (
                ("generated", GENERATION_EXPRESSION_KEY),
                ("identity", IDENTITY_STEP_KEY),
                ("default", CURRENT_DEFAULT_KEY),
            )
            if key in field.metadata
        ]
        if len(kinds) > 1:
            raise InvalidInputError(f"the column {name!r} cannot be {' and '.join(kinds)} at once")
        if kinds and len(path) > 1:
            raise InvalidInputError(
                f"the nested field {name!r} cannot be {kinds[0]}: only a column can"
            )


def _check_identity(schema: StructType, partition_columns: Collection[str]) -> None:
    try:
        columns = identity_columns(schema)
    except InvalidMetadataError as error:
        raise InvalidInputError(str(error)) from error
    for column in columns:
        if column.name in partition_columns:
            raise InvalidInputError(
                f"cannot partition by the identity column {column.name!r}: each row has a "
                "different value"
            )


def _parsed(text: str, schema: StructType, *, is_new: bool) -> Expression:
    """Parse a rule; a new rule must be valid in Spark."""
    if is_new:
        return expressions.parse_sql(text, columns=schema.names)
    return _stored(text, schema)


def _stored(text: str, schema: StructType) -> Expression:
    """Parse a stored rule, in the SQL of Spark or delta-rs."""
    from deltalog.protocol.features.rule_sql import parse_rule  # noqa: PLC0415  # few tables have rules

    return parse_rule(text, schema)


def _check_generated(name: str, text: str, schema: StructType, *, is_new: bool) -> None:
    what = f"the generated column {name!r} ({text})"
    # Resolve with all columns first, so that using another generated column raises the error
    # below instead of "unknown column".
    plain = {
        field.name
        for field in schema.fields
        if not has_generated_columns(schema.with_fields([field]))
    }
    try:
        parsed = _parsed(text, schema, is_new=is_new)
        resolved = expressions.resolve(parsed, schema)
        found = expressions.type_of(resolved, schema)
    except InvalidInputError as error:
        raise InvalidInputError(f"{what} cannot be computed: {error}") from error
    others = sorted({path[0] for path in expressions.columns(resolved)} - plain)
    if others:
        raise InvalidInputError(
            f"{what} cannot use {', '.join(others)}, which is also a generated column"
        )
    declared = find_field(schema, (name,)).type
    if str(found) != str(declared):
        shown = expressions.to_sql(parsed)
        raise InvalidInputError(
            f"{what} is of type {found}, but the column is declared as {declared}: "
            f"declare it as {found}, or write CAST({shown} AS {declared})"
        )


def _check_default(path: Path, text: str, schema: StructType) -> None:
    field = find_field(schema, path)
    try:
        why = _unfit_default(text, field, schema)
    except InvalidInputError as error:
        why = str(error)
    if why:
        raise InvalidInputError(
            f"the default of column {'.'.join(path)!r} ({text}) is not valid: {why}"
        )


def _unfit_default(text: str, field: Field, schema: StructType) -> str:
    """Return why the SQL is not a valid default of the field; an empty string if it is valid."""
    declared = field.type
    parsed = expressions.parse_sql(text)
    if expressions.columns(parsed):
        named = text.strip()
        hint = f"; a string has quotes: '{named}'" if named.isidentifier() else ""
        return f"it names a column, and a default is a constant{hint}"
    resolved = expressions.resolve(parsed, schema, replace(RULES_OF_TABLES, now=_SOME_TIME))
    found = expressions.type_of(resolved, schema)
    if not can_store(found, declared):
        return f"it is of type {found}, which a column of type {declared} cannot hold"
    limits = length_limits(StructType((field,)))
    if limits or (isinstance(declared, PrimitiveType) and isinstance(found, PrimitiveType)):
        stored = expressions.resolve(resolved.cast(declared), schema)
        from deltalog.expressions.rows import bounded  # noqa: PLC0415  # most writes have no rule

        row = pa.record_batch({"": [0]})
        with bounded("that default", row):
            # This raises an error if the value is not valid for the type.
            (value,) = expressions.evaluate(stored, row).to_pylist()
        for limit in limits:
            longest = max(map(len, _strings_at(value, limit.path[1:])), default=0)
            if longest > limit.length:
                return (
                    f"it has a string of {longest} characters, and a {limit.type_name} has at most "
                    f"{limit.length}"
                )
    return ""


def _strings_at(value: Any, path: Path) -> Iterator[str]:
    """Yield the strings at a path in a value; see `LengthLimit`."""
    if value is None:
        return
    if not path:
        yield value
        return
    step, *rest = path
    if isinstance(value, dict):
        inner = [value[step]]
    elif step == "element":
        inner = value
    else:
        inner = [pair[step == "value"] for pair in value]
    for one in inner:
        yield from _strings_at(one, tuple(rest))


def _is_as_before(text: str, schema: StructType, unchanged: Collection[str]) -> bool:
    """Return whether all columns in a rule are unchanged; true if the rule cannot be parsed."""
    folded = {name_key(name) for name in unchanged}
    return all(name_key(path[0]) in folded for path in _paths_in(text, schema) or ())


def _paths_in(text: str, schema: StructType) -> tuple[Path, ...] | None:
    """Return the columns in the SQL, as spelled there; None if the SQL cannot be parsed."""
    try:
        return tuple(expressions.columns(_stored(text, schema)))
    except InvalidInputError:
        return None


# --- The SQL of generated columns and of column defaults


def generation_expressions(schema: StructType) -> dict[str, str]:
    """Return the SQL of generated columns by name, in the schema's order.

    Only top-level columns can be generated. If the protocol does not support generated columns,
    writers must ignore the metadata (requirement GEN-03).

    Raises:
        InvalidMetadataError: an expression is not a string.
    """
    found = _expressions(schema, GENERATION_EXPRESSION_KEY)
    return {path[0]: text for path, text in found if len(path) == 1}


def default_expressions(schema: StructType) -> dict[Path, str]:
    """Return the SQL of default values by column path, in the schema's order.

    If the protocol does not support column defaults, the metadata has no meaning.

    Raises:
        InvalidMetadataError: an expression is not a string.
    """
    return dict(_expressions(schema, CURRENT_DEFAULT_KEY))


def _expressions(schema: StructType, key: str) -> Iterator[tuple[Path, str]]:
    for path, field in walk(schema):
        text = field.metadata.get(key)
        if text is not None and not isinstance(text, str):
            raise InvalidMetadataError(
                f"column {'.'.join(path)!r}: expected {key} as a string, found {text!r}"
            )
        if text is not None:
            yield path, text


# --- Conditions that every row must satisfy: CHECK constraints and column invariants


CHECK: Final = "CHECK"
INVARIANT: Final = "INVARIANT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A SQL condition that must be true, not NULL, for every row (requirement CON-02).

    Args:
        name: name of the constraint; for an invariant, its column.
        text: Spark SQL.
        kind: `CHECK` or `INVARIANT`.
    """

    name: str
    text: str
    kind: str = CHECK


def table_checks(
    configuration: Mapping[str, str], schema: StructType, *, invariants: bool = True
) -> tuple[Check, ...]:
    """Return all conditions on the rows of a table.

    Args:
        configuration: the table's properties.
        schema: schema of the table.
        invariants: whether the protocol supports column invariants; otherwise their metadata has
            no meaning (requirement INV-02).

    Raises:
        InvalidMetadataError: an invariant is malformed.
    """
    # As in Delta Spark, constraints apply even if the protocol lacks their feature (requirement
    # CON-06).
    stored = TableProperties(configuration).constraints
    checks = [Check(name=name, text=text) for name, text in stored.items()]
    # The protocol: "Writers MUST abort any transaction that adds a row to the table, where an
    # invariant evaluates to `false` or `null`."
    if invariants:
        checks += [
            Check(
                name=".".join(path),
                text=_invariant_text(field.metadata[INVARIANTS_KEY], path),
                kind=INVARIANT,
            )
            for path, field in walk(schema)
            if INVARIANTS_KEY in field.metadata
        ]
    return tuple(checks)


def _invariant_text(stored: Any, path: tuple[str, ...]) -> str:
    """Return the condition in `{"expression": {"expression": "x > 3"}}`, a string or an object."""
    where = f"column {'.'.join(path)!r}: {INVARIANTS_KEY}"
    tree = loads(stored, where) if isinstance(stored, str) else stored
    outer = JsonObject(tree, where, InvalidMetadataError)
    inner = JsonObject(
        outer.required("expression", dict), f"{where}: expression", InvalidMetadataError
    )
    return inner.required("expression", str)
