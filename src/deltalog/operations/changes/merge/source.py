"""The rows of a merge's source, stored because a merge reads them more than once.

Small sources are stored in memory, large sources in a temporary Arrow file that is memory-mapped.
Rows are addressed by their number.
"""

from __future__ import annotations

import difflib
import tempfile
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.argument_types import kind_of
from deltalog._util.escaping import name_key
from deltalog._util.kernels import Array, pc
from deltalog._util.previews import keeps_nanoseconds
from deltalog.data.write.fit import Fit, in_microseconds, is_finer, tell_of_cut
from deltalog.data.write.source import may_lack_columns, open_batches, warn_if_read_before
from deltalog.errors import InvalidInputError
from deltalog.expressions import Column, Literal, map_columns, parse_sql, to_sql
from deltalog.expressions.coercion import FINE_MOMENTS
from deltalog.expressions.filters import check_quoted_names, has_field, warn_of_null
from deltalog.expressions.mistakes import hint_for_missing
from deltalog.expressions.nodes import col
from deltalog.protocol.features.identity_columns import identity_columns
from deltalog.schema import (
    StructType,
    conform,
    duplicates,
    from_arrow_schema,
    to_arrow_schema,
    to_arrow_type,
)
from deltalog.schema.arrow import type_of_query
from deltalog.schema.conform import check_zones
from deltalog.schema.primitives.moments import has_nanoseconds
from deltalog.schema.types import (
    INTEGER,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NANOS_NTZ,
    YEAR_TO_MONTH,
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
)
from deltalog.storage.faults import disk_errors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from deltalog.expressions import Expression

MEMORY_BYTES: Final = 256 * 1024 * 1024
"""The maximum number of bytes of a source that is stored in memory."""
_BATCH_ROWS: Final = 1 << 18
_SIMILAR_NAME: Final = 0.6
_SIMILAR_WORD: Final = 0.75
"""The minimum similarity of a name that is suggested, for `a.b` and for a bare word."""


