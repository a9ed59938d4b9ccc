"""Hints about unknown names and arguments: the calls that they name exist, and they help."""

from __future__ import annotations

import builtins
import importlib
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, Field, col, lit, write_deltalake
from deltalog.data.scan import Changes, Scan
from deltalog.errors import InvalidInputError
from deltalog.table import TableAlterer, TableMerger, TableOptimizer

_TABLES = [
    ("deltalog.operations.names_elsewhere", "_GONE"),
    ("deltalog.operations.names_elsewhere", "_MEANT"),
    ("deltalog.operations.names_elsewhere", "_SET_BY"),
    ("deltalog.table.alter", "_MEANT"),
    ("deltalog.table.optimize", "_MEANT"),
    ("deltalog.table.merge", "_MEANT"),
    ("deltalog._util.similar_names", "_ELSEWHERE"),
    ("deltalog._util.similar_names", "_OF_METHODS"),
    ("deltalog._util.similar_names", "_INSTEAD"),
    ("deltalog.data.scan.plan", "_MEANT"),
    ("deltalog.data.scan.changes", "_MEANT"),
    ("deltalog.schema.new_metadata", "_SET_BY"),
]
_OWNERS: dict[str, Any] = {
    "alter": TableAlterer,
    "optimize": TableOptimizer,
    "DeltaTable": DeltaTable,
    "deltalog": deltalog,
}
"""What stands before the dot of a call → the object that must have the name."""
_KNOWN = [
    *(DeltaTable, TableAlterer, TableOptimizer, TableMerger, Scan, Changes, Field, deltalog),
    *(pd.DataFrame, pl.DataFrame, pl.LazyFrame, pl, pa.Table, type(col("a")), builtins),
]
_OF_OTHERS = {
    "client",
    "list_tables",
    "read_deltalake",
    "read",
    "create_view",
    "array_contains",
    "list_schemas",
    "execute",
    "decimal",
    "Retry",
}
"""Calls of boto3, DuckDB, SQL and other classes of deltalog."""


