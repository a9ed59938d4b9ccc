"""Mistakes in values: the error names what was given, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, Field, col, connect, convert_to_deltalake, sql, write_deltalake
from deltalog.errors import DeltaError
from deltalog.sharing import HttpOptions, SharingClient
from deltalog.sharing.server import app
from tests.support.command_line import run
from tests.support.facade import make, unchanged

ROWS: Any = [{"id": 1, "amount": None, "info": {"zip": 1}}, {"id": 2, "amount": 1.5}]


def _any(found: Any) -> Any:
    """The same object, for mypy without a class."""
    return found


def append(data: Any) -> Callable[[DeltaTable], object]:
    return lambda table: write_deltalake(table, data, mode="append")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (append(np.array([[1, 2], [3, 4]])), "cannot write the data, a numpy.ndarray: expected"),
        (append(np.array([[1, 2], [3, 4]])), "make a dataframe of it"),
        (append(pl.DataFrame({"id": [5]}).group_by("id")), "aggregate the groups first"),
        (append([{"id": 2**63}]), f"{2**63} is too large for a long"),
        (
            lambda t: write_deltalake(t, ROWS, mode=_any("upsert")),
            "found 'upsert'; DeltaTable.upsert(data, key) updates and inserts rows",
        ),
        (lambda t: t.load_as_version("latest"), "for the latest version, leave the argument out"),
        (lambda t: t.alter.add_constraint({"c": "amount > 0"}), "add OR amount IS NULL"),
        (lambda t: t.alter.drop_constraint("poss"), "did you mean 'pos'?"),
        (lambda t: t.alter.set_column_default("id", "unknown"), "a string has quotes: 'unknown'"),
        (lambda t: t.alter.add_feature("deletion_vectors"), "did you mean 'deletionVectors'?"),
        (lambda t: t.alter.add_feature("deletionVector"), "did you mean 'deletionVectors'?"),
        (lambda t: t.scan(["*"]), "without a list, all columns are meant"),
        (lambda t: t.scan(["id as x"]), "sql(query) computes values"),
        (lambda t: t.scan(["count(*)"]), "sql(query) computes values"),
        (lambda t: t.scan(["id, name"]), "one string for each name: ['id', 'name']"),
        (lambda t: t.to_pandas(["id"]), "columns=[…] selects columns"),
        (lambda t: t.to_pyarrow_table(["id", "amount"]), "columns=[…] selects columns"),
        (lambda t: t.alter.set_key_index([]), "None removes the key"),
        (lambda t: t.metadata().configuration.update(a="b"), "alter.set_table_properties({…})"),
        (lambda t: t.metadata().format.options.clear(), "options of a format have no effect"),
        (lambda t: t.schema().fields[0].metadata.pop("a", None), "alter.set_column_metadata"),
        (lambda t: t.scan(predicate="id = 'one'"), "a whole number of 64 bits, in id = 'one'"),
        (lambda t: t.scan(predicate="id IN ('one', '2')"), "in id IN ('one', '2')"),
        (lambda t: t.alter.add_columns(Field("ID", "long")), "the column 'id' exists already, and"),
        (lambda t: t.alter.add_constraint(_any("id > 0")), "{'positive': 'amount > 0'}"),
        (lambda t: t.merge(ROWS[1:], "id").execute(), "such as when_matched_update_all()"),
        (lambda t: t.restore("v0"), "a version is a number, 0"),
        (lambda _: DeltaTable("s4://bucket/t"), "known are file, local, memory, s3,"),
        (lambda _: SharingClient({"endpoint": "x"}), "cannot read the profile: profile.share"),
        (lambda t: t.scan("id > 1"), "pass a condition on rows as predicate='id > 1'"),
        (lambda t: t.scan(predicate=col("id") == [1, 2]), "is_in(values)"),
        (lambda _: col("id") > _any(1 & col("id")) < 4, "put comparisons in brackets"),
        (lambda _: _any(1) | col("id"), "put comparisons in brackets"),
        (lambda t: t.merge(ROWS[1:], "id").when_matched_delete(_any({"a": 1})), "no new values"),
        (
            lambda t: t.merge(ROWS[1:], "id").when_matched_update({"id": "1"}, _any({"a": 1})),
            "pass new values as the first argument",
        ),
        (lambda _: connect(schema="sales"), "expected catalog=…"),
        (lambda _: sql("SELECT 1 WHERE 1 = :x", params={"x": 1}), "pass values as parameters=…"),
        (lambda _: HttpOptions(retry=_any(5)), "expected a Retry, such as Retry(attempts=5)"),
        (lambda _: write_deltalake("file://new", {"id": [1]}), "expected file:///new"),
        (lambda _: write_deltalake("file:new", {"id": [1]}), "expected file:///new"),
        (lambda _: write_deltalake("s3//bucket/t", {"id": [1]}), "expected s3://bucket/t"),
        (lambda _: write_deltalake("S3:bucket/t", {"id": [1]}), "expected S3://bucket/t"),
        (lambda _: write_deltalake("p.share#a.b.c", {"id": [1]}), "SharedTable reads it"),
        (lambda _: app({"shares": [{"name": "${KEY}"}]}), "${KEY} is a reference"),
        (lambda t: t.alter.set_key_index(["info.zip"]), "only top-level columns"),
    ],
)
def test_advice(call: Callable[[DeltaTable], object], message: str) -> None:
    table = make(ROWS)
    table.alter.add_constraint({"pos": "id > 0"})
    with unchanged(table), pytest.raises(DeltaError) as caught:
        call(table)
    assert message in str(caught.value)


def test_rows_that_break_a_condition_without_null_get_no_advice_on_null() -> None:
    with pytest.raises(DeltaError) as caught:
        make(ROWS).alter.add_constraint({"c": "amount IS NULL OR amount > 2"})
    assert "OR amount IS NULL" not in str(caught.value)
    with pytest.raises(DeltaError) as caught:
        make(ROWS).alter.set_column_not_null("amount")
    assert "OR amount IS NULL" not in str(caught.value)


def test_conversions(tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match="there is no such directory"):
        convert_to_deltalake(tmp_path / "none")
    (tmp_path / "t" / "a=1").mkdir(parents=True)
    with pytest.raises(DeltaError, match="it contains no Parquet files"):
        convert_to_deltalake(tmp_path / "t")
    other = tmp_path / "t" / "a=1" / "notes.txt"
    other.write_text("x")
    message = "but a=1/notes.txt; read the rows, and write_deltalake"
    with pytest.raises(DeltaError, match=message):
        convert_to_deltalake(tmp_path / "t")
    for suffix, kind in (("csv", "csv"), ("jsonl", "json")):
        file = tmp_path / "t" / f"x.{suffix}"
        file.write_text("")
        with pytest.raises(DeltaError) as caught:
            convert_to_deltalake(tmp_path / "t")
        assert str(caught.value).endswith(
            f"it contains no Parquet files, but x.{suffix}; write_deltalake(location, "
            f"pyarrow.dataset.dataset({str(file)!r}, format={kind!r})) makes a table with its rows"
        )
        file.unlink()
    (tmp_path / "t" / "x.parq").write_text("")
    with pytest.raises(DeltaError, match=r"but x.parq; the names of Parquet files end with \.parq"):
        convert_to_deltalake(tmp_path / "t")
    other.unlink()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "t" / "a=1" / "x.parquet")
    for given in ("a", ["a"]):
        with pytest.raises(DeltaError, match=r"expected a schema, such as pa\.schema\(\[\('a', pa"):
            convert_to_deltalake(tmp_path / "t", partition_by=_any(given))
    convert_to_deltalake(tmp_path / "t", partition_by=pa.schema([("a", pa.string())]))


def test_profiles(tmp_path: Path) -> None:
    (tmp_path / "bad.share").write_text("{")
    (tmp_path / "empty.share").write_text("{}")
    for name in ("bad.share", "empty.share"):
        with pytest.raises(DeltaError, match=f"cannot read the profile '.*{name}': "):
            SharingClient(tmp_path / name)
    with pytest.raises(DeltaError, match="the address of a server is the endpoint in this file"):
        SharingClient("http://127.0.0.1:1/delta-sharing/")


def test_a_schema_of_a_share_is_no_string() -> None:
    profile = {"shareCredentialsVersion": 1, "endpoint": "http://127.0.0.1:1/", "bearerToken": "x"}
    with pytest.raises(DeltaError, match=r"schema='s': expected an item of list_schemas"):
        SharingClient(profile).list_tables(_any("s"))


def test_a_profile_in_no_directory(tmp_path: Path) -> None:
    found = run("share", "token", "--profile", tmp_path / "none" / "x.share", code=2)
    assert "No such file or directory; pass the path of a new file" in found.stderr


def test_a_version_in_a_location(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    with pytest.raises(DeltaError, match=r"a version is written with v, as in .*t@v0$"):
        DeltaTable(f"{tmp_path}/t@0")
    with pytest.raises(DeltaError, match="check the location"):
        DeltaTable(f"{tmp_path}/u@0")


def test_a_misspelt_column_of_a_merge_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    table = make([{"id": 1, "amount": 5}])
    for rows in (
        [{"id": 1, "amuont": 6}],
        [{"id": 1, "amount": 7, "op": "u"}],
        [{"id": 1, "x": 2}],
    ):
        merger = table.merge(rows, "target.id = source.id")
        merger.when_matched_update_all().execute()
    found = [one.getMessage() for one in caplog.records if "ignores" in one.getMessage()]
    assert found == [
        "the merge ignores the column 'amuont', which the table lacks: did you mean 'amount'?"
    ]


def test_properties_are_a_mapping() -> None:
    table = make([{"id": 1}])
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    properties = table.properties
    assert dict(properties)["delta.appendOnly"] == properties["delta.appendOnly"] == "true"
    assert dict(properties.items()) == table.metadata().configuration
    assert ("delta.appendOnly" in properties, len(properties)) == (True, len(list(properties)))
    assert (properties.get("x"), properties.get("x", "y"), bool(properties)) == (None, "y", True)
    with pytest.raises(KeyError):
        properties["x"]


def test_one_column_is_a_string(tmp_path: Path) -> None:
    write_deltalake(tmp_path, [{"id": 1, "name": "a"}])
    table = DeltaTable(tmp_path)
    table.alter.set_key_index("id")
    assert table.scan(columns="id").to_table().to_pylist() == [{"id": 1}]
    assert table.head(columns="name").to_pylist() == [{"name": "a"}]
    assert table.to_polars("id").columns == ["id"]
