"""Deletion vectors that contradict their file: refused by every operation that reads them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from deltalog import DeltaTable, sql, write_deltalake
from deltalog.errors import DeletionVectorError
from deltalog.protocol.deletion_vectors import DeletionBitmap, encode_z85
from deltalog.transaction.masks import write_masks
from tests.support import logs
from tests.support.copied_groups import copying
from tests.support.facade import FEED, VECTORS, fresh_rows
from tests.support.raw_tables import DataTable, vector_body

Vector = dict[str, Any]
NUM_ROWS = 10
IDS = list(range(NUM_ROWS))


def in_log(body: bytes) -> tuple[str, Vector]:
    """A descriptor with the vector itself."""
    text = encode_z85(body + bytes(-len(body) % 4))
    return "", {"storageType": "i", "pathOrInlineDv": text}


def in_log_padded(body: bytes) -> tuple[str, Vector]:
    """The same with a `#` for each missing byte; vectors of one row lack two."""
    assert len(body) % 4 == 2
    number = int.from_bytes(body[-2:], "big")
    alphabet = (
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
    last = "".join(alphabet[number // 85**power % 85] for power in (2, 1, 0))
    return "", {"storageType": "i", "pathOrInlineDv": encode_z85(body[:-2]) + "##" + last}


def in_file(body: bytes) -> tuple[str, Vector]:
    """A descriptor of a file by its UUID, at an offset."""
    name = UUID(int=len(body) + 7)
    place = {"storageType": "u", "pathOrInlineDv": encode_z85(name.bytes), "offset": 1}
    return f"deletion_vector_{name}.bin", place


def in_file_by_path(body: bytes) -> tuple[str, Vector]:
    """A descriptor of a file by its path."""
    path = f"memory://table/deletion_vector_{len(body)}.bin"
    return path, {"storageType": "p", "pathOrInlineDv": path, "offset": 1}


PLACES = [in_log, in_log_padded, in_file, in_file_by_path]
Place = Callable[[bytes], tuple[str, Vector]]


def masked(place: Place, row: int, cardinality: int = 1, **members: object) -> DataTable:
    """Version 1: ten rows; version 2: the same file with a vector that marks one row.

    Args:
        place: where the vector is.
        row: that it marks.
        cardinality: that its descriptor tells.
        members: more of the descriptor.
    """
    high, low = divmod(row, 2**32)
    one = vector_body([low])
    body = one[:12] + struct.pack("<I", high) + one[16:]
    path, vector = place(body)
    table = DataTable(
        [("id", "long"), ("v", "long")],
        features=["deletionVectors", "changeDataFeed"],
        configuration={**VECTORS, **FEED},
    )
    if path:
        frame = struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
        table.store.put(path, b"\x01" + frame)
    add = table.add({"id": IDS, "v": IDS})
    table.commit(add)
    vector |= {"sizeInBytes": len(body), "cardinality": cardinality, **members}
    again = {**add["add"], "deletionVector": vector}
    table.commit(logs.remove(add["add"]["path"], dataChange=True), {"add": again})
    return table


Act = Callable[[DeltaTable], object]
SOURCE = pa.table({"id": [2, 50], "v": [0, 0]})


def merge(table: DeltaTable) -> object:
    """Update one row, insert another."""
    merger = table.merge(SOURCE, "t.id = s.id", source_alias="s", target_alias="t")
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


READS: dict[str, Act] = {
    "read": lambda table: table.to_pyarrow_table(),
    "filter": lambda table: table.scan(predicate="v > 4").to_table(),
    "no match": lambda table: table.scan(predicate="v = 77").to_table(),
    "one column": lambda table: table.scan(columns=["v"]).to_table(),
    "head": lambda table: table.scan(limit=1).to_table(),
    "count with a filter": lambda table: table.scan(predicate="v % 3 = 0").count(),
    "dataset": lambda table: table.to_pyarrow_dataset().to_table(),
    "change feed": lambda table: table.load_cdf(starting_version=2).read_all(),
    "masks": lambda table: table.deletion_vectors().read_all(),
    "diff": lambda table: table.diff(1, 2).to_table(),
}
WRITES: dict[str, Act] = {
    "delete": lambda table: table.delete("v = 5"),
    "delete nothing": lambda table: table.delete("v = 77"),
    "update": lambda table: table.update(updates={"v": "0"}, predicate="id > 7"),
    "merge": merge,
    "copied": lambda table: table.delete("v = 5", use_deletion_vectors=False),
    "purge": lambda table: table.optimize.purge(),
    "compact": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order(["id"]),
}
ACTS = {**READS, **WRITES}


@pytest.mark.protocol("DV-08", "DV-04", "DV-06")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_vector_of_the_last_row_is_read(place: Place) -> None:
    table = DeltaTable(masked(place, NUM_ROWS - 1).store)
    assert fresh_rows(table, "id") == IDS[:-1]
    assert table.count() == NUM_ROWS - 1
    feed = table.load_cdf(starting_version=2).read_all()
    assert feed.select(["id", "_change_type"]).to_pylist() == [
        {"id": NUM_ROWS - 1, "_change_type": "delete"}
    ]
    table.delete("id = 3")
    assert fresh_rows(table, "id") == [0, 1, 2, 4, 5, 6, 7, 8]
    table.optimize.purge()
    assert fresh_rows(table, "id") == [0, 1, 2, 4, 5, 6, 7, 8]


@pytest.mark.protocol("DV-08")
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("place", [in_log_padded, in_file])
def test_a_vector_of_a_row_beyond_the_file_is_refused(act: str, place: Place) -> None:
    raw = masked(place, NUM_ROWS)
    before = dict(raw.store.files)
    with pytest.raises(DeletionVectorError, match=r"below 10, .* found row 10"):
        ACTS[act](DeltaTable(raw.store))
    new = {path for path in raw.store.files if path not in before}
    assert not {path for path in new if path.startswith("_delta_log/")}


@pytest.mark.protocol("DV-08", "DV-14")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("row", [NUM_ROWS, 0x6E08, 2**32 + 3, 2**63 - 1])
def test_every_row_beyond_the_file_is_refused(place: Place, row: int) -> None:
    with pytest.raises(DeletionVectorError, match=f"below 10, .* found row {row}"):
        masked(place, row).rows()


@pytest.mark.protocol("DV-08")
@pytest.mark.parametrize("act", ACTS)
def test_a_vector_of_another_cardinality_is_refused(act: str) -> None:
    raw = masked(in_file, 3, 2)
    with pytest.raises(DeletionVectorError, match="cardinality of 2, found 1"):
        ACTS[act](DeltaTable(raw.store))


@pytest.mark.protocol("DV-08")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("cardinality", [0, 2, NUM_ROWS])
def test_every_other_cardinality_is_refused(place: Place, cardinality: int) -> None:
    with pytest.raises(DeletionVectorError, match=f"cardinality of {cardinality}, found 1"):
        masked(place, 3, cardinality).rows()


@pytest.mark.parametrize("place", [in_log, in_log_padded])
@pytest.mark.parametrize(("row", "cardinality"), [(NUM_ROWS, 1), (3, 0), (3, 2)])
def test_a_count_from_the_log_checks_the_vectors_that_are_there(
    place: Place, row: int, cardinality: int
) -> None:
    table = DeltaTable(masked(place, row, cardinality).store)
    dataset = table.to_pyarrow_dataset()
    for count in (table.count, dataset.count_rows, lambda: sql("SELECT count(*) FROM t", t=table)):
        with pytest.raises(DeletionVectorError):
            count()


def test_a_count_from_the_log_asks_for_no_vector_in_a_file() -> None:
    """Whoever reads the rows learns of the damage; `doctor` looks for it."""
    raw = masked(in_file, NUM_ROWS)
    table = DeltaTable(raw.store)
    version = table.version()
    for path in [path for path in raw.store.files if path.endswith((".bin", ".parquet"))]:
        del raw.store.files[path]
    assert (version, table.count()) == (2, NUM_ROWS - 1)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize(("row", "cardinality"), [(NUM_ROWS, 1), (3, 2)])
def test_a_full_copy_does_not_spread_the_damage(place: Place, row: int, cardinality: int) -> None:
    raw, target = masked(place, row, cardinality), logs.DictStore()
    with pytest.raises(DeletionVectorError):
        DeltaTable(raw.store).clone(target, shallow=False)
    assert not any(path.startswith("_delta_log/") for path in target.files)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_row_that_only_the_footer_refutes_is_refused_where_rows_are_read(place: Place) -> None:
    """The log says that the file has more rows than it has."""
    raw = masked(place, NUM_ROWS)
    log = "_delta_log/00000000000000000002.json"
    told, wrong = b'numRecords\\": 10', b'numRecords\\": 99'
    assert told in raw.store.files[log]
    raw.store.files[log] = raw.store.files[log].replace(told, wrong)
    for name in ("read", "change feed", "diff", "delete", "purge"):
        with pytest.raises(DeletionVectorError, match=r"below 10, .* found row 10"):
            ACTS[name](DeltaTable(raw.store))


def test_a_vector_is_not_extended_that_marks_too_much() -> None:
    """Also where nobody has read the file since."""
    raw = masked(in_file, NUM_ROWS)
    files = raw.snapshot().files()
    with pytest.raises(DeletionVectorError, match="found row 10"):
        write_masks(raw.store, files, [DeletionBitmap([1])], [NUM_ROWS])


def test_row_groups_are_not_copied_past_a_vector_that_marks_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of them are copied as they are, so that no row of the file is read."""
    copying(monkeypatch)
    raw = masked(in_file, NUM_ROWS)
    with pytest.raises(DeletionVectorError, match="found row 10"):
        DeltaTable(raw.store).optimize.purge()


