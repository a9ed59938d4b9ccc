"""What `docs/deltalog-and-deltalake.md` says of deltalake, asked of the installed one."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from deltalake.table import TableAlterer, TableOptimizer

import deltalog
from deltalog.table.alter import TableAlterer as OurAlterer
from deltalog.table.optimize import TableOptimizer as OurOptimizer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "deltalog-and-deltalake.md"
ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})


def test_the_page_compares_what_is_installed() -> None:
    assert f"deltalake {deltalake.__version__} (" in PAGE.read_text("utf-8")


@pytest.mark.parametrize(
    ("ours", "theirs", "names"),
    [
        (
            OurAlterer,
            TableAlterer,
            ["rename_column", "drop_columns", "move_column", "drop_feature"],
        ),
        (OurOptimizer, TableOptimizer, ["cluster", "purge"]),
        (
            deltalog.DeltaTable,
            deltalake.DeltaTable,
            ["clone", "doctor", "diff", "follow", "transaction", "sql"],
        ),
    ],
)  # fmt: skip
def test_only_deltalog_has(ours: type, theirs: type, names: list[str]) -> None:
    assert [name for name in names if not hasattr(ours, name)] == []
    assert [name for name in names if hasattr(theirs, name)] == []


def _with(**properties: str) -> Callable[[str], None]:
    configuration = {f"delta.{name}": value for name, value in properties.items()}
    return lambda place: deltalog.write_deltalake(place, ROWS, configuration=configuration)


def _clustered(place: str) -> None:
    deltalog.write_deltalake(place, ROWS)
    deltalog.DeltaTable(place).alter.set_clustering_columns(["id"])


def _with_identity(place: str) -> None:
    numbered = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": True,
    }
    fields = [deltalog.Field("id", "long", metadata=numbered), deltalog.Field("v", "string")]
    deltalog.DeltaTable.create(place, fields)


@pytest.mark.parametrize(
    "make",
    [
        _with(enableRowTracking="true"),
        _with(enableInCommitTimestamps="true"),
        _with(enableTypeWidening="true"),
        _clustered,
        _with_identity,
    ],
    ids=["row tracking", "in-commit timestamps", "type widening", "clustering", "identity"],
)
def test_only_deltalog_writes(make: Callable[[str], None], tmp_path: Path) -> None:
    make(str(tmp_path / "t"))
    with pytest.raises(Exception, match="Unsupported table features"):
        deltalake.write_deltalake(str(tmp_path / "t"), ROWS, mode="append")
    deltalog.write_deltalake(str(tmp_path / "t"), ROWS, mode="append")


def test_only_deltalog_reads_widened_types(tmp_path: Path) -> None:
    _with(enableTypeWidening="true")(str(tmp_path / "t"))
    with pytest.raises(Exception, match="TypeWidening"):
        pa.table(deltalake.DeltaTable(str(tmp_path / "t")).scan())
    assert deltalog.DeltaTable(str(tmp_path / "t")).count() == 3


@pytest.mark.parametrize("library", [deltalake, deltalog])
def test_who_marks_rows(library: object, tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(100))})
    properties = {"delta.enableDeletionVectors": "true"}
    deltalog.write_deltalake(str(tmp_path / "t"), rows, configuration=properties)
    library.DeltaTable(str(tmp_path / "t")).delete("id = 1")  # type: ignore[attr-defined]
    vectors = deltalog.DeltaTable(str(tmp_path / "t")).snapshot.files(["deletionVector"])
    marked = vectors["deletionVector"].null_count < len(vectors)
    assert marked == (library is deltalog)


def test_only_deltalog_computes_generated_columns_in_updates(tmp_path: Path) -> None:
    generated = {"delta.generationExpression": "a + 1"}
    fields = [deltalog.Field("a", "long"), deltalog.Field("b", "long", metadata=generated)]
    deltalog.DeltaTable.create(str(tmp_path / "t"), fields)
    deltalog.write_deltalake(str(tmp_path / "t"), [{"a": 1}], mode="append")
    with pytest.raises(Exception, match="failed validation"):
        deltalake.DeltaTable(str(tmp_path / "t")).update({"a": "5"})
    deltalog.DeltaTable(str(tmp_path / "t")).update({"a": "5"})
    assert deltalog.DeltaTable(str(tmp_path / "t")).to_pyarrow_table().to_pylist() == [
        {"a": 5, "b": 6}
    ]


def test_only_deltalog_takes_file_systems_and_pickles(tmp_path: Path) -> None:
    deltalog.write_deltalake(str(tmp_path / "t"), ROWS)
    with pytest.raises(TypeError, match="filesystem"):
        deltalake.DeltaTable(str(tmp_path / "t"), filesystem=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(deltalake.DeltaTable(str(tmp_path / "t")))
    kept = pickle.dumps(deltalog.DeltaTable(str(tmp_path / "t")))
    assert pickle.loads(kept).count() == 3


def test_only_deltalog_changes_rows_by_sql(tmp_path: Path) -> None:
    deltalog.write_deltalake(str(tmp_path / "t"), ROWS)
    table = deltalake.DeltaTable(str(tmp_path / "t"))
    with pytest.raises(Exception, match="DELETE"):
        pa.table(
            deltalake.QueryBuilder().register("t", table).execute("DELETE FROM t WHERE id = 1")
        )
    ours = deltalog.DeltaTable(str(tmp_path / "t"))
    deltalog.sql("DELETE FROM t WHERE id = 1", t=ours)
    assert deltalog.DeltaTable(str(tmp_path / "t")).count() == 2
