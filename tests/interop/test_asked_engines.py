"""What other engines do with tables of deltalog is in `engines.json`: they are asked again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.protocol.features import FEATURES
from tests.support import interop
from tests.support.interop import (
    CASES,
    DELTA_SCAN,
    DUCKDB,
    LOCAL,
    SHARING,
    SPARK,
    TYPES,
    WRITERS,
    bag,
    differing,
    kept,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the engines

needs_duckdb = [
    pytest.mark.slow(reason="DuckDB's extension has an environment of its own"),
    pytest.mark.skipif(
        not (DUCKDB / ".ready").exists(), reason="no DuckDB 1.5: make .cache/tpc/.ready"
    ),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The table of each case."""
    return interop.make_tables(tmp_path_factory.mktemp("asked"))


def test_every_feature_is_asked_for_by_every_engine() -> None:
    assert set(FEATURES) <= set(CASES["features"])
    names = {name for cases in CASES.values() for name in cases}
    assert {SPARK, *LOCAL, DELTA_SCAN, SHARING} == set(kept()["read"])
    assert all(set(found) == names for found in kept()["read"].values())
    written = {name for name, case in CASES["features"].items() if case.more is not None}
    assert {SPARK, *WRITERS, DELTA_SCAN} == set(kept()["write"])
    assert all(set(found) == written for found in kept()["write"].values())


def test_deltalake_and_polars_read(places: Mapping[str, Path]) -> None:
    assert differing("read", interop.local_answers(places)) == []


def test_deltalake_and_polars_write(tmp_path: Path) -> None:
    assert differing("write", interop.writing_answers(tmp_path, WRITERS)) == []


def test_the_sharing_client_reads(places: Mapping[str, Path], tmp_path: Path) -> None:
    assert differing("read", interop.sharing_answers(places, tmp_path)) == []


@needs_duckdb[0]
@needs_duckdb[1]
def test_duckdb_reads(places: Mapping[str, Path]) -> None:
    assert differing("read", interop.duckdb_answers(places)) == []


@needs_duckdb[0]
@needs_duckdb[1]
def test_duckdb_writes(tmp_path: Path) -> None:
    assert differing("write", interop.duckdb_writing(tmp_path)) == []


# --- What deltalog makes by default


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A table of all types with partitions, two commits, an update and a checkpoint; its rows."""
    place = tmp_path_factory.mktemp("usual") / "t"
    columns = {name.replace(" ", "_").replace(",", "_"): values for name, values in TYPES.items()}
    columns = {name.strip(")").replace("(", "_"): values for name, values in columns.items()}
    data = pa.table({"id": [1, 2, 3], "p": ["x", "y/ü", None], **columns})
    write_deltalake(place, data, partition_by=["p"])
    write_deltalake(place, data.set_column(0, "id", [[4, 5, 6]]), mode="append")
    table = DeltaTable(place)
    table.delete("id = 5")
    table.create_checkpoint()
    rows = [*data.to_pylist(), *data.set_column(0, "id", [[4, 5, 6]]).to_pylist()]
    return place, bag([row for row in rows if row["id"] != 5])


@pytest.mark.parametrize("engine", LOCAL)
def test_a_usual_table_is_read_by(usual: tuple[Path, list[str]], engine: str) -> None:
    place, rows = usual
    found = [_in_order(row, place) for row in LOCAL[engine](place)]
    assert bag(found) == rows


@needs_duckdb[0]
@needs_duckdb[1]
def test_a_usual_table_is_read_by_duckdb(usual: tuple[Path, list[str]]) -> None:
    place, rows = usual
    (reply,) = interop.ask_duckdb([f"FROM delta_scan('{place}')"])
    assert bag([_in_order(row, place) for row in reply()]) == rows


def _in_order(row: dict[str, Any], place: Path) -> dict[str, Any]:
    return {name: row[name] for name in DeltaTable(place).schema().names}


# --- Comparing


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1.5, Decimal("1.50")),
        (3, 3.0),
        (10, Decimal(10)),
        (dt.date(2024, 1, 2), dt.datetime(2024, 1, 2)),  # noqa: DTZ001
        ({"a": 1}, [("a", 1)]),
        (b"\x00", bytearray(b"\x00")),
    ],
)
def test_what_counts_as_equal(one: object, other: object) -> None:
    assert interop.plain(one) == interop.plain(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(None, float("nan")), (1, True), (10, 1), (2**63 - 1, float(2**63 - 1)), ("1", None)],
)
def test_what_does_not(one: object, other: object) -> None:
    assert interop.plain(one) != interop.plain(other)
