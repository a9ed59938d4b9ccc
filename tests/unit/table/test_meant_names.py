"""Names and arguments of other libraries: one table per class, one form of message."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

import deltalog
from deltalog import CatalogTransactions, DeltaTable, QueryBuilder, col, connect, write_deltalake
from deltalog._util.similar_names import SimilarNames
from deltalog.catalogs import FileCatalog, NamedTable
from deltalog.errors import BranchNotFoundError, InvalidInputError
from deltalog.polars import scan_delta
from deltalog.sharing.client.client import SharingClient
from deltalog.sharing.client.table import SharedTable

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = {"shareCredentialsVersion": 1, "endpoint": "https://example.com/", "bearerToken": "x"}


@pytest.fixture
def names(tmp_path: Path) -> dict[str, Any]:
    """The objects that the calls below use."""
    write_deltalake(tmp_path / "s" / "t", {"id": [1, 2], "name": ["n1", "n2"]})
    t: Any = DeltaTable(tmp_path / "s" / "t")
    cat = FileCatalog(tmp_path)
    share = SharedTable("s.d.t", profile=PROFILE)
    return {
        "t": t,
        "col": col,
        "cat": cat,
        "all": CatalogTransactions(cat),
        "night": cat.branch(["s.t"], "night"),
        "share": share,
        "client": SharingClient(PROFILE),
        "builder": QueryBuilder(),
        "connect": connect,
        "NamedTable": NamedTable,
        "scan_delta": scan_delta,
    }


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("col('a').contains", r"use like\('%text%'\), or SQL .*array_contains\(tags, 'a'\)"),
        ("col('a').str", r"use like\(pattern\), or SQL: \"lower\(name\) = 'a'\"$"),
        ("col('a').lower", r"lower\(name\)"),
        ("col('a').desc", "use order_by='id DESC' of a scan$"),
        ("col('a').fill_null", r"coalesce\(amount, 0\) > 1"),
        ("col('a').sum", r"use deltalog\.sql\(query, t=table\)$"),
        ("col('a').getField", r"use col\('info\.city'\)$"),
        ("t.scan().sort", r"use scan\(order_by=…, limit=…\) of the table$"),
        ("t.scan().group_by", r"use sql\(query\) of the table$"),
        ("t.scan().write_parquet", r"use to_polars\(\)\.write_parquet\(path\)$"),
        ("t.schema().to_pyarrow", r"use to_arrow\(\)$"),
        ("t.schema().to_pyarow", "did you mean 'to_arrow'"),
        ("t.metadata().schema", r"use DeltaTable\.schema\(\), or schema_string$"),
        ("t.id", r"use metadata\(\)\.id for .*, or to_pandas\(columns=\['id'\]\)"),
        ("t.merge_schema", r"schema_mode='merge'\), or alter\.add_columns\(\)$"),
        ("share.to_table", r"use to_arrow\(\)$"),
        ("t.show", r"use head\(\)"),
        ("t.alias", r"use merge\(…, target_alias=…\)"),
        ("t.as_of", r"use DeltaTable\(location, version=…\)"),
        ("t.alter.rename", r"use rename_column\(name, new_name\)$"),
        ("t.alter.drop_column", r"use drop_columns\(names\)$"),
        ("t.scan().show", r"use print\(… \.to_polars\(\)\)$"),
        ("t.checkpoint", r"use create_checkpoint\(\)$"),
        ("t.latest_version", r"use version\(\) of DeltaTable\(location\)$"),
        ("t.restore_to_version", r"use restore\(version\)$"),
        ("t.columns", r"use schema\(\)\.names$"),
        (
            "t.drop",
            r"delete\(\) for rows; a table is its directory, which the store's own tools delete",
        ),
        ("t.create_branch", r"use branch\(name\)$"),
        ("t.checkout", r"use branch\(name, exist_ok=True\)$"),
        ("t.merge_branch", r"use publish\(checks\)$"),
        ("t.delete_branch", r"use drop_branch\(name\)$"),
        ("t.drop_key_index", r"use alter\.set_key_index\(None\)$"),
        ("t.alter.drop_key_index", r"use set_key_index\(None\)$"),
        ("t.optimize.vacuum", r"use vacuum\(\) of the table$"),
        ("t.appender().write", r"use append\(data\)$"),
        ("share.delete", "use a table of your own, .*; shares are read-only$"),
        ("share.merge", "shares are read-only$"),
        ("cat.load_table", r"use DeltaTable\(NamedTable\(catalog=catalog, name="),
        ("all.transaction", r"use begin\(\)$"),
        ("night.s", r"use branch\['schema\.table'\] for the branch of a table$"),
        ("night.count", r"use branch\['schema\.table'\]"),
        ("night.commit", r"use publish\(checks\)$"),
        ("builder.sql", r"use execute\(query\)$"),
    ],
)
def test_attributes(names: dict[str, Any], name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute .*: .*{hint}"):
        eval(name, names)  # noqa: S307  # the text of a test


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("t.appender(['id'])", r"^DeltaTable\.appender\(\) takes no positional .*upsert=…"),
        ("t.create_checkpoint(1)", r"^DeltaTable\.create_checkpoint\(\) takes no .*, found 1$"),
        (
            "t.to_duckdb(1, [], '', 4)",
            r"^DeltaTable\.to_duckdb\(\) takes 3 .*, found 4; write the names: parameters=…$",
        ),
        ("t.branches('n')", r"found 1; branch\(name, exist_ok=True\) opens a branch$"),
        ("t.optimize.key_index(['id'])", r"; alter\.set_key_index\(columns\) sets the key$"),
        (
            "t.restore()",
            r"^DeltaTable\.restore\(\) missing 1 required .*: 'target'; write restore\(target\)$",
        ),
        ("t.delete('id = 1', 2, 3, 4, 5)", r"^DeltaTable\.delete\(\) takes 4 .*, dry_run=…"),
        ("col('id').is_in(1, 2)", r"^Column\.is_in\(\) takes .*pass one list, as in is_in\(\[1"),
        ("col('info')['city']", r"^Column has no item 'city': use col\('info\.city'\)$"),
        ("col('tags')[0]", r"^Column has no item 0: use SQL, such as \"tags\[0\] = 'a'\"$"),
        ("1 in col('tags')", "^Column has no item 0"),
        ("share.to_pandas(limit=5)", r"^SharedTable\.to_pandas\(\) .*'limit': use scan\(limit=…"),
        ("connect(orders=t)", r"argument 'orders': pass tables as connect\({'orders': table}\)$"),
        ("connect(catalogs=t)", r"argument 'catalogs': did you mean 'catalog'\?$"),
        ("t.metadata()['id']", r"^Metadata has no item 'id': use \.id$"),
        ("t.metadata()['idd']", r"^Metadata has no item 'idd': did you mean 'id'\?$"),
        ("t.doctor()['findings']", r"^Report has no item 'findings': use \.findings$"),
        ("t.history()['operation']", r"list of commits: use history\[0\]\['operation'\] for the"),
        (
            "t.alter({'a': 1})",
            r"^alter is not a method: call .*set_table_properties\(properties\)$",
        ),
        (
            "NamedTable(cat, ('a', 'b'))",
            r"^NamedTable\(\) takes no .*, found 2; write the names: catalog=…, name=…, at=…$",
        ),
        ("t.scan(order_by='id', limit=1, descending=True)", r": use order_by='id DESC'$"),
        ("t.to_duckdb(con=1)", r"'con': did you mean 'connection'\?$"),
        ("t.restore(to_version=0)", r"'to_version': did you mean 'target'\?$"),
        ("t.alter.add_constraint(c='id > 0')", r"'c': pass a dictionary, {'c': 'id > 0'}$"),
        ("t.appender(schema_mode='merge')", r": use write_deltalake\(table, rows, mode='append', "),
        ("t.merge(t, 'true', how='left')", r"'how': use its WHEN clauses, such as when_matched_"),
        ("scan_delta(t, use_pyarrow=True)", r"^scan_delta\(\) .*use polars\.scan_pyarrow_dataset"),
        ("scan_delta(t, pyarrow_options={})", r"use polars\.scan_pyarrow_dataset"),
        (
            "scan_delta()",
            r"missing 1 required positional argument: 'source'; write scan_delta\(source\)$",
        ),
        ("type(client)({}, timeout=3)", r"^SharingClient\(\) got .*'timeout': use options=…$"),
    ],
)
def test_arguments(names: dict[str, Any], call: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        eval(call, names)  # noqa: S307  # the text of a test
    assert names["t"].count() == 2


def test_keys_of_details(names: dict[str, Any]) -> None:
    details = names["t"].detail()
    with pytest.raises(KeyError, match=r"no key 'num_files': did you mean 'numFiles'\?"):
        details["num_files"]
    with pytest.raises(KeyError, match="no key 'zz': the keys are 'format', 'id', "):
        details["zz"]
    assert details.get("num_files") is None


def test_the_items_of_a_history(names: dict[str, Any]) -> None:
    history = names["t"].history()
    assert history[0]["version"] == history[-1]["version"] == 0
    assert history[:1] == [*history]


def test_the_latest_version_is_no_branch(names: dict[str, Any]) -> None:
    with pytest.raises(BranchNotFoundError, match="without @latest, a location means the latest"):
        DeltaTable(f"{names['t'].table_uri}@latest")


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("col('id') in [1, 2]", r"is_in\(values\) for in"),
        ("(col('id') == 1) | \"name = 'n1'\"", "write both sides as expressions"),
        ("(col('id') == 1) & \"name = 'n1'\"", "or both in one string of SQL$"),
        ("col('name').is_in('n1')", r"expected a list, such as \['n1'\]$"),
        ("col('id').is_in(1)", r"expected a list, such as \[1\]$"),
    ],
)
def test_conditions(names: dict[str, Any], condition: str, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        eval(f"t.delete({condition})", names)  # noqa: S307  # the text of a test
    assert names["t"].count() == 2


@pytest.mark.parametrize(
    ("table", "hint"),
    [
        ("t", r"did you mean 's\.t'\?"),
        ("s.tt", r"did you mean 's\.t'\?"),
        ("orders", r"its tables are 's\.t'"),
    ],
)
def test_tables_of_a_branch(names: dict[str, Any], table: str, hint: str) -> None:
    with pytest.raises(KeyError, match=hint):
        names["night"][table]


def classes(kind: type = SimilarNames) -> list[type]:
    for module in ("table", "sharing.client.client", "catalogs", "statements.connection"):
        import_module(f"deltalog.{module}")
    found: list[type] = kind.__subclasses__()
    return [*found, *(one for part in found for one in classes(part))]


def test_meant_names_are_missing() -> None:
    tables = {kind: vars(kind)["_meant"] for kind in classes() if "_meant" in vars(kind)}
    assert len(tables) > 10
    for kind, table in tables.items():
        assert not [name for name in table if hasattr(kind, name)], kind


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("t.scan().limit", r"use scan\(limit=…\) of the table$"),
        ("t.scan().order", r"use scan\(order_by=…, limit=…\) of the table$"),
        ("t.scan().count_rows", r"use count\(\)$"),
        ("t.scan().columns", r"use schema\.names$"),
        ("t.scan().pivot", r"use to_polars\(\) or to_pandas\(\), whose dataframes have such"),
        ("t.scan().dot", r"use to_polars\(\) or to_pandas\(\)"),
        ("t.scan().sink_delta", r"use deltalog\.write_deltalake\(location, rows\)$"),
        ("t.scan().delete", r"use the table's methods; a scan only reads$"),
        ("t.load_cdf().filter", r"use load_cdf\(predicate=…\)$"),
        ("t.load_cdf().count", r"use to_table\(\)\.num_rows$"),
        ("t.describe().filter", r"use to_polars\(\) or to_pandas\(\)"),
        ("t.sum", r"use sql\(query\), to_polars\(lazy=True\) or to_pandas\(\)"),
        ("t.histogram", r"use sql\(query\), to_polars\(lazy=True\) or to_pandas\(\)"),
        ("t.lead", r"use sql\(query\), to_polars\(lazy=True\) or to_pandas\(\)"),
        ("t.tail", r"use scan\(order_by="),
        ("t.from_pandas", r"use deltalog\.write_deltalake\(location, rows\)$"),
        ("t.snapshots", r"use history\(\), snapshot or load_as_version\(version\)$"),
        ("t.addFeatureSupport", r"use alter\.add_feature\(feature\)$"),
        ("t.alter.set_default", r"use set_column_default\(name, sql\)$"),
        ("t.alter.partition_by", r".*partition_by=…\)$"),
        ("t.optimize.zorder_by", r"use z_order\(columns\)$"),
        ("t.transaction().to_pandas", r"use table\.to_pandas, outside of the transaction$"),
        ("t.history().to_dicts", r"use list\(history\)"),
        ("t.sql('SELECT 1 AS a').shape", r"use to_arrow\(\)\.shape$"),
        ("t.sql('SELECT 1 AS a').round", r"use the statement, or to_polars\(\) or to_pandas\(\)"),
        ("connect().createDataFrame", r"use register\(name, rows\)$"),
        ("connect().df", r"use sql\(statement\)\.to_pandas\(\)$"),
        ("t.schema().dtypes", "use fields, of which each has a type$"),
        ("t.schema().field", r"use schema\[name\]$"),
        ("t.schema().fields[0].dtype", "use type$"),
        ("t.schema().fields[0].with_type", r"use dataclasses\.replace\("),
        ("t.scan().clone", r"use to_polars\(\) or to_pandas\(\)"),
        ("col('a').sin", 'use SQL, such as "abs'),
        ("share.pivot", r"use to_polars\(\) or to_pandas\(\)"),
        ("share.refresh", r"use update_incremental\(\)$"),
        ("deltalog.write", r"use write_deltalake\(location, data, mode=…\)$"),
        ("deltalog.read", r"use DeltaTable\(location\)"),
        ("deltalog.create_table", r"use DeltaTable\.create\(location, schema\)$"),
        ("deltalog.is_deltatable", r"use DeltaTable\.is_deltatable\(location\)$"),
        ("deltalog.rust_core_version", "use __version__$"),
    ],
)
def test_names_of_deltalake_and_of_data_frames(names: dict[str, Any], name: str, hint: str) -> None:
    names["t"].alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    write_deltalake(names["t"], {"id": [3], "name": ["n3"]}, mode="append")
    with pytest.raises(AttributeError, match=f"has no attribute .*: {hint}"):
        eval(name.replace("load_cdf()", "load_cdf(2)"), {**names, "deltalog": deltalog})  # noqa: S307  # as above


@pytest.mark.parametrize("name", ["t.scan().zzz", "t.load_cdf(2).zzz", "share.zzz"])
def test_names_without_a_meaning_have_no_hint(names: dict[str, Any], name: str) -> None:
    names["t"].alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    write_deltalake(names["t"], {"id": [3], "name": ["n3"]}, mode="append")
    with pytest.raises(AttributeError, match=r"has no attribute 'zzz'$"):
        eval(name, names)  # noqa: S307  # the text of a test


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("t.scan(row_filter='id = 1')", r"did you mean 'predicate'\?$"),
        ("t.scan(selected_fields=['id'])", r"did you mean 'columns'\?$"),
        ("t.scan(n_rows=1)", r"did you mean 'limit'\?$"),
        ("t.scan(version=0)", r"use DeltaTable\(location, version=…\)"),
        ("t.to_pandas(timestamp='2024-01-01')", r"use DeltaTable\(location, version=…\)"),
        ("t.to_pyarrow_table(order_by='id')", r"use scan\(order_by=…, limit=…\)"),
        ("t.to_polars(engine='streaming')", r"use to_polars\(lazy=True\)\.collect\(engine=…\)$"),
        ("t.merge([], on='id')", r"use predicate='source\.id = target\.id', or upsert"),
        ("t.upsert([], join_cols=['id'])", r"did you mean 'key'\?$"),
        ("t.clone('x', deep=True)", "use shallow=False$"),
        ("t.vacuum(force=True)", "use enforce_retention_duration=False$"),
        ("t.optimize.compact(filters=[])", r"did you mean 'partition_filters'\?$"),
        ("t.load_cdf(start=0)", r"did you mean 'starting_version'\?$"),
        ("t.alter.add_columns(name='x', type='long')", r"use fields=\[Field\(name, type\)\]$"),
        ("t.alter.add_constraint(name='c', expr='id > 0')", r"use constraints={name: condition}$"),
        ("t.follow(maxFilesPerTrigger=1)", r"did you mean 'max_files_per_step'\?$"),
        ("type(t)(t.table_uri, timestampAsOf='2024')", r"did you mean 'version'\?$"),
        ("type(t)(t.table_uri, credentials={})", r"did you mean 'storage_options'\?$"),
        ("type(t)(t.table_uri, columns=['id'])", r"use scan\(columns, predicate\) of the table$"),
        ("type(t).create('x', [], exist_ok=True)", "use mode='ignore'$"),
        ("deltalog.write_deltalake(t, [], compression='zstd')", r"WriterProperties\(compression="),
        ("deltalog.write_deltalake(t, [], replace_where='x')", "use predicate with mode='overw"),
        ("deltalog.write_deltalake(t, [], filters='x')", r"did you mean 'predicate'\?$"),
        ("deltalog.convert_to_deltalake('x', partitions=['a'])", r"did you mean 'partition_by'\?$"),
        ("deltalog.Field('a', 'long', comment='x')", r"use Field\(name, type\)\.comment\(text\)$"),
        ("deltalog.WriterProperties(codec='zstd')", r"did you mean 'compression'\?$"),
        ("connect(database='x')", r"use catalog=… for a directory or a catalog, schema=… for one"),
        ("connect(read_only=True)", "argument 'read_only'$"),
        ("t.scan(zzz=1)", "; the arguments are columns, predicate, parameters, limit, order_by$"),
        ("t.to_pandas(zzz=1)", "; the arguments are columns, filesystem, filters, types_mapper, "),
        ("t.create_checkpoint(zzz=1)", "; it takes no arguments$"),
        (
            "type(t)(t.table_uri, zzz=1)",
            "; the arguments are table_uri, version, ",
        ),
        ("t.to_pyarrow_dataset().to_table(zzz=1)", "; the arguments are columns, filter, batch_"),
        (
            "deltalog.write_deltalake(t, [], zzz=1)",
            "; the arguments are partition_by, .*, …$",
        ),
        ("deltalog.convert_to_deltalake('x', zzz=1)", "; the arguments are "),
    ],
)
def test_arguments_of_other_libraries(names: dict[str, Any], call: str, hint: str) -> None:
    with pytest.raises(TypeError, match=f"got an unexpected keyword .*{hint}"):
        eval(call, {**names, "deltalog": deltalog})  # noqa: S307  # the text of a test
    assert names["t"].version() == 0


@pytest.mark.parametrize(
    ("mode", "hint"),
    [
        ("Append", "use 'append'"),
        ("errorIfExists", "use 'error'"),
        ("w", "use 'overwrite'"),
        ("upsert", r"DeltaTable\.upsert\(data, key\)"),
    ],
)
def test_modes_of_other_libraries(names: dict[str, Any], mode: Any, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=f"found '{mode}'; {hint}"):
        write_deltalake(names["t"], {"id": [1]}, mode=mode)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "append", "schema_mode": "Merge"},
        {"mode": "overwrite", "partition_overwrite": "Dynamic"},
        {"mode": "Append_"},
    ],
)
def test_misspelled_modes(names: dict[str, Any], options: Any) -> None:
    *_, wrong = options.values()
    right = wrong.strip("_").lower()
    with pytest.raises(InvalidInputError, match=f"found '{wrong}': did you mean '{right}'\\?$"):
        write_deltalake(names["t"], {"id": [1]}, **options)