@pytest.mark.parametrize(("module", "name"), _TABLES)
def test_the_calls_of_hints_exist(module: str, name: str) -> None:
    hints = getattr(importlib.import_module(module), name)
    assert hints
    for key, hint in hints.items():
        for owner, called in re.findall(
            r"(?:([A-Za-z_]\w*)(?:\([^()]*\))?\.)?([A-Za-z_]\w*)\(", hint
        ):
            owners = [_OWNERS[owner]] if owner in _OWNERS else _KNOWN
            found = any(hasattr(one, called) for one in owners) or called in _OF_OTHERS
            assert found, f"{key}: {hint!r} names {called!r}"


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """A table of two rows."""
    write_deltalake(tmp_path / "t", {"id": [1, 2], "name": ["a", "b"]})
    return DeltaTable(tmp_path / "t")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("t.current_version", r"use version\(\)$"),
        ("t.asof", r"use DeltaTable\(location, version=…\)"),
        ("t.enable_change_data_feed", r"\{'delta\.enableChangeDataFeed': 'true'\}\)$"),
        ("t.stream", r"use follow\(\)"),
        ("t.watch", r"use follow\(\)"),
        ("t.subscribe", r"use follow\(\)"),
        ("t.begin", r"use transaction\(\), as in `with"),
        ("t.shallow_clone", r"use clone\(location, shallow=True\)$"),
        ("t.export", r"use to_polars\(\)"),
        ("t.analyze", r"use describe\(\)"),
        ("t.plan", r"use scan\(predicate=…\)\.explain\(\)$"),
        ("t.arrow_schema", r"use schema\(\)\.to_arrow\(\)$"),
        ("t.when_matched_update_all", r"use merge\(source, predicate\)"),
        ("t.comment", r"alter\.set_column_comment\(column, text\)$"),
        ("t.alter.enable_cdf", r"delta\.enableChangeDataFeed"),
        ("t.alter.widen_column", r"use set_column_type\(name, type\)$"),
        ("t.alter.comment", r"use set_column_comment\(column, text\), or"),
        ("t.alter.set_nullable", r"use set_column_not_null\(name\), or drop_column_not_null"),
        ("t.alter.set_primary_key", "tables have no primary keys$"),
        ("t.alter.zzz", r"use one of its methods, which print\(table\.alter\) shows$"),
        ("col('a').eq", r"use col\(name\) == value$"),
        ("col('a').zzz", r"or SQL, such as \"length\(name\) > 3\", for a function$"),
        ("deltalog.StructField", r"use Field\(name, type\)$"),
        ("deltalog.TableNotFoundError", r"use deltalog\.errors\.TableNotFoundError$"),
        ("deltalog.set_option", "use the arguments of calls"),
        ("deltalog.init_logging", r"use logging\.getLogger\('deltalog'\)"),
        ("deltalog.DeltaOptimizer", r"use DeltaTable\(location\)\.optimize$"),
        ("deltalog.sharing.load_table", r"use SharedTable\(url\)"),
        ("deltalog.errors.TableNotFound", "use TableNotFoundError$"),
        ("t.restore(0).version", "use version of the table itself"),
        ("t.restore(0).zzz", "its keys are 'num"),
        ("t.transaction().__enter__().zzz", "it has append, overwrite, delete, "),
    ],
)
def test_attributes(table: DeltaTable, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '.*': .*{hint}"):
        eval(name, {"t": table, "deltalog": deltalog, "col": col})  # noqa: S307  # the text of a test


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("col()", r"^col\(\) missing 1 required positional argument: 'name'; write col\(name\)$"),
        ("col('a', 'b')", r"^col\(\) takes 1 .*, found 2; col\('info\.city'\) is a field"),
        ("deltalog.query('x')", r"is a module, .*: use deltalog\.sql\(query, t=table\)$"),
        ("deltalog.transaction(t)", "is a module, .*: use `with table"),
        ("deltalog.sharing('p')", r"is a module, .*SharingClient\(profile\)$"),
        ("write_deltalake(path='t', data={})", "'path': the location is the first argument$"),
        ("write_deltalake('t', df={})", "argument 'df': did you mean 'data'"),
        ("t.commit()", r"'written'; each method commits by itself, and `with table\.trans"),
        (
            "t.alter.set_table_properties(delta_appendOnly=True)",
            r"dictionary, \{'delta\.appendOnly': 'true'\}$",
        ),
        ("t.alter.set_table_properties(append_only=True)", r"\{'delta\.appendOnly': 'true'\}$"),
        ("t.alter.set_table_properties(deltaAppendOnly=True)", r"\{'delta\.appendOnly': 'true'"),
        ("t.merge(data={'id': [1]}, predicate='x')", "'data': did you mean 'source'"),
        ("t.transaction().append(df={})", r"TableTransaction\.append.*did you mean 'data'"),
        ("DeltaTable.create('x', 'id long', primary_key='id')", "tables have no primary keys$"),
        ("t.alter.add_columns([], after='id')", r"use where=\('after', name\)$"),
    ],
)
def test_calls(table: DeltaTable, call: str, message: str) -> None:
    names = {"t": table, "deltalog": deltalog, "col": col, "DeltaTable": DeltaTable}
    with pytest.raises(TypeError, match=message):
        eval(call, {**names, "write_deltalake": write_deltalake})  # noqa: S307  # the text of a test


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("lit(object())", "cannot use an object as a constant: expected a value of a column"),
        ("lit(t.count)", "cannot use a method as a constant"),
        ("t.alter.add_columns({'b': 'long'}, 'first')", "write the name, where='first'$"),
        ("DeltaTable('delta-sharing://x')", r"deltalog\.sharing\.SharedTable\("),
        (
            "DeltaTable('t', filesystem=5)",
            "as filesystem a file system of fsspec .*, found an int$",
        ),
        (
            "deltalog.sql('SELECT list_aggregate([1], \"sum\")', t=t)",
            r"an array is written array\(1, 2\)",
        ),
    ],
)
def test_values(table: DeltaTable, call: str, message: str) -> None:
    names = {"t": table, "deltalog": deltalog, "lit": lit, "DeltaTable": DeltaTable}
    with pytest.raises(InvalidInputError, match=message):
        eval(call, names)  # noqa: S307  # the text of a test


