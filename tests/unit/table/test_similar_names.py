"""Names of other libraries: the error says what to use instead."""

from __future__ import annotations

import inspect
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from arro3 import core as arro3

import deltalog
from deltalog import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    col,
    write_deltalake,
)
from deltalog.errors import InvalidInputError


def _any(found: Any) -> Any:
    """The same object, for mypy without a class."""
    return found


@pytest.fixture
def table(tmp_path: Path) -> Any:
    write_deltalake(tmp_path, pa.table({"id": [1], "carrier": ["a"]}))
    return DeltaTable(tmp_path)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda _: getattr(deltalog, "scan_delta"), "to_polars(lazy=True)"),  # noqa: B009
        (lambda _: getattr(deltalog, "DeltaTabel"), "did you mean 'DeltaTable'?"),  # noqa: B009
        (lambda table: table.scan().to_dicts, "use to_pylist()"),
        (lambda table: table.scan().to_panda, "did you mean 'to_pandas'?"),
        (lambda table: table.optimize.zorder, "use z_order(columns)"),
        (lambda table: table.merge(pa.table({"id": [1]}), "true").whenMatchedDelete, "when_match"),
        (lambda _: _any(deltalog.connect()).query, "use execute(statement)"),
        (lambda _: _any(col("id")).isin, "use is_in(values)"),
    ],
)
def test_attributes(call: Callable[[Any], object], hint: str, table: Any) -> None:
    with pytest.raises(AttributeError) as caught:
        call(table)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda table: table.scan(predicate="max(id) > 1"), "it is an aggregate function"),
        (
            lambda table: table.scan(predicate="strftime(id) > 1"),
            "in Spark's SQL, write date_format(",
        ),
        (lambda table: table.scan(columns={"id": "x"}), "rename the columns of the result"),
        (lambda table: table.load_as_version("0"), "a version is a number, 0"),
        (lambda table: table.update({"id": "2"}, "id = 1"), "pass a condition as predicate="),
        (lambda table: deltalog.sql("SELECT zz FROM t", t=table), "known: 'id', 'carrier'"),
        (lambda table: deltalog.sql("SELECT t.carrierx FROM t", t=table), "mean 'carrier'?"),
        (lambda table: deltalog.sql("SELECT x.id FROM t y", t=table), "the query has"),
    ],
)
def test_arguments(call: Callable[[Any], object], hint: str, table: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        call(table)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (pd.NaT, None),
        (pd.NA, None),
        (np.datetime64("NaT"), None),
        (np.int32(4), 4),
        (np.float64(0.5), 0.5),
        (pa.scalar(4, pa.int16()), 4),
        (pd.Timestamp(0, tz="UTC"), datetime(1970, 1, 1, tzinfo=UTC)),
        (float("inf"), float("inf")),
    ],
)
def test_parameters_of_other_libraries(value: object, found: object, table: Any) -> None:
    rows = deltalog.sql("SELECT count(*) AS n, :v AS v FROM t", {"v": value}, t=table).to_pylist()
    assert [row["v"] for row in rows] == [found]
    assert deltalog.sql("SELECT id FROM t WHERE id = ?", [np.int8(1)], t=table).to_pylist()
    assert table.scan(predicate="id = :v", parameters={"v": pd.NaT}).count() == 0