def test_a_wrong_highest_row_changes_nothing() -> None:
    """`maxRowIndex` tells readers nothing that the vector does not; doctor names it."""
    table = DeltaTable(masked(in_log, 3, maxRowIndex=8).store)
    assert fresh_rows(table, "id") == [n for n in IDS if n != 3]
    (finding,) = table.doctor(checks=["vectors"]).findings
    assert "maxRowIndex 8, but its last row is 3" in finding.message


def test_an_empty_vector_marks_nothing() -> None:
    table = DataTable([("id", "long")], features=["deletionVectors"], configuration=dict(VECTORS))
    empty = bytes.fromhex("d1d339640000000000000000")
    for body in (empty, vector_body([])):
        _, vector = in_log(body)
        vector |= {"sizeInBytes": len(body), "cardinality": 0}
        table.commit(table.add({"id": [0, 1]}, deletionVector=vector))
    made = DeltaTable(table.store)
    assert (fresh_rows(made, "id"), made.count()) == ([0, 0, 1, 1], 4)
    made.delete("id = 1")
    assert fresh_rows(made, "id") == [0, 0]


def test_a_file_without_rows_has_no_row_to_mark() -> None:
    table = DataTable([("id", "long")], features=["deletionVectors"], configuration=dict(VECTORS))
    none = pa.table({"id": pa.array([], pa.int64())})
    table.commit(table.add(none, deletionVector=table.vector(0)))
    with pytest.raises(DeletionVectorError, match=r"below 0, .* found row 0"):
        table.rows()


def test_a_table_is_written_from_no_damaged_table() -> None:
    raw, target = masked(in_log, NUM_ROWS), logs.DictStore()
    with pytest.raises(DeletionVectorError):
        write_deltalake(target, DeltaTable(raw.store).to_pyarrow_dataset())
    assert not target.files
