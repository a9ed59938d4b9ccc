"""Compare two streams of rows as multisets, in bounded memory.

Rows are equal if all their columns are equal; NULL equals NULL. Beyond the memory limit, rows are
hashed into buckets on disk, by their keys or, without keys, by all columns. So rows with equal keys
are in the same bucket. The module `diff` decides which rows are compared.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import pyarrow as pa

from deltalog._util.kernels import arrow, compute
from deltalog.schema.metadata_columns import CHANGE_TYPE
from deltalog.storage.faults import disk_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DELETE, INSERT, BEFORE, AFTER = "delete", "insert", "update_preimage", "update_postimage"

_BUCKETS: Final = 64
_SIDE: Final = "side"
_ROW: Final = "row"
_PURPOSE: Final = "compare rows"
_OUTPUT_ROWS: Final = 1 << 16
_DAY_BITS: Final = 32


def with_change_type(batch: pa.RecordBatch, change_type: str) -> pa.RecordBatch:
    """Return the batch with a column `_change_type` that has this value in every row."""
    values = arrow.repeat(pa.scalar(change_type), batch.num_rows)
    return batch.append_column(pa.field(CHANGE_TYPE, pa.string()), values)


def match_rows(
    before: Iterable[pa.RecordBatch],
    after: Iterable[pa.RecordBatch],
    *,
    schema: pa.Schema,
    keys: Sequence[str],
    memory_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the differences between two streams of rows.

    Each row of one stream cancels at most one equal row of the other stream. A remaining row of
    `before` and a remaining row of `after` with the same key are an update: the pre-image, then the
    post-image. All other remaining rows are deletes and inserts.

    Args:
        before: batches of `schema`.
        after: batches of `schema`.
        schema: schema of both streams.
        keys: columns that identify a row; without keys there are no updates.
        memory_bytes: about this size of rows stays in memory; larger inputs are written to disk.

    Yields:
        Batches with the columns of `schema` and `_change_type`.

    Cost: one pass over both streams. If they exceed `memory_bytes`, all rows are also written to
    and read from a temporary directory once.
    """
    with ExitStack() as stack:
        shelf = _Shelf(stack, schema, tuple(keys) or tuple(schema.names), memory_bytes)
        for number, batches in enumerate((before, after)):
            for batch in batches:
                if batch.num_rows:
                    shelf.put(number, batch)
        for left, right in shelf.pairs():
            yield from _differences(left, right, keys)