def test_options_that_are_passed_as_a_file_system_are_not_shown() -> None:
    options: Any = {"aws_secret_access_key": "s3cret"}
    with pytest.raises(InvalidInputError, match="found a dict; pass options as storage_opt") as no:
        DeltaTable("s3://bucket/table", filesystem=options)
    assert "s3cret" not in str(no.value)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("from deltalog.sharing import SharingServer", "use the command deltalog share serve CON"),
        (
            "from deltalog.sharing import create_app",
            r"use deltalog\.sharing\.server\.app\(parse_co",
        ),
        ("from deltalog import SharingServer", "use the command deltalog share serve CONFIG$"),
        ("from deltalog import connect_unity", r"use connect\(catalog='uc://'\), or UnityCatalog"),
        ("from deltalog import UnityCatalog", r"use connect\(catalog='uc://'\), or UnityCatalog"),
        ("from deltalog import connect_glue", r"use connect\(catalog='glue'\), or GlueCatalog\("),
        ("from deltalog import connect_catalog", r"use connect\(catalog=…\), or the classes of"),
        ("from deltalog.catalogs import connect_unity", r"use UnityCatalog\(url\)$"),
        ("from deltalog.errors import TableNotFound", "errors': use TableNotFoundError$"),
        ("from deltalog.errors import DeltalogError", "use DeltaError, the base class of all$"),
        ("from deltalog.errors import TableNotFoundErr", "did you mean 'TableNotFoundError'"),
        ("from deltalog.exceptions import InvalidInputError", r"use deltalog\.errors, which has"),
        ("from deltalog import StructField", r"use Field\(name, type\)$"),
        ("from deltalog.schema import StructField", r"use Field\(name, type\)$"),
        ("from deltalog.writer import WriterPropertie", "did you mean 'WriterProperties'"),
        ("from deltalog.query import Querybuilder", "did you mean 'QueryBuilder'"),
        ("import deltalog.exception", r"'deltalog\.exception': use deltalog\.errors$"),
        ("from deltalog.types import LongType", r"as in deltalog\.Field\('id', 'long'\)$"),
        ("import deltalog.zzz", r"^No module named 'deltalog\.zzz'$"),
        ("from deltalog.testing import InMemoryStore", r"DeltaTable\('memory://name'\)$"),
        ("from deltalog.fs import nonsense", r"'deltalog\.fs': it has DeltaStorageHandler$"),
        ("from deltalog.errors import Nonsense", r"dir\(deltalog\.errors\) lists its names$"),
        ("import deltalog.DeltaTable", r": it is a name in a module, so use from deltalog import"),
        ("import deltalog.write_deltalake", r"use from deltalog import write_deltalake$"),
        ("import deltalog.DeltaLog", r": use deltalog\.DeltaTable$"),
        ("from deltalog import sum", r'use sql\("SELECT sum\(n\) FROM t", t=table\)'),
        ("from deltalog.ray import read_deltalog", r"use read\(location\)$"),
        ("from deltalog.dask import nonsense", r"'nonsense' from 'deltalog\.dask': it has DaskEng"),
        ("from deltalog.polars import read", r"use DeltaTable\(location\)\.to_polars\(\)$"),
    ],
)
def test_imports(statement: str, message: str) -> None:
    with pytest.raises(ImportError, match=message):
        exec(statement)  # noqa: S102  # the text of a test


def test_assignments(table: DeltaTable) -> None:
    opened: Any = table
    for name, hint in (
        ("version", r"use load_as_version\(version\), or restore\(version\)"),
        ("schema", r"use the methods of alter"),
        ("properties", r"use alter\.set_table_properties\(\{key: value\}\)$"),
        ("count", "by the table, and cannot be assigned$"),
    ):
        with pytest.raises(AttributeError, match=rf"^DeltaTable\.{name} is set .*{hint}"):
            setattr(opened, name, 0)
    assert opened.version() == 0
    opened.label = "own attributes are allowed"
    with mock.patch.object(opened, "count", return_value=7):
        assert opened.count() == 7
    assert opened.count() == 2


def test_subclasses_may_have_any_attributes(table: DeltaTable) -> None:
    class Own(DeltaTable):
        def __init__(self, uri: str) -> None:
            super().__init__(uri)
            self.name = "x"
            self.detail = 5  # type: ignore[assignment,method-assign]

    own: Any = Own(table.table_uri)
    assert (own.name, own.detail, own.count()) == ("x", 5, 2)


@pytest.mark.parametrize("name", ["t\n", " t", "t\t"])
def test_blanks_around_the_name_of_a_new_table(name: str, tmp_path: Path) -> None:
    place = str(tmp_path / name)
    with pytest.warns(UserWarning, match="begins or ends with a blank; if it is a mistake") as w:
        DeltaTable.create(place, {"id": "long"})
    assert w[0].filename == __file__
    with pytest.warns(UserWarning, match="begins or ends with a blank"):
        write_deltalake(str(tmp_path / "other" / name), {"id": [1]})
    write_deltalake(place, {"id": [1]}, mode="append")  # not for an existing table
    write_deltalake(str(tmp_path / name / "inner"), {"id": [1]})  # nor in an existing directory


def test_a_name_that_is_no_module_is_none() -> None:
    assert find_spec("deltalog.Nonsense") is None


@pytest.mark.parametrize("function", ["uuid", "gen_random_uuid", "newid"])
def test_functions_that_only_a_query_can_use(table: DeltaTable, function: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot be used here: its result differs each"):
        table.count(f"name = {function}()")
