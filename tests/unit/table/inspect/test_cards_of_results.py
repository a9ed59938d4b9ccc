"""Notebook cards and texts of the objects that a user may end a cell with."""

from __future__ import annotations

import pickle
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, QueryBuilder, write_deltalake, write_files
from deltalog._util.readable import changes_of_commit, outcome
from deltalog.catalogs import CatalogTable
from deltalog.protocol.actions.model import Metadata, Protocol


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(
        str(tmp_path / "t"),
        pa.table({"id": [1, 2], "p": ["x", "y"]}),
        partition_by=["p"],
        name="<b>",
        configuration={"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    )
    return DeltaTable(str(tmp_path / "t"))


def test_protocol_and_metadata_have_cards(table: DeltaTable) -> None:
    shown = table.protocol()._repr_html_()
    assert "reader version" in shown
    assert "deletionVectors" in shown
    assert "features" not in Protocol(min_reader_version=1, min_writer_version=2)._repr_html_()
    shown = table.metadata()._repr_html_()
    assert "&lt;b&gt;" in shown
    assert table.metadata().id in shown
    assert "2 properties" in shown
    plain = Metadata(id="x", schema_string="{}")._repr_html_()
    assert "Metadata" in plain
    assert "created" not in plain


def test_changes_have_a_card(table: DeltaTable) -> None:
    shown = table.load_cdf()._repr_html_()
    assert "versions 0 to 0" in shown
    assert "some rows" in shown


def test_what_a_session_ends_a_cell_with_has_a_card(table: DeltaTable) -> None:
    rows = pa.table({"id": [1], "p": ["x"]})
    plan = table.merge(rows, "s.id = t.id", "s", "t").when_matched_delete().explain()
    assert repr(plan) == str(plan)
    assert type(pickle.loads(pickle.dumps(plan))) is str
    shown: list[Any] = [plan, table.vacuum(), table.follow(), table.transaction(), table.branches()]
    with deltalog.connect({"t": table}) as connection:
        shown += [connection]
        told = [one._repr_html_() for one in shown]
    told.append(connection._repr_html_())
    titles = [re.findall("<strong>(.*?)</strong>", page)[0].split(",")[0] for page in told]
    assert titles[0].startswith("Merge of 1 row")
    assert titles[1:] == [
        "VACUUM: 0 files can be deleted",
        "Follower",
        "Transaction",
        "0 branches",
        "Connection: 1 table",
        "Connection: closed",
    ]
    table.branch("b", expires_after=timedelta(days=1))
    found = table.branches()
    assert pickle.loads(pickle.dumps(found)) == found
    assert "<strong>1 branch</strong>" in found._repr_html_()  # type: ignore[attr-defined]


def test_a_card_scrolls_in_its_own_box_and_has_times_as_the_command_line(
    tmp_path: Path,
) -> None:
    at = datetime(2026, 11, 30, 4, 9, 20, tzinfo=UTC)
    write_deltalake(tmp_path / "t", {"at": [at]})
    page = DeltaTable(tmp_path / "t")._repr_html_()
    assert page.startswith('<div style="')
    assert "overflow-x:auto" in page.partition(">")[0]
    assert ">2026-11-30 04:09:20Z</td>" in page
    assert ">1 column</summary>" in page


def titles_of(*results: Any) -> list[str]:
    """The titles of cards, each of which is a page of its own."""
    return [re.findall("<strong>(.*?)</strong>", one._repr_html_())[0] for one in results]


def test_a_repair_has_a_card(table: DeltaTable) -> None:
    assert titles_of(table.repair()) == ["FSCK: no data file is missing"]
    (path, *_) = Path(table.table_uri).glob("p=x/*.parquet")
    path.unlink()
    assert titles_of(table.repair(dry_run=True)) == ["FSCK: 1 missing file can be removed"]
    done: Any = table.repair()
    assert titles_of(done) == ["FSCK: 1 missing file removed"]
    page = done._repr_html_()
    assert ">files removed</td>" in page
    assert path.name in page
    assert done["dry_run"] is False
    assert "dry run" not in page


def test_lists_and_details_have_cards(table: DeltaTable) -> None:
    assert titles_of(table.file_uris(), table.partitions(), table.cleanup_metadata()) == [
        "2 files",
        "2 partitions",
        "0 files of the log deleted",
    ]
    assert table.partitions() == [{"p": "x"}, {"p": "y"}]
    assert pickle.loads(pickle.dumps(table.partitions())) == [{"p": "x"}, {"p": "y"}]
    found: Any = table.partitions()
    assert ">p</th>" in found._repr_html_()
    shown: Any = table.detail()
    page = shown._repr_html_()
    assert "clusteringColumns" in shown
    assert "clusteringColumns" not in page  # there are none
    assert "partitionColumns" in page


def test_results_that_are_dataclasses_have_cards(table: DeltaTable) -> None:
    branch = table.branch("b", expires_after=timedelta(days=1))
    write_deltalake(branch, pa.table({"id": [3], "p": ["x"]}), mode="append")
    (listed,) = table.branches()
    assert titles_of(listed) == ["Branch"]
    assert re.search(r"expires</td><td[^>]*>\d{4}-\d\d-\d\d ", listed._repr_html_())
    assert titles_of(branch.publish()) == ["PublishOutcome"]
    written = write_files(table, pa.table({"id": [4], "p": ["z"]}))
    assert re.fullmatch(r"WrittenFiles\(1 file, 1 row, [\d.]+ (bytes|KiB)\)", repr(written))
    assert "1 file, 1 row</td>" in written._repr_html_()
    plan = DeltaTable(table.table_uri).optimize.upgrade_uniform(2, dry_run=True)
    assert titles_of(plan) == ["UniformUpgrade"]
    page = plan._repr_html_()
    assert ">files</td>" in page
    assert "delta.enableIcebergCompatV2=true" in page
    (step, *_) = table.follow().available()
    assert repr(step).startswith("Step(3 files, next ")
    assert titles_of(step) == ["Step"]
    assert ">id, p</td>" in step._repr_html_()
    entry = CatalogTable(name=("s", "t"), location="/lake/s/t", columns=table.schema())
    assert ">s.t</td>" in entry._repr_html_()
    assert ">EXTERNAL</td>" in entry._repr_html_()
    assert ">id, p</td>" in entry._repr_html_()


def test_a_dry_run_says_that_it_is_one(table: DeltaTable) -> None:
    page = table.delete("id = 1", dry_run=True)._repr_html_()  # type: ignore[attr-defined]
    assert "<strong>DELETE, dry run: 1 row deleted</strong>" in page
    assert ">1 row</summary>" in page
    assert table.version() == 0


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"num_deleted_rows": None, "num_removed_files": 2}, "all rows of 2 files deleted"),
        ({"num_removed_files": 0, "num_removed_bytes": 0}, "nothing changed"),
        ({"num_removed_files": 1, "num_removed_bytes": 9}, "1 file removed"),
        ({"num_target_rows_inserted": 1, "num_target_files_skipped_during_scan": 3},
         "1 row inserted, 3 files skipped"),
        ({"num_updated_rows": 0, "num_removed_files": 0}, "nothing changed"),
        ({"numOutputRows": 0}, "0 rows written"),
        ({"format": "delta"}, ""),
    ],
)  # fmt: skip
def test_results_as_a_sentence(facts: dict[str, object], told: str) -> None:
    assert outcome(facts).partition(";")[0] == told


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ({"numTargetRowsInserted": "2", "numTargetRowsUpdated": "0", "numOutputRows": "9"},
         "2 rows inserted"),
        ({"numDeletedRows": "0"}, "0 rows"),
        ({"numRemovedFiles": "3", "numAddedFiles": 1}, "3 files removed, 1 file added"),
        ({"numOutputRows": "many"}, ""),
        (None, ""),
    ],
)  # fmt: skip
def test_commits_as_a_sentence(metrics: object, told: str) -> None:
    assert changes_of_commit(metrics) == told


def test_objects_have_readable_texts(table: DeltaTable) -> None:
    with table.appender() as appender:
        assert repr(appender) == f"{table!r}.appender(), 0 rows waiting"
    assert repr(appender).endswith(", closed")
    with deltalog.connect({"t": table}) as connection:
        assert repr(connection) == "Connection(t)"
        with connection.cursor() as cursor:
            assert repr(cursor) == "Cursor(Connection(t), rowcount -1)"
        assert repr(cursor).endswith(", closed)")
    assert repr(connection) == "Connection(closed)"
    assert repr(deltalog.connect()) == "Connection(no tables)"
    assert repr(QueryBuilder()) == "QueryBuilder(no tables)"
    assert repr(QueryBuilder().register("t", table)) == "QueryBuilder(t)"
    assert repr(table.engine) == "LocalEngine()"
    assert repr(table.scan(predicate="id = 1").pruned).startswith("Pruned(2 files, ")