def test_nan_as_a_missing_value(table: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"NaN is a number; pass None for NULL$"):
        table.scan(predicate="DATE'2024-01-31' = :v", parameters={"v": float("nan")})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda table: table.delete(where="id = 1"), "delete() got an unexpected keyword argument"),
        (lambda table: table.delete(where="id = 1"), "'where': did you mean 'predicate'?"),
        (lambda table: table.scan(predicates="id = 1"), "did you mean 'predicate'?"),
        (lambda table: table.update(set={"id": "2"}), "did you mean 'updates'?"),
        (lambda table: table.to_pandas(column="id"), "did you mean 'columns'?"),
        (lambda table: table.to_pandas(predicate="id = 1"), "did you mean 'filters'?"),
        (lambda table: table.restore(version=0), "did you mean 'target'?"),
        (lambda table: table.count(filters="id = 1"), "did you mean 'predicate'?"),
        (lambda table: table.to_duckdb(predicate="id = 1"), "did you mean 'filters'?"),
        (lambda table: table.to_pyarrow_dataset(filters=""), "mean 'file_pruning_predicate'?"),
        (lambda table: _any(write_deltalake)(table, [], "append"), "such as mode='append'"),
        (lambda _: _any(deltalog.table)("t"), "use DeltaTable(location)"),
        (lambda table: table.optimize.compact(nothing=1), "argument 'nothing'"),
        (lambda table: table.alter.add_constraint(constraint={}), "did you mean 'constraints'?"),
        (lambda table: _any(DeltaTable)(table.table_uri, timestamp=0), "DeltaTable() got"),
        (lambda table: _any(DeltaTable)(table.table_uri, timestamp=0), "did you mean 'version'?"),
    ],
)
def test_keyword_arguments(call: Callable[[Any], object], message: str, table: Any) -> None:
    with pytest.raises(TypeError) as caught:
        call(table)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("forPath", "use DeltaTable(location)"),
        ("is_delta_table", "use is_deltatable(location)"),
        ("creat", "did you mean 'create'?"),
        ("files", "DeltaTable.files is gone: use file_uris()"),
        ("zzz", "and t.alter and t.optimize have more"),
    ],
)
def test_attributes_of_the_class(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(DeltaTable, name)
    assert str(caught.value).endswith(hint)
    assert not hasattr(DeltaTable, name)


def test_a_table_may_be_an_abstract_class_too(table: Any) -> None:
    class Named(ABC):
        """Has a name."""

        @abstractmethod
        def name(self) -> str:
            """The name."""

    class NamedTable(DeltaTable, Named):
        """A table with a name."""

        def name(self) -> str:
            return "n"

    assert NamedTable(table.table_uri).name() == "n"


@pytest.mark.parametrize(
    ("act", "hint"),
    [
        (len, "a DeltaTable has no length: use count()"),
        (lambda table: table["id"], "to_pyarrow_table(columns=[…]) for columns"),
        (list, "to_pyarrow_table().to_pylist() for rows"),
        (lambda table: [*table], "scan(), which yields batches"),
        (pd.DataFrame, "a DeltaTable has no items: use to_pandas() for a dataframe"),
        (lambda table: 1 in table, "a DeltaTable has no items: use to_pandas()"),
        (lambda table: 1 in table.scan(), "a Scan has no items: use to_table()"),
        (
            lambda _: pd.DataFrame(_any(deltalog.sql("SHOW TABLES"))),
            "a SqlResult has no items: use to_pandas()",
        ),
        (lambda table: len(table.scan()), "a Scan has no length: use count()"),
        (lambda table: table.scan()["id"], "a Scan has no items: use to_table()"),
        (lambda table: len(table.load_cdf()), "a Changes has no length: use to_table().num_rows"),
        (lambda table: pd.DataFrame(table.scan()), "or to_pandas() for a dataframe"),
        (lambda table: pd.DataFrame(table.load_cdf()), "or to_pandas() for a dataframe"),
        (np.array, "a DeltaTable has no items: use to_pandas()"),
        (lambda table: np.asarray(table.scan()), "a Scan has no items: use to_table()"),
        (lambda _: len(_any(deltalog.sql("SHOW TABLES"))), "use to_arrow().num_rows"),
        (lambda _: _any(deltalog.sql("SHOW TABLES"))["id"], "to_arrow() for columns"),
        (lambda table: table.describe()[0], "a TableDescription has no items: use to_table()"),
    ],
)
def test_uses_as_a_sequence(act: Callable[[Any], object], hint: str, table: Any) -> None:
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    with pytest.raises(TypeError) as caught:
        act(table)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("act", "hint"),
    [
        (lambda table: table.schema.names, "has no attribute 'names': use schema().names"),
        (lambda table: table.metadata.id, "use metadata().id"),
        (lambda table: table.to_pandas.head(), "use to_pandas().head"),
        (lambda table: table.history[0], "has no items: use history()[0]"),
        (lambda table: table.schema["id"], "use schema()['id']"),
        (lambda table: table.version == 0, "equals no int: use version()"),
        (lambda table: table.version + 1, "is not a value: use version()"),
        (lambda table: table.version > 1, "is not a value: use version()"),
        (lambda table: list(table.file_uris), "is not a value: use file_uris()"),
        (lambda table: len(table.schema), "is not a value: use schema()"),
        (lambda table: table.scan().to_pandas.head(), "use to_pandas().head"),
        (lambda table: table.scan().count + 1, "is not a value: use count()"),
        (lambda table: table.load_cdf().to_table.num_rows, "use to_table().num_rows"),
        (lambda table: table.sql("SELECT 1").to_pylist[0], "use to_pylist()[0]"),
    ],
)
def test_methods_that_are_not_called(act: Callable[[Any], object], hint: str, table: Any) -> None:
    with pytest.raises((AttributeError, TypeError), match=r"\.\w+ is a method, which") as caught:
        act(table)
    assert str(caught.value).endswith(hint)


