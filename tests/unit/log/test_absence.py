"""What the error says where there is no table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import TableNotFoundError
from deltalog.storage import FsspecStore
from deltalog.testing import CountingStore
from tests.support import logs

ROWS = pa.table({"id": [1, 2], "p": ["x:y", None], "q": [1, 2]})


def message(location: object) -> str:
    with pytest.raises(TableNotFoundError) as caught:
        DeltaTable(location)  # type: ignore[arg-type]  # a path, a text or a store
    return str(caught.value)


def nothing(place: Path) -> Path:
    return place / "none"


def empty(place: Path) -> Path:
    (place / "empty").mkdir()
    return place / "empty"


def text_file(place: Path) -> Path:
    (place / "notes.txt").write_text("x")
    return place / "notes.txt"


def parquet_file(place: Path) -> Path:
    pq.write_table(ROWS, place / "rows.parquet")
    return place / "rows.parquet"


def parquet(place: Path) -> Path:
    pq.write_table(ROWS, place / "rows.parquet")
    return place


def partitioned_parquet(place: Path) -> Path:
    (place / "p=1" / "q=2").mkdir(parents=True)
    pq.write_table(ROWS, place / "p=1" / "q=2" / "rows.parquet")
    return place


def log_of_a_table(place: Path) -> Path:
    write_deltalake(place / "t", ROWS)
    return place / "t" / "_delta_log"


def log_without_commits(place: Path) -> Path:
    (place / "_delta_log").mkdir()
    (place / "_delta_log" / "notes.txt").write_text("x")
    return place


def iceberg(place: Path) -> Path:
    (place / "metadata").mkdir()
    (place / "metadata" / "v1.metadata.json").write_text("{}")
    return place


def others(place: Path) -> Path:
    for name in ("d.txt", "a.txt", "c.txt", "b.txt"):
        (place / name).write_text("x")
    return place


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (nothing, "found nothing there; check the location"),
        (empty, "found an empty directory; write_deltalake"),
        (text_file, "found a file; a table is a directory with a _delta_log"),
        (parquet_file, "found a Parquet file; a table is a directory with a _delta_log"),
        (parquet, "found Parquet files without a _delta_log; convert_to_deltalake"),
        (partitioned_parquet, "found Parquet files without a _delta_log; convert_to_deltalake"),
        (log_of_a_table, "found the log of one; open {place}/t"),
        (log_without_commits, "found no commit and no complete checkpoint in its _delta_log"),
        (
            iceberg,
            "an Iceberg table's directory metadata; convert_to_deltalake or `deltalog convert` con",
        ),
        (others, "found no _delta_log, but a.txt, b.txt, c.txt; write_deltalake"),
    ],
)
def test_mistakes_are_told_apart(make: Callable[[Path], Path], found: str, tmp_path: Path) -> None:
    location = make(tmp_path)
    text = message(location)
    assert text.startswith(f"cannot open {location}: expected a Delta table, ")
    assert found.format(place=tmp_path) in text


def test_a_name_with_dots_may_be_one_in_a_catalog(tmp_path: Path) -> None:
    text = message(tmp_path / "main.sales.orders")
    assert "found nothing there; a table of Unity Catalog is uc://main.sales.orders" in text
    assert "connect(catalog=…)" in text
    assert "uc://" not in message(tmp_path / "orders.delta")


def test_a_location_with_escapes_may_be_one_without(tmp_path: Path) -> None:
    assert "found nothing there; check the location" in message(tmp_path / "my%20table")
    write_deltalake(tmp_path / "my table", ROWS)
    text = message(tmp_path / "my%20table")
    assert f"found nothing there, but a table at {tmp_path}/my table; write its name as it" in text
    write_deltalake("memory://absence/my table", ROWS)
    assert "/absence/my table; write its name" in message("memory://absence/my%20table")
    assert "found nothing there; check the location" in message(tmp_path / "my%20t%ff")


def test_directories_and_files_of_a_table_name_it(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS, partition_by=["p", "q"])
    table = tmp_path / "t"
    where = f"open {table}, and read its rows where p = 'x:y' AND q = '1'"
    file = next((table / "p=x%3Ay" / "q=1").glob("*.parquet"))
    assert f"found the directory q=1 of one; {where}" in message(file.parent)
    assert f"found a file of the table {table}; {where}" in message(file)
    null = table / "p=__HIVE_DEFAULT_PARTITION__"
    assert f"open {table}, and read its rows where p IS NULL" in message(null)


def test_a_directory_like_a_partition_s_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    assert "found an empty directory" in message(tmp_path / "p=1")


def test_stores_of_requests_and_of_users_are_asked_too() -> None:
    assert "found nothing there" in message("memory://absence/none")
    store = logs.DictStore({"rows.parquet": b"PAR1"})
    assert "found Parquet files without a _delta_log" in message(store)


def test_who_creates_a_table_does_not_look(tmp_path: Path) -> None:
    store = CountingStore(FsspecStore(str(tmp_path / "t")))
    write_deltalake(store, ROWS)
    assert not [call for call in store.calls if "" in call.paths]
    assert DeltaTable(tmp_path / "t").version() == 0
