"""A table of very many files: a checkpoint with statistics in columns; few files are written."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from deltalog.storage.store import Store
from tests.support import logs

ROWS_PER_FILE = 10
CHECKPOINT = "_delta_log/00000000000000000010.checkpoint.parquet"
_SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"name","type":"string","nullable":true,"metadata":{}}]}'
)


def name_of(file: int) -> str:
    """The path of a data file."""
    spread = file * 0x9E3779B97F4A7C15 % 2**64  # names do not compress
    return f"part-{file:08}-{spread:016x}.parquet"


def build(store: Store, num_files: int, present: set[int]) -> None:
    """Write the log of a table whose file `n` has the ids from `10 n` on.

    Args:
        store: of the table.
        num_files: of the table.
        present: the files that are written; others are in the log only.
    """
    first = pa.array(range(0, num_files * ROWS_PER_FILE, ROWS_PER_FILE), pa.int64())
    last = pc.add(first, ROWS_PER_FILE - 1)
    sizes = np.full(num_files, 1000, np.int64)
    for number in present:
        data = _content(number)
        sizes[number] = len(data)
        store.put(name_of(number), data)
    bounds = [pa.StructArray.from_arrays([column], names=["id"]) for column in (first, last)]
    parsed: Any = pa.StructArray.from_arrays(
        [pa.repeat(pa.scalar(ROWS_PER_FILE, pa.int64()), num_files), *bounds],
        names=["numRecords", "minValues", "maxValues"],
    )
    adds = pa.StructArray.from_arrays(
        [
            pa.array(map(name_of, range(num_files)), pa.string()),
            pa.array([[]] * num_files, pa.map_(pa.string(), pa.string())),
            pa.array(sizes),
            pa.repeat(pa.scalar(1, pa.int64()), num_files),
            pa.repeat(pa.scalar(value=False), num_files),
            parsed,
        ],
        names=[
            "path", "partitionValues", "size", "modificationTime", "dataChange", "stats_parsed",
        ],
    )  # fmt: skip
    format_ = {"provider": "parquet", "options": []}
    few = [
        logs.PROTOCOL,
        logs.metadata(schemaString=_SCHEMA, format=format_, configuration=[]),
    ]
    rows: dict[str, Any] = {
        kind: pa.array([line.get(kind) for line in few], logs.TYPES[kind])
        for kind in ("protocol", "metaData")
    }
    table = pa.concat_tables([pa.table(rows), pa.table({"add": adds})], promote_options="default")
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=num_files // 20)
    store.put(CHECKPOINT, sink.getvalue())
    store.put("_delta_log/_last_checkpoint", f'{{"version":10,"size":{len(table)}}}'.encode())
    store.put("_delta_log/00000000000000000010.json", b'{"commitInfo":{}}\n')


def _content(number: int) -> bytes:
    ids = pa.array(range(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE), pa.int64())
    names = [f"row {id_:09}" for id_ in ids.to_pylist()]
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": ids, "name": names}), sink)
    return sink.getvalue()