class MergeSource:
    """The rows of a source; a context manager that removes its temporary file.

    Args:
        data: rows in any form that a write accepts.
        memory_bytes: the size above which the source is written to a temporary file.

    Attributes:
        schema: schema of the source.

    Raises:
        InvalidInputError: `data` is not of a supported type, or has no columns; or two columns have
            the same name ignoring case.
    """

    def __init__(self, data: object, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self._spilled: _Directory | None = None
        reader = open_batches(data)
        if not reader.schema.names and not may_lack_columns(data):
            raise InvalidInputError(
                f"cannot merge the rows of {kind_of(data)}: it has no columns, as an iterator that "
                "was already read, or an empty dataframe; pass [] for no rows"
            )
        found = from_arrow_schema(reader.schema, declared=True)
        self.schema: StructType = StructType(list(found.fields))
        fine = [part.name for part in reader.schema if has_nanoseconds(part.type)]
        # Store these columns with nanoseconds. `beside` decides which of them are reduced to
        # microseconds when they are read.
        self._fine = self._cut = frozenset(fine)
        self._lossy: set[str] = set()
        self._query_typed = frozenset(part.name for part in reader.schema if type_of_query(part))
        # The rows are stored in UTC, so `fitted` needs the zones that a write would refuse.
        self._given = reader.schema
        twice = duplicates(self.schema)
        if twice:
            raise InvalidInputError(
                f"the source has the column {'.'.join(twice[0])!r} more than once, ignoring case"
            )
        self._arrow = pa.schema(
            [
                _held(field.with_nullable(nullable=True), is_fine=field.name in self._fine)
                for field in to_arrow_schema(self.schema)
            ]
        )
        # A table or batch remains in memory anyway, so do not write it to a temporary file.
        budget = None if isinstance(data, pa.Table | pa.RecordBatch) else memory_bytes
        try:
            batches = self._gather(reader, budget)
        except BaseException:
            self.close()
            raise
        if sum(batch.nbytes for batch in batches) <= memory_bytes:
            table = pa.Table.from_batches(batches, schema=self._arrow).combine_chunks()
            batches = table.to_batches()
        self._batches = _Batches(batches)
        self._starts = [0]
        for batch in batches:
            self._starts.append(self._starts[-1] + batch.num_rows)
        warn_if_read_before(data, self.num_rows)

    def beside(self, target: StructType) -> MergeSource:
        """Return the source with its types adapted to those of a table.

        A timestamp column keeps its nanoseconds if the table's column of the same name has
        nanoseconds. A column that the table lacks keeps them if another column has nanoseconds, or
        on request. Otherwise the timestamps are reduced to microseconds, with the same notice as
        in a write. An integer column becomes a year-month interval if the table's column is one.
        This excludes columns of query results, whose types already distinguish the two.
        """
        if not self.schema.fields:
            return self._without_rows(target)
        known = {name_key(field.name): field.type for field in target}
        asks = keeps_nanoseconds() or any(kind in FINE_MOMENTS for kind in known.values())
        fields: list[Field] = []
        cut: set[str] = set()
        for field in self.schema:
            theirs = known.get(name_key(field.name))
            if field.name in self._fine and (theirs in FINE_MOMENTS or (asks and theirs is None)):
                has_zone = field.type == TIMESTAMP
                kind = TIMESTAMP_NANOS if has_zone else TIMESTAMP_NANOS_NTZ
                fields.append(replace(field, type=kind))
            elif field.name not in self._query_typed and (theirs, field.type) == (
                YEAR_TO_MONTH,
                INTEGER,
            ):
                fields.append(replace(field, type=YEAR_TO_MONTH))
            else:
                cut |= {field.name} & self._fine
                fields.append(field)
        for name in sorted(cut & self._lossy):
            tell_of_cut(name)
        seen = copy(self)
        seen.schema = StructType(fields)
        seen._cut = frozenset(cut)  # noqa: SLF001  # also a `MergeSource`
        return seen

    def _without_rows(self, target: StructType) -> MergeSource:
        """Return a source without rows, with the columns that rows of a table may assign.

        An empty list has no columns, and engines such as Ray forget those of empty results.
        """
        assigned = {column.name for column in identity_columns(target)}
        seen = copy(self)
        seen.schema = StructType([field for field in target if field.name not in assigned])
        seen._arrow = to_arrow_schema(seen.schema)  # noqa: SLF001  # also a `MergeSource`
        return seen

    def fitted(self, target: StructType, time_zone: str) -> MergeSource:
        """Return the source with its values converted to a table's types, as a write converts them.

        Timestamps with nanoseconds are not converted. Fields of structs get the order of the table,
        because keys are compared by position; other nested columns are not converted.

        Args:
            target: schema of the table, including columns that the merge adds.
            time_zone: the zone for converting `timestamp_ntz` values to `timestamp` columns.

        Raises:
            SchemaMismatchError: a value cannot be converted without loss.

        Cost: one pass over the columns of other types.
        """
        known = {name_key(field.name): field for field in target}
        for part in self._given:
            if (theirs := known.get(name_key(part.name))) is not None:
                check_zones(part.type, theirs.type, (part.name,))
        fields = {
            field.name: replace(field, type=theirs.type)
            for field in self.schema
            if (theirs := known.get(name_key(field.name))) is not None
            and field.name not in self._fine
            and field.type != theirs.type
            and _has_same_parts(field.type, theirs.type)
        }
        if not fields:
            return self
        names = list(fields)
        fit = Fit(
            pa.schema([self._arrow.field(name) for name in names]),
            StructType(list(fields.values())),
            time_zone=time_zone,
            casts=True,
        )
        fit.counts_rows = True
        seen = copy(self)
        seen.schema = StructType([fields.get(field.name, field) for field in self.schema])
        batches = _Batches()
        for batch in self._batches:
            found = fit.apply(batch.select(names))
            columns = [found.get(name, batch.column(name)) for name in batch.schema.names]
            batches.append(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))
        seen._batches = batches  # noqa: SLF001  # also a `MergeSource`
        seen._arrow = pa.schema(  # noqa: SLF001  # as above
            [
                part.with_type(to_arrow_type(fields[part.name].type))
                if part.name in fields
                else part
                for part in self._arrow
            ]
        )
        return seen

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self._starts[-1]

    @property
    def size_bytes(self) -> int:
        """The size of the rows in memory, in bytes."""
        return sum(batch.nbytes for batch in self._batches)

    def batches(self, names: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the batches with these columns, each after the number of its first row."""
        for start, batch in zip(self._starts, self._batches, strict=False):
            columns = self._shown(batch.select(list(names)))
            for offset in range(0, batch.num_rows, _BATCH_ROWS):
                yield start + offset, columns.slice(offset, _BATCH_ROWS)

    def take(self, rows: Array, names: Sequence[str]) -> pa.RecordBatch:
        """Return rows by number, in the given order.

        Args:
            rows: row numbers, without NULL.
            names: names of the columns to return.
        """
        return self._shown(self._stored(rows, list(names)))

    def subset(self, rows: Array) -> MergeSource:
        """Return a source with only these rows, in memory.

        Args:
            rows: ascending row numbers, without NULL.
        """
        batch = self._stored(rows, self._arrow.names)
        seen = copy(self)
        seen._spilled = None  # noqa: SLF001  # also a `MergeSource`
        seen._batches = _Batches([batch] if len(rows) else [])  # noqa: SLF001  # as above
        seen._starts = [0, len(rows)] if len(rows) else [0]  # noqa: SLF001  # as above
        return seen

    def _stored(self, rows: Array, names: list[str]) -> pa.RecordBatch:
        """Return rows by number with the values that are stored, see `_shown`."""
        if len(self._batches) == 1:
            return self._batches[0].select(names).take(rows)
        order = pc.array_sort_indices(rows)
        ascending = rows.take(order)
        parts = []
        for number, batch in enumerate(self._batches):
            first, last = (_position(ascending, self._starts[n]) for n in (number, number + 1))
            if first < last:
                local: Any = pc.subtract(ascending.slice(first, last - first), self._starts[number])
                parts.append(batch.select(names).take(local))
        schema = pa.schema([self._arrow.field(name) for name in names])
        table = pa.Table.from_batches(parts, schema=schema).combine_chunks()
        back: Any = pc.array_sort_indices(order)
        (whole,) = table.take(back).combine_chunks().to_batches() or [_empty(schema)]
        return whole

    def close(self) -> None:
        """Release the rows, and remove the temporary file."""
        self._batches = _Batches()
        self._starts = [0]
        if self._spilled is not None:
            self._spilled.cleanup()
            self._spilled = None

    def __enter__(self) -> Self:
        """Return the source itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Call `close`."""
        self.close()

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self._lossy |= {name for name in self._fine - self._lossy if is_finer(batch.column(name))}
        return conform(batch, self._arrow)

    def _shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for place, part in enumerate(batch.schema):
            if part.name in self._cut:
                micros = in_microseconds(batch.column(place))
                batch = batch.set_column(place, part.with_type(micros.type), micros)
        return batch

    def _gather(self, reader: pa.RecordBatchReader, budget: int | None) -> list[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in reader:
            held.append(self._conformed(batch))
            size += batch.nbytes
            if budget is not None and size > budget:
                return self._spill(held, reader)
        return [batch for batch in held if batch.num_rows]

    def _spill(
        self, held: list[pa.RecordBatch], reader: pa.RecordBatchReader
    ) -> list[pa.RecordBatch]:
        with disk_errors("hold the source of a merge"):
            self._spilled = _Directory(prefix="deltalog-merge-")
            path = str(Path(self._spilled.name) / "source.arrow")
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, self._arrow) as writer:
                while held:
                    writer.write_batch(held.pop(0))
                for batch in reader:
                    writer.write_batch(self._conformed(batch))
        mapped = pa.ipc.open_file(pa.memory_map(path))
        batches = (mapped.get_batch(number) for number in range(mapped.num_record_batches))
        return [batch for batch in batches if batch.num_rows]


class _Batches(list[pa.RecordBatch]):
    """Batches that are pickled as an Arrow stream.

    A pickled slice of an Arrow table would contain the whole table.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the stream, for pickle."""
        if not self:
            return _Batches, ()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self[0].schema) as writer:
            for batch in self:
                writer.write_batch(batch)
        return _read_batches, (sink.getvalue(),)


def _read_batches(stream: pa.Buffer) -> _Batches:
    return _Batches(pa.ipc.open_stream(stream))


class _Directory(tempfile.TemporaryDirectory[str]):
    """A temporary directory; a pickled source does not own it."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return None, for pickle."""
        return type(None), ()


def _has_same_parts(mine: DataType, theirs: DataType) -> bool:
    """Whether two types are both primitive, or differ only in the order of fields of structs."""
    if isinstance(mine, PrimitiveType) and isinstance(theirs, PrimitiveType):
        return True
    return _in_order(mine) == _in_order(theirs)


def _in_order(kind: DataType) -> DataType:
    """Return a type with the fields of structs ordered by name."""
    match kind:
        case StructType():
            fields = [Field(name_key(field.name), _in_order(field.type)) for field in kind]
            fields.sort(key=lambda field: field.name)
            return StructType(fields)
        case ArrayType():
            return ArrayType(_in_order(kind.element_type))
        case MapType():
            return MapType(_in_order(kind.key_type), _in_order(kind.value_type))
        case _:
            return kind


def _held(field: pa.Field[Any], *, is_fine: bool) -> pa.Field[Any]:
    kind: Any = field.type
    return field.with_type(pa.timestamp("ns", kind.tz)) if is_fine else field


def _position(ascending: Array, row: int) -> int:
    """Return how many of the ascending numbers are less than `row`, by binary search."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle].as_py() < row:
            low = middle + 1
        else:
            high = middle
    return low


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


# --- Resolution of the column names in a merge's SQL


TARGET: Final = "target"
SOURCE: Final = "source"
BOTH: Final = (TARGET, SOURCE)


class Names:
    """The columns and aliases of both sides.

    Args:
        target: schema of the table.
        source: schema of the source.
        target_alias: another name of the table in SQL, besides `target`.
        source_alias: another name of the source in SQL, besides `source`.
        parameters: values for `:name` in SQL.

    Attributes:
        schema: schema of the rows on which expressions are evaluated. It has two structs, `target`
            and `source`.
    """

    def __init__(
        self,
        target: StructType,
        source: StructType,
        *,
        target_alias: str | None = None,
        source_alias: str | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        self._sides = {TARGET: target, SOURCE: source}
        self.schema: StructType = StructType(
            [Field(TARGET, target, nullable=False), Field(SOURCE, source, nullable=False)]
        )
        self._parameters = parameters
        self._aliases = {SOURCE: SOURCE, TARGET: TARGET}
        given = [(source_alias, SOURCE), (target_alias, TARGET)]
        keys = [(_alias_key(alias, side), side) for alias, side in given if alias is not None]
        named = dict(keys)
        if len(named) < len(keys):
            raise InvalidInputError(f"source and target cannot both be called {source_alias!r}")
        # If an alias is the other side's own name, that name would mean both sides.
        if named.get(TARGET) == SOURCE or named.get(SOURCE) == TARGET:
            self._aliases.clear()
            _check_named(source_alias, target_alias)
        self._aliases |= named
        self._shown = {SOURCE: source_alias or SOURCE, TARGET: target_alias or TARGET}

    def parse(self, sql: str | Expression, sides: Collection[str] = BOTH) -> Expression:
        """Parse SQL, and qualify its columns with `target` or `source`.

        Args:
            sql: SQL or a parsed expression.
            sides: the sides whose columns may be used. A WHEN NOT MATCHED clause, for example, has
                no row of the target.

        Raises:
            InvalidInputError: a column is unknown or ambiguous, or its side has no row.
        """
        if isinstance(sql, str):
            names = {name for side in sides for name in self._sides[side].names}
            parsed = parse_sql(sql, parameters=self._parameters, columns=names, quotes_names=True)
            warn_of_null(parsed)
            check_quoted_names(parsed, sql, self._all_names(sides))
        else:
            parsed = sql
        return map_columns(parsed, lambda column: self._place(column, sides))

    def target_path(self, key: str | tuple[str, ...]) -> tuple[str, ...]:
        """Return the path of an assigned column without the table's name or alias.

        Args:
            key: the path, or its string. Names with dots need no backticks, as in an update.

        Raises:
            InvalidInputError: the column belongs to the source, or the string means two columns.
        """
        if isinstance(key, tuple):
            return key
        table = self._sides[TARGET]
        known = {name_key(name) for name in table.names}
        if name_key(key) in known and ("." not in key or "`" in key):
            return (key,)
        parts = col(key).path
        side = self._aliases.get(name_key(parts[0])) if len(parts) > 1 else None
        inner = parts[1:]
        if (
            side == TARGET
            and name_key(inner[0]) not in known
            and name_key(".".join(inner)) in known
        ):
            inner = (".".join(inner),)
        # The column of the table that the string means: a name with dots, a field, after an alias.
        meant: list[tuple[str, ...]] = [(key,)] if name_key(key) in known else []
        if parts[0] != TARGET and has_field(table, parts):
            meant.append(parts)
        if side == TARGET and name_key(inner[0]) in known:
            meant.append(inner)
        if len(meant) > 1 and side == TARGET:
            own = self._shown[TARGET]
            both = " or ".join(
                repr(f"{own}.{'.'.join(map(_in_backticks, path))}") for path in meant
            )
            raise InvalidInputError(f"cannot assign {key!r}: it may be {both}; write one of these")
        if not meant and side == SOURCE:
            raise InvalidInputError(
                f"cannot assign {key!r}: it is a column of the source; assign columns of the table"
            )
        return meant[0] if meant else inner if side else parts

    def _all_names(self, sides: Collection[str]) -> list[str]:
        """Return the names of the columns, without and with the aliases of their sides."""
        bare = [(side, name) for side in sides for name in self._sides[side].names]
        aliases = [(alias, side) for alias, side in self._aliases.items() if side in sides]
        return [name for _, name in bare] + [
            f"{alias}.{name}" for alias, owner in aliases for side, name in bare if side == owner
        ]

    def shown(self, side: str, name: str) -> str:
        """Return the name of a column with the alias of its side, for messages."""
        return f"{self._shown[side]}.{name}"

    def _place(self, column: Column, sides: Collection[str]) -> Column:
        path = column.path
        side = self._aliases.get(name_key(path[0]))
        if side is not None and len(path) > 1:
            if side not in sides:
                raise InvalidInputError(
                    f"cannot use {column.name!r} here: this clause has no row of the {side}"
                )
            if name_key(path[1]) not in map(name_key, self._sides[side].names):
                raise InvalidInputError(
                    f"there is no column {column.name!r}: {self._hint(column, (side,))}"
                )
            return Column((side, *path[1:]))
        found = [
            side
            for side in sides
            if name_key(path[0]) in {name_key(name) for name in self._sides[side].names}
        ]
        if len(found) == 1:
            return Column((found[0], *path))
        if found:
            both = [f"{self._shown[side]}.{column.name}" for side in found]
            raise InvalidInputError(
                f"the column {column.name!r} is ambiguous: it may be {' or '.join(map(repr, both))}"
                f"; write the alias, as in {' = '.join(both[::-1])}"
            )
        if len(path) > 1 and any(
            name_key(path[1]) in map(name_key, self._sides[side].names) for side in sides
        ):
            aliases = " and ".join(repr(self._shown[side]) for side in (SOURCE, TARGET))
            raise InvalidInputError(
                f"there is no alias {path[0]!r}: the aliases are {aliases}; name "
                f"{self._ways_to_name(path[0])}; in SQL, write AS {path[0]} after the table or the "
                "source"
            )
        if len(path) == 1 and name_key(path[0]) in map(name_key, self._all_names(sides)):
            raise InvalidInputError(
                f"there is no column `{path[0]}`: backticks quote one name; write {path[0]}"
            )
        raise InvalidInputError(f"there is no column {column.name!r}: {self._hint(column, sides)}")

    def _ways_to_name(self, alias: str) -> str:
        """Return the arguments that give the alias to a side; a side that has one keeps it."""
        ways = {
            TARGET: f"the table by target_alias={alias!r}",
            SOURCE: f"the rows by source_alias={alias!r}",
        }
        unnamed = [side for side in (TARGET, SOURCE) if self._shown[side] == side]
        return ", or ".join(ways[side] for side in unnamed or ways)

    def _hint(self, column: Column, sides: Collection[str]) -> str:
        known = {
            f"{self._shown[side]}.{name_key(name)}": f"{self._shown[side]}.{name}"
            for side in sides
            for name in self._sides[side].names
        }
        bare = {name.rpartition(".")[2]: shown for name, shown in known.items()}
        # A bare word may be a string without quotes: suggest only very similar names for it.
        is_word = len(column.path) == 1
        cutoff = _SIMILAR_WORD if is_word else _SIMILAR_NAME
        alias, _, rest = name_key(column.name).partition(".")
        if is_word or alias not in self._aliases:
            close = difflib.get_close_matches(name_key(column.name), [*known, *bare], 1, cutoff)
        else:  # the alias is right, so that it makes no names similar
            close = difflib.get_close_matches(rest, bare, 1, cutoff)
        if close:
            hint = f"did you mean {(known.get(close[0]) or bare[close[0]])!r}?"
        else:
            hint = f"the columns are {', '.join(map(repr, list(known.values())[:20]))}"
        if is_word and (missing := hint_for_missing(column.name)):
            return f"{hint}; {missing}"
        if close or not is_word:
            return hint
        return f"{hint}; a string has quotes: {to_sql(Literal(column.name))}"


def _in_backticks(name: str) -> str:
    return f"`{name}`"


def _alias_key(alias: str, side: str) -> str:
    """Return an alias as names in SQL are compared, without backticks."""
    key = name_key(alias.strip().strip("`"))
    if not key.strip():
        raise InvalidInputError(
            f"cannot call the {side} {alias!r}: expected a name; leave {side}_alias out to call it "
            f"{side!r}"
        )
    return key


def sides_of(paths: Collection[tuple[str, ...]]) -> set[str]:
    """Return the sides to which these qualified columns belong."""
    return {path[0] for path in paths}


def without_side(expression: Expression) -> Expression:
    """Remove the side's name from the columns of an expression that reads only one side."""
    return map_columns(expression, lambda column: Column(column.path[1:]))


def _check_named(source_alias: str | None, target_alias: str | None) -> None:
    """Raise if the alias of one side is the name of the other side, which has no alias."""
    if source_alias is None or target_alias is None:
        own, side, other = (
            (source_alias, "source", "target")
            if target_alias is None
            else (target_alias, "target", "source")
        )
        raise InvalidInputError(
            f"cannot call the {side} {own!r}: this is the name of the {other}; pass "
            f"{other}_alias, too, or choose another {side}_alias"
        )