class _Shelf:
    """The rows of both streams, in memory or, beyond the limit, in buckets on disk.

    Side 0 is the stream `before`, side 1 the stream `after`.
    """

    def __init__(
        self, stack: ExitStack, schema: pa.Schema, by: Sequence[str], memory_bytes: int
    ) -> None:
        self._stack = stack
        self._schema = schema
        self._by = by
        self._free_bytes = memory_bytes
        self._held: tuple[list[pa.RecordBatch], ...] = ([], [])
        self._directory: Path | None = None
        self._writers: dict[tuple[int, int], pa.RecordBatchStreamWriter] = {}

    def put(self, side: int, batch: pa.RecordBatch) -> None:
        """Add a batch of one side."""
        if self._directory is not None:
            self._write(side, batch)
            return
        self._held[side].append(batch)
        self._free_bytes -= batch.nbytes
        if self._free_bytes < 0:
            self._move_out()

    def pairs(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield the rows of both sides, one bucket after the other."""
        if self._directory is None:
            yield self._table(0), self._table(1)
            return
        with disk_errors(_PURPOSE):
            for writer in self._writers.values():
                writer.close()
        for bucket in range(_BUCKETS):
            yield self._read(0, bucket), self._read(1, bucket)

    def _table(self, side: int) -> pa.Table:
        return pa.Table.from_batches(self._held[side], schema=self._schema)

    def _move_out(self) -> None:
        with disk_errors(_PURPOSE):
            made = TemporaryDirectory(prefix="deltalog-diff-", ignore_cleanup_errors=True)
        self._directory = Path(self._stack.enter_context(made))
        for side, batches in enumerate(self._held):
            for batch in batches:
                self._write(side, batch)
            batches.clear()

    def _write(self, side: int, batch: pa.RecordBatch) -> None:
        buckets = self._buckets(batch)
        for bucket in compute.unique(buckets).to_pylist():
            rows = batch.filter(compute.equal(buckets, bucket))
            with disk_errors(_PURPOSE):
                self._writer(side, bucket).write_batch(rows)

    def _writer(self, side: int, bucket: int) -> pa.RecordBatchStreamWriter:
        if (side, bucket) not in self._writers:
            sink = self._stack.enter_context(pa.OSFile(str(self._path(side, bucket)), "wb"))
            self._writers[side, bucket] = pa.ipc.new_stream(sink, self._schema)
        return self._writers[side, bucket]

    def _read(self, side: int, bucket: int) -> pa.Table:
        if (side, bucket) not in self._writers:
            return self._schema.empty_table()
        with pa.OSFile(str(self._path(side, bucket)), "rb") as source:
            return pa.ipc.open_stream(source).read_all()

    def _path(self, side: int, bucket: int) -> Path:
        assert self._directory is not None  # noqa: S101  # `_move_out` sets it before the first call
        return self._directory / f"{side}-{bucket}.arrows"

    def _buckets(self, batch: pa.RecordBatch) -> Any:
        texts = [
            _text(column)
            for name in self._by
            for column in _comparable(batch.column(batch.schema.get_field_index(name)))
        ]
        joined = texts[0] if texts else arrow.repeat(pa.scalar(b""), batch.num_rows)
        if len(texts) > 1:
            joined = compute.binary_join_element_wise(*texts, b"\0")
        return pa.array([crc32(text) % _BUCKETS for text in joined.to_pylist()], pa.int32())


def _differences(left: pa.Table, right: pa.Table, keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if not left.num_rows and not right.num_rows:
        return
    rows = pa.concat_tables([left, right])
    split = left.num_rows
    kept = _unmatched(rows, split)
    if keys:
        gone, come, pairs = _paired(rows.take(kept).select(list(keys)), kept, split)
        yield from _with_kinds(rows, pairs, [BEFORE, AFTER])
    else:
        is_gone = compute.less(kept, split)
        gone, come = kept.filter(is_gone), kept.filter(compute.invert(is_gone))
    yield from _with_kinds(rows, gone, [DELETE])
    yield from _with_kinds(rows, come, [INSERT])


def _with_kinds(rows: pa.Table, numbers: Any, kinds: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows with these numbers. Their change types alternate through `kinds`."""
    for start in range(0, len(numbers), _OUTPUT_ROWS):
        found = rows.take(numbers.slice(start, _OUTPUT_ROWS)).combine_chunks()
        kinds_column = pa.array(
            itertools.islice(itertools.cycle(kinds), found.num_rows), pa.string()
        )
        yield from found.append_column(
            pa.field(CHANGE_TYPE, pa.string()), kinds_column
        ).to_batches()


def _unmatched(rows: pa.Table, split: int) -> Any:
    """Return the numbers of the rows that no equal row of the other side cancels, ascending.

    Rows below `split` are those of `before`.
    """
    groups = _grouped(rows, _numbered(rows.num_rows, split))
    excess = groups.column(f"{_SIDE}_sum")
    groups = groups.filter(compute.not_equal(excess, 0))
    excess = compute.abs(groups.column(f"{_SIDE}_sum"))
    lists = groups.column(f"{_ROW}_list")
    one_sided = compute.equal(excess, compute.list_value_length(lists))
    found = [compute.list_flatten(lists.filter(one_sided))]
    mixed = groups.filter(compute.invert(one_sided))
    several: list[Any] = mixed.select([f"{_SIDE}_sum", f"{_ROW}_list"]).to_pylist()
    some = []
    for group in several:
        net, numbers = group[f"{_SIDE}_sum"], group[f"{_ROW}_list"]
        some.append(numbers[:-net] if net < 0 else numbers[-net:])
    found.append(pa.chunked_array([pa.array(itertools.chain(*some), pa.int64())]))
    numbers = _joined(found)
    return numbers.take(compute.sort_indices(numbers))  # rows of `before` come first


def _paired(keys: pa.Table, numbers: Any, split: int) -> tuple[Any, Any, Any]:
    """Return the numbers of deleted rows, of inserted rows, and of updated rows.

    Updated rows are pairs with the same key: pre-image, post-image, pre-image, and so on.
    """
    sides = compute.if_else(compute.less(numbers, split), -1, 1)
    groups = _grouped(keys, pa.table({_SIDE: sides, _ROW: numbers}))
    lists, net = groups.column(f"{_ROW}_list"), groups.column(f"{_SIDE}_sum")
    size = compute.list_value_length(lists)
    is_pair = compute.and_(compute.equal(size, 2), compute.equal(net, 0))
    is_gone = compute.equal(compute.negate(net), size)
    is_come = compute.equal(net, size)
    gone = [compute.list_flatten(lists.filter(is_gone))]
    come = [compute.list_flatten(lists.filter(is_come))]
    pairs = [compute.list_flatten(lists.filter(is_pair))]
    rest = compute.invert(compute.or_(is_pair, compute.or_(is_gone, is_come)))
    shared: list[Any] = lists.filter(rest).to_pylist()  # contains no None
    for found in shared:  # the rows of one key, several of them from the same side
        old = [number for number in found if number < split]
        new = [number for number in found if number >= split]
        both = min(len(old), len(new))
        mated = itertools.chain(*zip(old[:both], new[:both], strict=True))
        pairs.append(pa.chunked_array([pa.array(mated, pa.int64())]))
        gone.append(pa.chunked_array([pa.array(old[both:], pa.int64())]))
        come.append(pa.chunked_array([pa.array(new[both:], pa.int64())]))
    return _joined(gone), _joined(come), _joined(pairs)


def _joined(parts: Sequence[Any]) -> Any:
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.int64())