@pytest.mark.parametrize(
    ("act", "hint"),
    [
        (lambda table: table.metadata().partition_columns.append("a"), "change list(…) of it"),
        (lambda table: table.metadata().partition_columns.nope, "has no attribute 'nope'"),
        (lambda table: table.protocol()["minReaderVersion"], "use .min_reader_version"),
        (lambda table: table.partitions().id, "use a dictionary of it: [0]['id']"),
        (lambda table: table.to_pandas(chunksize=1), "use scan(), which yields batches"),
        (lambda table: table.to_pandas(index_col="id"), "use to_pandas().set_index(…)"),
    ],
)
def test_values_that_describe_a_version(
    act: Callable[[Any], object], hint: str, tmp_path: Path
) -> None:
    write_deltalake(tmp_path / "p", [{"id": 1, "name": "a"}], partition_by="id")
    with pytest.raises((AttributeError, TypeError)) as caught:
        act(DeltaTable(tmp_path / "p"))
    assert str(caught.value).endswith(hint)


def test_methods_remain_methods(table: Any) -> None:
    assert inspect.ismethod(table.version)
    assert inspect.isfunction(DeltaTable.version)
    assert str(inspect.signature(table.version)) == "() -> 'int'"
    assert inspect.getdoc(table.version) == inspect.getdoc(DeltaTable.version)
    assert table.version == table.version
    assert table.version != table.count
    assert len({table.version, table.version, table.count}) == 2
    assert pickle.loads(pickle.dumps(table.version))() == table.version()
    assert bool(table.version)


def test_tables_and_scans_are_true_and_scans_yield_batches(table: Any) -> None:
    assert table
    assert table.scan()
    assert [batch.num_rows for batch in table.scan()] == [1]
    assert pa.table(table).num_rows == pa.table(table.scan()).num_rows == 1
    assert pd.DataFrame({"table": [table]})["table"][0] is table


def test_other_libraries_read_tables_and_scans(table: Any) -> None:
    expected = table.to_pyarrow_table().to_pylist()
    for rows in (table, table.scan()):
        assert pa.table(rows).to_pylist() == expected
        assert pa.RecordBatchReader.from_stream(rows).read_all().to_pylist() == expected
        assert pl.DataFrame(rows).to_dicts() == expected
        query = "SELECT *, (SELECT count(*) FROM rows) FROM rows"  # it is read twice
        found: Any = duckdb.sql(query)
        assert found.fetchall() == [(*one.values(), 1) for one in expected]


def test_other_errors_about_arguments_are_as_they_were(table: Any) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        table.load_as_version()

    def wrong(_: Any) -> None:
        table.scan(predicates=1)

    with pytest.raises(TypeError, match="predicates'"):  # raised within the method
        table.doctor(progress=lambda *_: wrong(table))


def test_warnings_are_at_the_callers_line(table: Any) -> None:
    with pytest.warns(DeprecationWarning, match="without_files") as caught:
        DeltaTable(table.table_uri, without_files=True)
    assert caught[0].filename == __file__


def test_scans_and_expressions_are_pickled(table: Any) -> None:
    scan = pickle.loads(pickle.dumps(table.scan(predicate=col("id") > 0)))
    assert scan.to_table().num_rows == 1


def test_properties_of_commits_by_position_are_named_by_their_types(table: Any) -> None:
    commit, hooks = CommitProperties(custom_metadata={"by": "me"}), PostCommitHookProperties()
    advice = r"DeltaTable\.repair\(\): passing .* by position is deprecated; write post_commithook"
    with pytest.warns(DeprecationWarning, match=advice):
        table.repair(True, hooks, commit)  # as in old versions of deltalake
    with pytest.warns(DeprecationWarning, match="write commit_properties=…, full=…, keep_versions"):
        table.vacuum(None, True, True, None, commit, True, [0])
    with pytest.warns(DeprecationWarning, match="write commit_properties=…$"):
        table.update({"id": "id + 1"}, None, None, None, True, commit)
    assert table.history(1)[0]["by"] == "me"
    with pytest.warns(DeprecationWarning, match="write commit_properties=…, raise_if_key"):
        _any(DeltaTable).create(
            *("memory://by-position", "id long", "error", None, None, None, None, None),
            *(commit, None, False),
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda table, one: table.repair(True, one, one),
        lambda table, one: table.repair(True, one, commit_properties=one),
        lambda table, _: table.repair(True, {"by": "me"}),
        lambda table, one: table.vacuum(None, True, True, None, one, True, [0], None),
    ],
)
def test_other_surplus_arguments_are_refused(call: Any, table: Any) -> None:
    with pytest.raises(TypeError, match=r"positional arguments? \(.*write the names"):
        call(table, CommitProperties())


