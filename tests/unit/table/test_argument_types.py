"""Arguments of the wrong type: each is refused by an error of deltalog, and nothing is changed.

The test walks the signatures of public functions, so that it covers new arguments as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog import (
    CatalogTransactions,
    DeltaTable,
    Field,
    QueryBuilder,
    Schema,
    col,
    connect,
    write_deltalake,
    write_files,
)
from deltalog._util.argument_types import check_type
from deltalog._util.builders import Block
from deltalog.catalogs import FileCatalog, NamedTable
from deltalog.data.scan.rows import Rows
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.table.alter import TableAlterer
from deltalog.table.merge import TableMerger
from deltalog.table.optimize import TableOptimizer
from deltalog.table.transaction import TableTransaction
from tests.support.facade import make, store_of, unchanged
from tests.support.logs import DictStore

ROWS = [{"id": n, "name": "x", "day": "2024-01-01", "info": {"city": "Oslo"}} for n in range(3)]
MERGE = "source.id = target.id"
WRONG: Mapping[str, Any] = {
    "number": 5,
    "string": "x",
    "bytes": b"x",
    "list": ["x"],
    "numbers": [1],
    "dictionary": {"a": 1},
    "numbered": {5: "x"},
    "object": object(),
    "series": pd.Series([1, 2]),
    "truth": True,
    "none": None,
}
LEFT_OUT = {"engine", "filesystem", "log_tail", "clock", "store", "context", "options"}
"""Objects with methods of their own, which users of the library implement."""

# The values of required arguments, by function.
SOURCE = pa.table({"id": [1], "name": ["y"], "day": ["2024-01-01"]})


def merger(table: DeltaTable) -> Any:
    return table.merge(SOURCE, MERGE)


def staged(table: DeltaTable) -> Any:
    transaction = table.transaction()
    transaction._begin()
    return transaction


TABLE: Mapping[str, Mapping[str, Any]] = {
    "transaction_version": {"app_id": "a"},
    "history": {},
    "load_as_version": {"version": 0},
    "update_incremental": {},
    "scan": {},
    "head": {},
    "count": {},
    "to_pyarrow_dataset": {},
    "to_arrow": {},
    "to_pyarrow_table": {},
    "to_pandas": {},
    "to_polars": {},
    "to_duckdb": {},
    "sql": {"query": "SELECT * FROM this"},
    "load_cdf": {},
    "file_uris": {},
    "partitions": {},
    "get_add_actions": {},
    "diff": {"before": 0},
    "doctor": {},
    "follow": {},
    "branch": {"name": "draft"},
    "drop_branch": {"name": "draft"},
    "audit": {},
    "appender": {},
    "delete": {"predicate": "id = 1"},
    "update": {"updates": {"id": "2"}, "predicate": "id = 1"},
    "merge": {"source": SOURCE, "predicate": MERGE},
    "upsert": {"data": SOURCE, "key": "id"},
    "truncate": {},
    "write_spec": {},
    "commit": {"written": []},
    "transaction": {},
    "set_domain_metadata": {"domain": "a", "configuration": "b"},
    "remove_domain_metadata": {"domain": "a"},
    "vacuum": {},
    "vacuum_report": {},
    "generate": {},
    "restore": {"target": 0},
    "repair": {},
    "clone": {"target": "clone"},
    "compact_logs": {"starting_version": 0, "ending_version": 1},
}
ALTER: Mapping[str, Mapping[str, Any]] = {
    "add_columns": {"fields": Field("b", "string")},
    "rename_column": {"column": "name", "new_name": "title"},
    "drop_columns": {"names": "name"},
    "move_column": {"column": "name", "where": "first"},
    "set_column_type": {"column": "id", "to_type": "long"},
    "set_column_collation": {"column": "name", "collation": "UTF8_LCASE"},
    "set_column_comment": {"column": "name", "comment": "c"},
    "set_column_metadata": {"column": "name", "metadata": {"a": "b"}},
    "set_column_default": {"column": "name", "default": "'a'"},
    "set_column_not_null": {"column": "name"},
    "drop_column_not_null": {"column_name": "name"},
    "add_constraint": {"constraints": {"c": "id >= 0"}},
    "drop_constraint": {"name": "c"},
    "set_table_properties": {"properties": {"a": "b"}},
    "unset_table_properties": {"keys": "a"},
    "set_table_name": {"name": "t"},
    "set_table_description": {"description": "d"},
    "set_clustering_columns": {"names": ["id"]},
    "set_key_index": {"names": ["id"]},
    "add_feature": {"feature": "domainMetadata"},
    "drop_feature": {"feature": "domainMetadata"},
    "upgrade_protocol": {"reader_version": 1, "writer_version": 4},
    "upgrade_row_ids": {},
    "backfill_row_ids": {},
}
OPTIMIZE: Mapping[str, Mapping[str, Any]] = {
    "compact": {},
    "z_order": {"columns": ["id"]},
    "cluster": {},
    "purge": {},
    "key_index": {},
    "upgrade_uniform": {},
}
MERGER: Mapping[str, Mapping[str, Any]] = {
    "when_matched_update": {"updates": {"id": "source.id"}},
    "when_matched_update_all": {},
    "when_matched_delete": {},
    "when_not_matched_insert": {"updates": {"id": "source.id"}},
    "when_not_matched_insert_all": {},
    "when_not_matched_by_source_update": {"updates": {"id": "1"}},
    "when_not_matched_by_source_delete": {},
}
TRANSACTION: Mapping[str, Mapping[str, Any]] = {
    "append": {"data": ROWS},
    "overwrite": {"data": ROWS},
    "delete": {"predicate": "id = 1"},
    "update": {"updates": {"id": "2"}, "predicate": "id = 1"},
    "merge": {"source": SOURCE, "predicate": MERGE},
    "upsert": {"data": SOURCE, "key": "id"},
    "set_domain_metadata": {"domain": "a", "configuration": "b"},
    "set_app_transaction": {"app_id": "a", "version": 1},
}
SCAN: Mapping[str, Mapping[str, Any]] = {
    "to_table": {},
    "to_pandas": {},
    "to_polars": {},
    "to_duckdb": {},
}
CONNECTION: Mapping[str, Mapping[str, Any]] = {
    "execute": {"operation": "SELECT 1"},
    "execute_script": {"script": "SELECT 1"},
    "register": {"name": "rows", "rows": ROWS},
}
CURSOR: Mapping[str, Mapping[str, Any]] = {
    "execute": {"operation": "SELECT 1"},
    "executemany": {"operation": "SELECT 1", "seq_of_parameters": []},
    "fetchmany": {},
}
CATALOG: Mapping[str, Mapping[str, Any]] = {
    "list_schemas": {},
    "list_tables": {"schema": ("s",)},
    "find": {"name": ("s", "t")},
    "open": {"name": ("s", "t")},
    "stage": {"name": ("s", "new")},
    "drop": {"name": ("s", "none")},
}
TRANSACTIONS: Mapping[str, Mapping[str, Any]] = {
    "begin": {},
    "branch": {"tables": ["s.t"], "name": "draft"},
    "recover": {},
    "forget": {"transaction_id": "x"},
}
FUNCTIONS: Mapping[str, Mapping[str, Any]] = {
    "write_deltalake": {"table_or_uri": "new", "data": ROWS},
    "convert_to_deltalake": {"uri": "parquet"},
    "connect": {},
    "sql": {"statement": "SELECT 1"},
    "table_defaults": {"properties": {"delta.appendOnly": "true"}},
    "Field": {"name": "a", "type": "long"},
    "Schema": {"fields": [Field("a", "long")]},
    "ArrayType": {"element_type": "long"},
    "MapType": {"key_type": "string", "value_type": "long"},
    "PrimitiveType": {"type": "long"},
    "CommitProperties": {},
    "PostCommitHookProperties": {},
    "WriterProperties": {},
    "ColumnProperties": {},
    "BloomFilterProperties": {"set_bloom_filter_enabled": True},
    "Transaction": {"app_id": "a", "version": 1},
    "col": {"name": "id"},
}


def of(owner: Callable[[DeltaTable], Any], name: str) -> Callable[[DeltaTable], Any]:
    return lambda table: getattr(owner(table), name)


GROUPS: Mapping[str, tuple[Callable[[DeltaTable], Any], Mapping[str, Mapping[str, Any]]]] = {
    "table.": (lambda table: table, TABLE),
    "alter.": (lambda table: table.alter, ALTER),
    "optimize.": (lambda table: table.optimize, OPTIMIZE),
    "merge.": (merger, MERGER),
    "transaction.": (staged, TRANSACTION),
    "scan.": (lambda table: table.scan(), SCAN),
    "connection.": (lambda _: connect(), CONNECTION),
    "cursor.": (lambda _: connect().cursor(), CURSOR),
    "catalog.": (lambda _: FileCatalog("lake"), CATALOG),
    "transactions.": (lambda _: CatalogTransactions(FileCatalog("lake")), TRANSACTIONS),
    "": (lambda _: deltalog, FUNCTIONS),
}
NEW = {"table_uri": "new", "schema": SOURCE.schema}
CALLS: Mapping[str, tuple[Callable[[DeltaTable], Any], Mapping[str, Any]]] = {
    **{
        f"{group}{name}": (of(owner, name), given)
        for group, (owner, functions) in GROUPS.items()
        for name, given in functions.items()
    },
    "DeltaTable": (lambda _: DeltaTable, {"table_uri": "new"}),
    "DeltaTable.create": (lambda _: DeltaTable.create, NEW),
    "is_deltatable": (lambda _: DeltaTable.is_deltatable, {"table_uri": "new"}),
    "NamedTable": (lambda _: NamedTable, {"catalog": FileCatalog("lake"), "name": ("s", "t")}),
    "FileCatalog": (lambda _: FileCatalog, {"root": "lake"}),
    "write_files": (lambda table: partial(write_files, table), {"data": SOURCE}),
}
CHECKED: Mapping[type, Mapping[str, Any]] = {
    DeltaTable: TABLE,
    TableAlterer: ALTER,
    TableOptimizer: OPTIMIZE,
    TableMerger: MERGER,
    TableTransaction: TRANSACTION,
}
INTERNAL = {"from_context", "if_any", "do", "execute", "run", "show", "create_write_transaction"}
"""Methods whose arguments are objects of deltalog."""
OF_BRANCHES = {"publish"}
"""Methods that need a branch: see `test_branches`."""


@pytest.fixture(scope="module")
def base() -> DictStore:
    feed = {"delta.enableChangeDataFeed": "true"}
    table = make(ROWS, partition_by="day", configuration=feed)
    table.alter.add_constraint({"c": "id >= 0"})
    return store_of(table)


def tried(function: Callable[..., Any], arguments: Mapping[str, Any]) -> bool:
    """Whether a call is refused by an error of deltalog; other errors are raised."""
    try:
        found = function(**arguments)
        if isinstance(found, Block):
            with found:
                pass
        elif isinstance(found, Rows):
            found.to_table()
    except DeltaError:
        return True
    return False


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.* was never run:RuntimeWarning")
@pytest.mark.parametrize("label", CALLS)
def test_wrong_types_are_refused_or_mean_something(
    label: str, base: DictStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some strings are locations
    find, given = CALLS[label]
    write_deltalake("lake/s/t", ROWS)
    for name in inspect.signature(find(DeltaTable(base))).parameters:
        if name in LEFT_OUT:
            continue
        for kind, value in WRONG.items():
            store = DictStore()
            store.files.update(base.files)
            function = find(DeltaTable(store))
            before = dict(store.files)
            try:
                refused = tried(function, {**given, name: value})
            except Exception as error:
                error.add_note(f"in {label} with {name} of the kind {kind}")
                raise
            if refused and not AFTERWARDS & {f"{label}.{name}"}:
                assert dict(store.files) == before, (label, name, kind)


AFTERWARDS = {"table.audit.checks"}
"""Arguments that are read after a branch is made, which remains for the next attempt."""


@pytest.mark.parametrize("kind", CHECKED)
def test_every_method_with_arguments_is_tried(kind: type) -> None:
    public = {
        name
        for name in dir(kind)
        if not name.startswith("_")
        and inspect.isroutine(getattr(kind, name))
        and len(inspect.signature(getattr(kind, name)).parameters) > 1
    }
    assert public - INTERNAL - OF_BRANCHES - {"create", "is_deltatable", *CHECKED[kind]} == set()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda t: t.alter.drop_constraint(["pos"]),
            "cannot call DeltaTable.alter.drop_constraint with name=['pos']: expected a string",
        ),
        (lambda t: t.alter.drop_constraint(None), "with name=None: expected a string"),
        (lambda t: t.branch("n", expires_after=3), "such as timedelta(days=3)"),
        (lambda t: t.appender(wait_ms="2s"), "cannot call DeltaTable.appender with wait_ms='2s'"),
        (lambda t: t.set_domain_metadata(5, "a"), "domain=5: expected a string"),
        (lambda t: t.scan(columns=pl.col("id")), "a list of strings, such as ['id', 'name']"),
        (lambda t: t.alter.add_columns(5), "such as Field('name', 'string')"),
        (lambda t: t.alter.add_columns(pa.int64()), "such as [Field('id', 'long')]"),
        (lambda t: t.to_duckdb("db.duckdb"), "such as duckdb.connect("),
        (lambda t: t.alter.set_table_properties({5: "x"}), "expected a dictionary of strings"),
        (lambda t: t.scan(predicate=col("id") == pd.Series([1, 2])), "is_in(values)"),
        (lambda t: t.delete("id = 1", dry_run=1), "dry_run=1: expected True or False"),
        (lambda t: t.update({5: "1"}), "with name=5: expected the name of a column"),
        (lambda _: Field("a", "long", nullable=_any("no")), "nullable='no': expected True or"),
        (lambda _: Field(_any(5), "long"), "cannot call Field with name=5: expected a string"),
        (lambda _: Field("a", "long", metadata=_any("abc")), "metadata='abc': expected a dict"),
        (lambda _: Schema(_any(["id", "integer"])), "such as [Field('id', 'long')]"),
        (lambda _: connect(schema=_any(["sales"])), "schema=['sales']: expected a string"),
        (lambda _: connect(catalog="uc:/main"), "did you mean 'uc://main'?"),
        (lambda _: connect(catalog="unity://main"), "did you mean 'uc://main'?"),
        (lambda _: connect(catalog="glue://"), "did you mean 'glue'?"),
        (lambda _: NamedTable(catalog=_any("lake"), name=("s", "t")), "such as FileCatalog("),
        (
            lambda _: NamedTable(catalog=FileCatalog("lake"), name=_any("s.t")),
            "name='s.t': expected a tuple of names, here ('s', 't')",
        ),
        (lambda _: QueryBuilder().register("t", _any("path")), "such as DeltaTable('location')"),
        (
            lambda _: write_deltalake("t", ROWS, partition_by=_any(0)),
            "partition_by=0: expected",
        ),
        (
            lambda _: write_deltalake("t", ROWS, partition_by=_any({"day": 1})),
            "partition_by={'day'",
        ),
        (lambda _: write_deltalake("t", ROWS, partition_by=_any([1])), "partition_by=[1]: expect"),
        (lambda _: write_deltalake("t", ROWS, name=_any(b"x")), "with name=b'x': expected a str"),
        (
            lambda _: write_deltalake("t", ROWS, configuration=_any(["a=b"])),
            "configuration=['a=b']: expected a dictionary of strings",
        ),
    ],
)
def test_messages(
    call: Callable[[Any], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = make(ROWS)
    with unchanged(table), pytest.raises(InvalidInputError) as caught:
        call(table)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("annotation", "right", "wrong"),
    [
        ("str | None", ["x", np.str_("x"), None], [5, b"x", ["x"]]),
        ("bool", [True, np.bool_(True)], [1, "yes"]),
        ("int", [1, np.int32(1), 1e6], [True, "1", 1.5]),
        ("float", [1, 1.5, np.float32(1)], [True, "1"]),
        ("Sequence[str]", [["a"], ("a",), {"a"}, pd.Index(["a"]), iter([1])], ["a", [1], {"a": 1}]),
        ("str | Sequence[str] | None", ["a", ["a"]], [[1], 5]),
        ("Sequence[ColumnPath]", [["a", ("b", "c")]], ["a", [[]], [("a", 1)]]),
        ("Mapping[str, str | None]", [{"a": "b"}, {"a": None}], [{"a": True}, {1: "a"}, ["a=b"]]),
        ("Literal['a', 'b'] | None", ["a", "c", None], [1, ["a"]]),
        ("Sequence[int] | None", [[1], "a"], [5]),
        ("Callable[[int], int] | None", [len], [5]),
        ("Parameters", [[1], {"a": 1}], [5, {1: 1}]),
        ("Rows | str", [5, "x", object()], []),
    ],
)
def test_annotations(annotation: str, right: Sequence[Any], wrong: Sequence[Any]) -> None:
    for value in right:
        check_type("f", "argument", value, annotation)
    for value in wrong:
        with pytest.raises(InvalidInputError, match="cannot call f with argument="):
            check_type("f", "argument", value, annotation)


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "'true'"), (10, "'10'"), (1.5, "'1.5'")],
)
def test_a_property_that_is_no_string_is_shown_as_one(value: Any, text: str) -> None:
    given: Any = {"delta.x": value}
    expected = rf"expected a dictionary of strings, such as {{'delta.x': {text}}}$"
    with pytest.raises(InvalidInputError, match=expected):
        make(ROWS).alter.set_table_properties(given)
    with pytest.raises(InvalidInputError, match=expected):
        write_deltalake("memory://none", ROWS, configuration=given)


@pytest.mark.parametrize(
    "fields",
    [
        pa.field("x", pa.int32()),
        [pa.field("x", pa.int32())],
        pa.schema([("x", pa.int32())]),
        Schema([Field("x", "integer")]),
    ],
)
def test_columns_are_added_by_fields_of_arrow_and_by_schemas(fields: Any) -> None:
    table = make(ROWS)
    table.alter.add_columns(fields)
    assert table.schema().fields[-1] == Field("x", "integer")


def test_iterators_are_not_read_by_the_check() -> None:
    assert make(ROWS).scan(_any(iter(["id"]))).to_table().column_names == ["id"]


def test_long_values_are_cut() -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_type("f", "argument", pd.Series(range(1000)), "str")
    assert len(str(caught.value)) < 200
    assert "(Series)" in str(caught.value)


def _any(found: Any) -> Any:
    """The same object, for mypy without a class."""
    return found