def _numbered(count: int, split: int) -> pa.Table:
    numbers = arrow.arange(0, count)
    return pa.table({_SIDE: compute.if_else(compute.less(numbers, split), -1, 1), _ROW: numbers})


def _grouped(rows: pa.Table, numbers: pa.Table) -> pa.Table:
    """Group equal rows. Return for each group the sum of `side` (-1 or 1) and the list of `row`."""
    columns = [column for name in rows.column_names for column in _comparable(rows.column(name))]
    # Without columns to compare, all rows are equal, but `group_by` needs at least one key.
    columns = columns or [arrow.repeat(pa.scalar(0), rows.num_rows)]
    names = [str(number) for number in range(len(columns))]
    table = pa.table([*columns, *numbers.columns], names=[*names, *numbers.column_names])
    return table.group_by(names, use_threads=False).aggregate([(_SIDE, "sum"), (_ROW, "list")])


def _comparable(column: Any) -> list[Any]:
    """Return columns that Arrow can group by and that are equal for the same rows as this column.

    A struct becomes several columns, and a list or map one column of strings.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column.type, pa.ExtensionType):
        column = column.storage
    kind = column.type
    if pa.types.is_null(kind):
        return []
    if pa.types.is_struct(kind):
        # `flatten` returns NULL members for a NULL struct. The column of `is_valid` distinguishes
        # such a struct from {NULL, NULL}.
        members = [found for part in column.flatten() for found in _comparable(part)]
        return [column.is_valid(), *members]
    if pa.types.is_nested(kind):
        values = column.cast(_counted(kind)).to_pylist()
        texts = [None if value is None else repr(value) for value in values]
        return [pa.array(texts, pa.string())]
    return [column]


def _counted(kind: Any) -> Any:
    """Replace times by integers and strings by bytes in a type.

    Python cannot represent all values of the original types.
    """
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(_counted(part.type)) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(_counted(kind.key_type)),
            kind.item_field.with_type(_counted(kind.item_type)),
        )
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_counted(kind.value_type)))
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == _DAY_BITS else pa.int64()
    return pa.binary() if pa.types.is_string(kind) else kind


def _text(column: Any) -> Any:
    """Return bytes that are equal for equal values; NULL becomes one fixed value."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    if not pa.types.is_binary(column.type):
        column = column.cast(pa.string()).cast(pa.binary())
    return compute.fill_null(column, b"\1")