@pytest.mark.parametrize(
    ("call", "kind", "advice"),
    [
        (
            lambda: _any(deltalog.convert_to_deltalake)("x", *["error"] * 8),
            TypeError,
            r"^convert_to_deltalake\(\) takes 8 positional arguments \(uri, .*write the names",
        ),
        (
            lambda: _any(deltalog.table_defaults)({}, {}),
            TypeError,
            r"^table_defaults\(\) takes 1 positional argument \(properties\), found 2$",
        ),
        (
            lambda: _any(deltalog.enable_nanosecond_timestamps)(True),
            TypeError,
            r"^enable_nanosecond_timestamps\(\) takes no arguments, found 1$",
        ),
        (deltalog.enable_preview, InvalidInputError, "without names: pass some of geospatial"),
        (
            lambda: _any(deltalog.enable_preview)(["geospatial"]),
            InvalidInputError,
            "expected one of geospatial.*pass several as arguments of their own",
        ),
        (
            lambda: _any(deltalog.TableFeatures).DeletionVector,
            AttributeError,
            "TableFeatures has no member 'DeletionVector': did you mean 'DeletionVectors'",
        ),
        (
            lambda: _any(deltalog.TableFeatures).Nothing,
            AttributeError,
            "TableFeatures has no member 'Nothing': it has AppendOnly, Invariants",
        ),
        (
            lambda: deltalog.TableFeatures("deletionVector"),
            ValueError,
            "cannot find the table feature 'deletionVector': did you mean 'deletionVectors'",
        ),
        (
            lambda: _any(deltalog.transaction).create_table_with_add_actions,
            AttributeError,
            r"use DeltaTable\.create\(location, schema\), and create_write_transaction",
        ),
    ],
)
def test_functions_and_features_name_what_to_use(
    call: Callable[[], object], kind: type[Exception], advice: str
) -> None:
    with pytest.raises(kind, match=advice):
        call()


SCHEMA = deltalog.Schema([deltalog.Field("a", "long")])


@pytest.mark.parametrize(
    "call",
    [
        lambda: _any(deltalog.Schema).from_json(schema_json=SCHEMA.to_json()),
        lambda: _any(deltalog.Schema).from_arrow(data_type=pa.schema([("a", pa.int64())])),
        lambda: deltalog.Schema([_any(deltalog.Field).from_arrow(field=pa.field("a", pa.int64()))]),
        lambda: deltalog.Schema([deltalog.Field("a", _any(arro3.DataType.int64()))]),
    ],
)
def test_schemas_have_the_arguments_of_deltalake(call: Callable[[], object]) -> None:
    assert call() == SCHEMA


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (
            lambda s: s.from_json(),
            r"^StructType\.from_json\(\) takes 1 argument \(text\), found 0$",
        ),
        (lambda s: s.from_json(j=1), r"got an unexpected .* 'j'; its argument is text$"),
        (lambda s: s.from_pyarrow, r"no attribute 'from_pyarrow': use from_arrow\(schema\)$"),
        (lambda s: s.from_arrow([1]), r"of \[1\], a list: .*pyarrow\.schema\(fields\) makes"),
        (lambda s: s.from_arrow(pa.table({"a": [1]})), r"a Table: .*; pass its schema$"),
        (lambda _: _any(deltalog.PrimitiveType)(data_type="long"), r"did you mean 'type'"),
        (lambda _: _any(deltalog.ArrayType)(), r"^ArrayType\(\) missing 1 required"),
        (lambda _: _any(deltalog.MapType)(key="long"), "the arguments are key_type, value_type"),
    ],
)
def test_wrong_calls_of_types_name_what_to_use(call: Callable[[Any], object], advice: str) -> None:
    with pytest.raises((TypeError, AttributeError, InvalidInputError), match=advice):
        call(deltalog.Schema)
