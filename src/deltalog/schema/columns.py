"""Look-up of columns by name and by path.

Look-up ignores case, because the protocol's comparison of names does. A path is a tuple of names;
for lists and maps, it contains `element`, `key` or `value`.

Protocol: Schema Serialization Format
"""

from __future__ import annotations

import difflib
import re
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.cards import card, grid, indented
from deltalog._util.escaping import name_key
from deltalog._util.readable import counted
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
)
from deltalog.schema.interchange import FORMS, Form
from deltalog.schema.types import (
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    ArrayType,
    Field,
    MapType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from deltalog.schema.types import DataType

Path = tuple[str, ...]

_LIST_SEGMENTS: Final = ("element",)
_MAP_SEGMENTS: Final = ("key", "value")


def find_field(schema: StructType, path: str | Path) -> Field:
    """Return the field at a path, ignoring case; an exact match has precedence.

    Args:
        schema: the schema that contains the field.
        path: the names on the path. A string is one name or, if no column has that name, a dotted
            path.

    Raises:
        InvalidInputError: the field does not exist, or several fields differ only in case.
    """
    return _resolve(schema, path)[1]


@contextmanager
def naming_the_attempt(attempt: str, table: str) -> Iterator[None]:
    """Add what was attempted to errors about arguments and values in the block.

    Args:
        attempt: the operation, such as `scan` or `create a table at`.
        table: the location of the table. Errors that contain it already stay as they are.
    """
    try:
        yield
    except (ConstraintViolationError, SchemaMismatchError) as error:
        if not error.args[0].startswith((_OF_DATA, _OF_VALUES)):
            raise
        rest = error.args[0].removeprefix(_OF_DATA)
        is_change = isinstance(error, ConstraintViolationError) and attempt in _CHANGES
        doing = attempt if is_change else "write the data to"
        raise error.with_message(f"cannot {doing} {table}: {rest}") from error.__cause__
    except InvalidInputError as error:
        # A scan for an operation has named itself already.
        message = error.args[0].removeprefix(f"cannot read {table}: ")
        is_named = re.search(rf"(?<!\w){re.escape(table)}(?!\w)", message) is not None
        is_bare = type(error) is InvalidInputError and not is_named
        if not is_bare and not message.startswith(_BARE):
            raise
        raise error.with_message(f"cannot {attempt} {table}: {message}") from error.__cause__
    except Exception as error:
        # Such as an error of a generator or a lazy frame whose rows are written.
        if not isinstance(error, DeltaError) and not getattr(error, "__notes__", None):
            error.add_note(f"deltalog could not {attempt} {table}")
        raise


_BARE: Final = ("there is no column", "cannot cast ", "cannot compare ")
_CHANGES: Final = frozenset({"run UPDATE on", "run MERGE on"})
"""Attempts whose rows are not data that the caller passes as they are."""
_OF_DATA: Final = "cannot write the data: "
_OF_VALUES: Final = "cannot store "


def canonical_path_of(schema: StructType, path: str | Path) -> Path:
    """Return the path in the spelling of the schema.

    Raises:
        InvalidInputError: the field does not exist, or several fields differ only in case.
    """
    return _resolve(schema, path)[0]


def walk(schema: StructType) -> Iterator[tuple[Path, Field]]:
    """Yield every struct field at any depth, parents first.

    Fields of structs inside lists and maps have `element`, `key` or `value` in their paths.
    """
    return ((path, field) for path, _, field in _parts(schema, (), None) if field is not None)


def walk_types(data_type: DataType) -> Iterator[tuple[Path, DataType]]:
    """Yield the type and all types inside it, with their paths, parents first."""
    return ((path, part) for path, part, _ in _parts(data_type, (), None))


def map_fields(
    schema: StructType,
    change: Callable[[Field], Field],
    change_type: Callable[[DataType], DataType] = lambda kind: kind,
) -> StructType:
    """Return the schema with every struct field replaced, parents before children.

    Args:
        schema: the schema of rows.
        change: returns the replacement of a field; called for parents before children.
        change_type: returns the replacement of a type that is not a struct; called for inner types
            first.
    """

    def changed(data_type: DataType) -> DataType:
        match data_type:
            case StructType():
                return map_fields(data_type, change, change_type)
            case ArrayType():
                data_type = replace(data_type, element_type=changed(data_type.element_type))
            case MapType():
                key, value = changed(data_type.key_type), changed(data_type.value_type)
                data_type = replace(data_type, key_type=key, value_type=value)
            case _:
                pass
        return change_type(data_type)

    fields = map(change, schema.fields)
    return StructType([replace(field, type=changed(field.type)) for field in fields])


def loosened(
    schema: StructType,
    bare: Callable[[Field], Field],
    leaf: Callable[[DataType], DataType] = lambda kind: kind,
) -> StructType:
    """Return the schema with NULL allowed at every depth.

    Args:
        schema: the schema of rows.
        bare: returns the replacement of a field, with its new name and metadata.
        leaf: returns the replacement of a type that has no inner types.
    """

    def loosen(kind: DataType) -> DataType:
        match kind:
            case ArrayType():
                return replace(kind, contains_null=True)
            case MapType():
                return replace(kind, value_contains_null=True)
            case _:
                return leaf(kind)

    return map_fields(schema, lambda field: replace(bare(field), nullable=True), loosen)


def leaf_columns(schema: StructType) -> Iterator[tuple[Path, Field]]:
    """Yield the fields that are not structs: the columns of statistics and data skipping.

    Lists, maps and variants are leaves.
    """
    for field in schema.fields:
        if isinstance(field.type, StructType):
            for path, leaf in leaf_columns(field.type):
                yield (field.name, *path), leaf
        else:
            yield (field.name,), field


def project(schema: StructType, columns: Iterable[str | Path]) -> StructType:
    """Return the schema of some columns, in this order; `a.b` selects only the field `b` of `a`.

    Raises:
        InvalidInputError: a column does not exist.
    """
    chosen: dict[str, list[Path]] = {}
    for column in columns:
        first, *rest = canonical_path_of(schema, column)
        chosen.setdefault(first, []).append(tuple(rest))
    fields = {field.name: field for field in schema.fields}
    return StructType([_narrow(fields[name], rests) for name, rests in chosen.items()])


def duplicates(schema: StructType) -> list[Path]:
    """Return the paths of fields that have the name of a sibling, ignoring case.

    Protocol: column names are compared case-insensitively.
    """
    seen: set[Path] = set()
    found: list[Path] = []
    for path, _ in walk(schema):
        key = (*path[:-1], name_key(path[-1]))
        if key in seen:
            found.append(path)
        seen.add(key)
    return found


def _narrow(field: Field, rests: list[Path]) -> Field:
    if () in rests or not isinstance(field.type, StructType):
        return field
    return replace(field, type=project(field.type, rests))


def _parts(
    data_type: DataType, path: Path, field: Field | None
) -> Iterator[tuple[Path, DataType, Field | None]]:
    """Yield path, type and, if the type is a field's type, the struct field, at every depth."""
    yield path, data_type, field
    match data_type:
        case StructType():
            for child in data_type.fields:
                yield from _parts(child.type, (*path, child.name), child)
        case ArrayType():
            yield from _parts(data_type.element_type, (*path, "element"), None)
        case MapType():
            yield from _parts(data_type.key_type, (*path, "key"), None)
            yield from _parts(data_type.value_type, (*path, "value"), None)
        case _:
            return


def _resolve(schema: StructType, path: str | Path) -> tuple[Path, Field]:
    if isinstance(path, str):
        is_dotted = "." in path and not schema.fields_named(path)
        path = tuple(path.split(".")) if is_dotted else (path,)
    if not path:
        raise InvalidInputError("cannot look up a column without a name")
    resolved: list[str] = []
    current: DataType = schema
    field = Field("", schema)
    for name in path:
        field = _step(current, name, path, resolved)
        resolved.append(field.name)
        current = field.type
    return tuple(resolved), field


def _step(current: DataType, name: str, path: Path, resolved: list[str]) -> Field:
    match current:
        case ArrayType() if name_key(name) in _LIST_SEGMENTS:
            return Field("element", current.element_type, nullable=current.contains_null)
        case MapType() if name_key(name) in _MAP_SEGMENTS:
            if name_key(name) == "key":
                return Field("key", current.key_type, nullable=False)
            return Field("value", current.value_type, nullable=current.value_contains_null)
        case StructType():
            return _by_name(current, name, path, resolved)
        case _:
            raise InvalidInputError(
                f"there is no column {'.'.join(path)!r}: {'.'.join(resolved)!r} is of type "
                f"{current} and has no field {name!r}"
            )


_HIDDEN: Final = "_metadata"
"""Spark's hidden struct, which `metadata_columns` adds to the columns that can be named."""
_INTERNAL: Final = "__deltalog"
"""How the names of columns begin that deltalog adds while an operation runs."""


def _by_name(struct: StructType, name: str, path: Path, resolved: list[str]) -> Field:
    found = struct.fields_named(name)
    if len(found) == 1:
        return found[0]
    whole = ".".join(path)
    if found:
        names = ", ".join(repr(field.name) for field in found)
        raise InvalidInputError(f"the column {whole!r} is ambiguous: it may be {names}")
    prefix = "".join(f"{part}." for part in resolved)
    names_of_tables = [known for known in struct.names if not known.startswith(_INTERNAL)]
    by_folded = {name_key(known): known for known in names_of_tables}
    names_of_tables = [known for known in names_of_tables if known != _HIDDEN] or names_of_tables
    close = difflib.get_close_matches(name_key(name), by_folded, n=1)
    if close:
        hint = f"did you mean {prefix + by_folded[close[0]]!r}?"
    elif not names_of_tables:
        hint = "there are no columns"
    else:
        shown = ", ".join(repr(prefix + known) for known in names_of_tables[:20])
        hint = f"the columns are {shown}{', …' if len(names_of_tables) > 20 else ''}"
    raise InvalidInputError(f"there is no column {whole!r}: {hint}{_on_form(whole)}")


def _on_form(name: str) -> str:
    """Return a hint about a string that is no name, but SQL; an empty string for a name."""
    if name == "*":
        return "; without a list, all columns are meant"
    if "(" in name or " as " in name_key(name):
        return "; names of columns are expected here, not SQL: sql(query) computes values"
    if "," in name:
        names = [part.strip() for part in name.split(",")]
        return f"; a list has one string for each name: {names!r}"
    return ""


# --- Readable schemas: a tree, an HTML view for notebooks, and a row for each column


_MOST_SHOWN: Final = 300
_LIMITED_KEY: Final = "__CHAR_VARCHAR_TYPE_STRING"
_PHYSICAL_KEY: Final = "delta.columnMapping.physicalName"


def schema_tree(schema: StructType) -> list[str]:
    r"""Return one line for each column, followed by the lines of the fields inside it.

    >>> from deltalog import Field, Schema
    >>> inner = Schema([Field("lat", "double"), Field("lon", "double")])
    >>> schema = Schema([Field("id", "long", nullable=False), Field("at", inner)])
    >>> print("\n".join(schema_tree(schema)))
    ├─ id: long not null
    └─ at: struct
       ├─ lat: double
       └─ lon: double
    """
    return list(_branches(list(_fields_in(schema)), ""))


def schema_rows(schema: StructType) -> list[dict[str, Any]]:
    """Return a row for each column, parents first: `column`, `type`, `nullable`, `comment`.

    Columns of structs inside lists and maps have `element`, `key` or `value` in their names.
    """
    return [
        {
            "column": ".".join(path),
            "type": str(field.type),
            "nullable": field.nullable,
            "comment": field.metadata.get("comment"),
        }
        for path, field in walk(schema)
    ]


def schema_card(schema: StructType) -> str:
    """Return the schema as HTML for a notebook: the tree, and the metadata of each column."""
    rows = _deep(schema, 0)
    shown = [
        (
            indented(name, depth),
            str(field.metadata.get(_LIMITED_KEY, _short(field.type))),
            "" if field.nullable else "not null",
            _about(field),
        )
        for depth, name, field in islice(rows, _MOST_SHOWN)
    ]
    more = sum(1 for _ in rows)
    if more:
        shown.append((indented(f"… {more} more", 0), "", "", ""))
    columns = counted(len(schema), "column")
    return card(columns, grid(shown, ("column", "type", "", "about"), omits_empty=True))


FORMS["card"] = Form(schema_card)


def _deep(kind: DataType, depth: int) -> Iterator[tuple[int, str, Field]]:
    for name, field in _fields_in(kind):
        yield depth, name, field
        yield from _deep(field.type, depth + 1)


def _about(field: Field) -> str:
    """Return a column's metadata for the HTML view; values may be of any type."""
    known = field.metadata
    facts = [str(known["comment"])] if known.get("comment") is not None else []
    if (default := known.get(CURRENT_DEFAULT_KEY)) is not None:
        facts.append(f"default {default}")
    if (expression := known.get(GENERATION_EXPRESSION_KEY)) is not None:
        facts.append(f"generated as {expression}")
    if (start := known.get(IDENTITY_START_KEY)) is not None:
        facts.append(f"identity from {start} by {known.get(IDENTITY_STEP_KEY)}")
    stored = known.get(_PHYSICAL_KEY)
    if stored is not None and stored != field.name:
        facts.append(f"stored as {stored}")
    return "; ".join(facts)


def _branches(named: Sequence[tuple[str, Field]], margin: str) -> Iterator[str]:
    for left, (name, field) in enumerate(named, start=1 - len(named)):
        yield f"{margin}{'├─' if left else '└─'} {name}: {_described(field)}"
        yield from _branches(list(_fields_in(field.type)), margin + ("│  " if left else "   "))


def _fields_in(kind: DataType, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield the fields of the outermost structs in a type, with their names in the tree."""
    match kind:
        case StructType():
            yield from ((f"{prefix}{field.name}", field) for field in kind)
        case ArrayType():
            yield from _fields_in(kind.element_type, f"{prefix}element.")
        case MapType():
            yield from _fields_in(kind.key_type, f"{prefix}key.")
            yield from _fields_in(kind.value_type, f"{prefix}value.")
        case _:
            return


def _described(field: Field) -> str:
    comment = field.metadata.get("comment")
    return (
        _short(field.type)
        + ("" if field.nullable else " not null")
        + (f"  -- {comment}" if comment else "")
    )


def _short(kind: DataType) -> str:
    """Return a type's name without the fields of structs, which have lines of their own."""
    match kind:
        case StructType():
            return "struct"
        case ArrayType():
            return f"array<{_short(kind.element_type)}>"
        case MapType():
            return f"map<{_short(kind.key_type)},{_short(kind.value_type)}>"
        case _:
            return str(kind)
