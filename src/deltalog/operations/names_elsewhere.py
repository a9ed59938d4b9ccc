"""Names that users of other libraries look for in a DeltaTable, and what to use instead.

`explain_missing` makes the error message about a missing attribute of the tables below.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog._util.similar_names import frame_method, similar_to

if TYPE_CHECKING:
    from collections.abc import Sequence

_GONE: Final = {
    "files": "file_uris()",
    "load_version": "load_as_version()",
    "load_with_datetime": "load_as_version()",
    "pyarrow_schema": "schema().to_arrow()",
    "files_by_partitions": "file_uris(file_pruning_predicate=…)",
    "table_config": "properties; deltalog reads file columns on demand, there is nothing to set",
}
_WRITE: Final = "deltalog.write_deltalake(table, rows, mode=…)"
_MEANT: Final = {
    **dict.fromkeys(("forPath", "for_path", "open", "load"), "DeltaTable(location)"),
    **dict.fromkeys(
        ("forName", "for_name", "from_data_catalog", "from_unity", "from_catalog"),
        "DeltaTable('uc://catalog.schema.table'), or deltalog.connect(catalog=…)",
    ),
    **dict.fromkeys(("createOrReplace", "replace"), 'create(location, schema, mode="overwrite")'),
    **dict.fromkeys(("checkpoint", "checkpoints"), "create_checkpoint()"),
    **dict.fromkeys(("latest_version", "get_latest_version"), "version() of DeltaTable(location)"),
    **dict.fromkeys(
        ("restore_to_version", "restoreToVersion", "restoreToTimestamp"), "restore(version)"
    ),
    **dict.fromkeys(("write_deltalake", "write_delta"), "deltalog.write_deltalake(table, rows)"),
    **dict.fromkeys(
        ("drop", "drop_table", "destroy"),
        "delete() for rows; a table is its directory, which the store's own tools delete (rm -r, "
        "aws s3 rm --recursive), or DROP TABLE if a catalog contains it",
    ),
    **dict.fromkeys(
        ("from_data_catalog", "from_catalog", "from_unity", "from_glue"),
        "DeltaTable('uc://catalog.schema.table'), or deltalog.connect(catalog=…)",
    ),
    "createIfNotExists": 'create(location, schema, mode="ignore")',
    **dict.fromkeys(("exists", "isDeltaTable", "is_delta_table"), "is_deltatable(location)"),
    **dict.fromkeys(("convertToDelta", "convert"), "deltalog.convert_to_deltalake(location)"),
    **dict.fromkeys(("write", "append", "insert", "overwrite", "save"), _WRITE),
    **dict.fromkeys(("filter", "where", "query"), "scan(predicate=…)"),
    **dict.fromkeys(("select", "project", "read"), "scan(columns, predicate=…)"),
    **dict.fromkeys(("rows", "collect", "to_table"), "to_arrow()"),
    "to_dataset": "to_pyarrow_dataset()",
    "id": "metadata().id for the id of the table, or to_pandas(columns=['id']) for a column",
    **dict.fromkeys(
        ("merge_schema", "evolve_schema"),
        "write_deltalake(table, rows, mode='append', schema_mode='merge'), or alter.add_columns()",
    ),
    **dict.fromkeys(("toDF", "toPandas", "to_df", "df", "to_dataframe"), "to_pandas()"),
    "lazy": "to_polars(lazy=True), or scan(…)",
    "fsck": "repair()",
    "printSchema": "schema()",
    **dict.fromkeys(("to_list", "to_dicts", "to_pylist"), "to_arrow().to_pylist()"),
    **dict.fromkeys(("limit", "first", "take"), "head()"),
    **dict.fromkeys(("dtypes", "fields"), "schema()"),
    "columns": "schema().names",
    **dict.fromkeys(("len", "num_rows", "shape"), "count()"),
    "merge_into": "merge(source, predicate)",
    "compact": "optimize.compact()",
    **dict.fromkeys(("zorder", "z_order"), "optimize.z_order(columns)"),
    **dict.fromkeys(("add_column", "add_columns"), "alter.add_columns(fields)"),
    **dict.fromkeys(("drop_column", "drop_columns"), "alter.drop_columns(names)"),
    "rename_column": "alter.rename_column(name, new_name)",
    "add_constraint": "alter.add_constraint({name: condition})",
    **dict.fromkeys(
        ("set_properties", "set_table_properties"), "alter.set_table_properties(properties)"
    ),
    **dict.fromkeys(("set_key_index", "set_key"), "alter.set_key_index(columns)"),
    "drop_key_index": "alter.set_key_index(None)",
    **dict.fromkeys(("sort", "sort_by", "order_by", "orderBy"), "scan(order_by=…, limit=…)"),
    **dict.fromkeys(("group_by", "groupby", "groupBy", "agg", "join"), "sql(query)"),
    **dict.fromkeys(("to_parquet", "write_parquet"), "to_polars().write_parquet(path)"),
    **dict.fromkeys(("create_branch", "createBranch", "tag", "create_tag"), "branch(name)"),
    "get_domain_metadata": "domain_metadata()",
    "get_active_partitions": "partitions()",
    **dict.fromkeys(("checkout", "switch", "get_branch"), "branch(name, exist_ok=True)"),
    **dict.fromkeys(("merge_branch", "publish_branch", "fast_forward"), "publish(checks)"),
    **dict.fromkeys(("delete_branch", "remove_branch"), "drop_branch(name)"),
    "list_branches": "branches()",
    **dict.fromkeys(("refresh", "reload"), "update_incremental()"),
    **dict.fromkeys(("rollback", "undo"), "restore(version)"),
    "copy": "clone(location)",
    **dict.fromkeys(("show", "display"), "head(), or print(table.to_polars())"),
    **dict.fromkeys(("alias", "as_"), "merge(…, target_alias=…), or the name of a table in sql()"),
    "to_dask": "to_pyarrow_dataset(), or deltalog.dask.read(table)",
    "to_ray": "to_pyarrow_dataset(), or deltalog.ray.read(table)",
    "to_spark": "to_pandas(), or on Spark deltalog.spark.read(spark, location)",
    "to_datafusion": "to_pyarrow_dataset(), which DataFusion registers",
    **dict.fromkeys(("to_numpy", "to_torch", "to_ibis"), "to_pandas() or to_pyarrow_table()"),
    **dict.fromkeys(("cleanup", "clean"), "cleanup_metadata() for the log, vacuum() for files"),
    **dict.fromkeys(
        (
            "as_of",
            "asOf",
            "asof",
            "at",
            "at_version",
            "version_as_of",
            "versionAsOf",
            "time_travel",
        ),
        "DeltaTable(location, version=…) or load_as_version(version)",
    ),
    **dict.fromkeys(
        ("to_iceberg", "generate_iceberg", "enable_iceberg", "upgrade_uniform"),
        "optimize.upgrade_uniform(), after which each commit writes metadata of Iceberg",
    ),
    **dict.fromkeys(
        ("convert_to_delta", "convertToDelta", "convert", "from_parquet"),
        "deltalog.convert_to_deltalake(location)",
    ),
    **dict.fromkeys(
        ("to_lazy", "to_lazyframe", "to_lazy_frame", "scan_delta"), "to_polars(lazy=True)"
    ),
    **dict.fromkeys(
        ("to_arrow_reader", "to_record_batch_reader", "to_arrow_stream", "to_arrow_batch_reader"),
        "scan().to_reader()",
    ),
    **dict.fromkeys(("path", "uri", "url", "location", "table_path"), "table_uri"),
    **dict.fromkeys(
        ("storage_options", "options", "credentials"),
        "DeltaTable(location, storage_options=…) to pass them; a table does not show them",
    ),
    **dict.fromkeys(
        ("versions", "commits", "list_versions", "describe_history", "get_history"),
        "history()",
    ),
    **dict.fromkeys(("describe_detail", "details"), "detail(), or describe()"),
    **dict.fromkeys(("explain", "query_plan"), "scan(predicate=…).explain()"),
    **dict.fromkeys(
        ("partition_columns", "partition_by", "partitionColumns"), "metadata().partition_columns"
    ),
    **dict.fromkeys(("name", "table_name"), "metadata().name"),
    "description": "metadata().description",
    **dict.fromkeys(("fetchall", "fetchmany", "to_pydict"), "to_pyarrow_table().to_pylist()"),
    **dict.fromkeys(("fetchone", "row"), "head(1).to_pylist()"),
    **dict.fromkeys(("fetchdf", "fetch_df"), "to_pandas()"),
    **dict.fromkeys(
        ("arrow", "to_arrow_table", "toArrow", "fetch_arrow_table", "read_all"),
        "to_pyarrow_table()",
    ),
    **dict.fromkeys(("pl", "collect_schema"), "to_polars()"),
    **dict.fromkeys(
        ("to_reader", "fetch_record_batch", "fetch_arrow_reader", "to_arrow_batch_reader"),
        "scan().to_reader()",
    ),
    **dict.fromkeys(("scanner", "get_fragments"), "to_pyarrow_dataset()"),
    **dict.fromkeys(("count_rows", "height"), "count()"),
    **dict.fromkeys(("tail", "last"), 'scan(order_by="id DESC", limit=…)'),
    **dict.fromkeys(("top_k", "nlargest", "nsmallest", "sort_values"), "scan(order_by=…, limit=…)"),
    **dict.fromkeys(("column_names", "field_names", "types"), "schema().names, or schema()"),
    **dict.fromkeys(("col", "column"), "to_pyarrow_table(columns=[…])"),
    **dict.fromkeys(
        ("from_pandas", "from_arrow", "from_polars", "from_pylist", "from_pydict", "from_dict"),
        "deltalog.write_deltalake(location, rows)",
    ),
    **dict.fromkeys(
        ("sink_delta", "insert_into", "writeTo", "add_rows"),
        "deltalog.write_deltalake(table, rows, mode=…)",
    ),
    **dict.fromkeys(
        ("createOrReplaceTempView", "createTempView", "create_view", "set_alias", "sql_query"),
        "deltalog.connect({name: table}), or sql(query)",
    ),
    **dict.fromkeys(
        ("insert_column", "withColumn", "with_columns", "append_column", "assign"),
        "alter.add_columns(fields), or to_polars(lazy=True) for a result",
    ),
    **dict.fromkeys(
        ("rename", "rename_columns", "withColumnRenamed"), "alter.rename_column(name, new_name)"
    ),
    **dict.fromkeys(
        ("astype", "cast", "update_schema", "replaceColumns"), "alter.set_column_type(name, type)"
    ),
    **dict.fromkeys(
        ("set_comment", "comment"),
        "alter.set_table_description(text), or alter.set_column_comment(column, text)",
    ),
    **dict.fromkeys(("addFeatureSupport", "add_feature"), "alter.add_feature(feature)"),
    **dict.fromkeys(("dropFeatureSupport", "drop_feature"), "alter.drop_feature(feature)"),
    "upgradeTableProtocol": "alter.upgrade_protocol(…)",
    **dict.fromkeys(
        ("cloneAtVersion", "cloneAtTimestamp"), "clone(location) of DeltaTable(…, version=…)"
    ),
    **dict.fromkeys(
        ("current_snapshot", "snapshots", "snapshot_by_id", "snapshot_as_of_timestamp"),
        "history(), snapshot or load_as_version(version)",
    ),
    **dict.fromkeys(("cdf", "cdc", "changes", "read_cdf"), "load_cdf(starting_version)"),
    "set_property": "alter.set_table_properties({key: value})",
    **dict.fromkeys(
        ("enable_cdf", "enable_change_data_feed", "enable_cdc"),
        "alter.set_table_properties({'delta.enableChangeDataFeed': 'true'})",
    ),
    **dict.fromkeys(("current_version", "get_version", "table_version"), "version()"),
    **dict.fromkeys(
        (
            *("stream", "watch", "subscribe", "read_stream", "readStream", "stream_changes"),
            *("tail_changes", "listen", "poll"),
        ),
        "follow(), which yields the rows of new commits",
    ),
    **dict.fromkeys(
        ("begin", "begin_transaction", "start_transaction", "new_transaction"),
        "transaction(), as in `with table.transaction() as tx:`",
    ),
    **dict.fromkeys(("shallow_clone", "shallowClone"), "clone(location, shallow=True)"),
    **dict.fromkeys(("deep_clone", "deepClone"), "clone(location, shallow=False)"),
    "export": "to_polars() or to_pandas(), whose dataframes have methods that write files",
    **dict.fromkeys(
        ("analyze", "compute_statistics", "compute_stats"),
        "describe(), or get_add_actions(flatten=True); writes collect the statistics of files",
    ),
    "plan": "scan(predicate=…).explain()",
    "arrow_schema": "schema().to_arrow()",
    **dict.fromkeys(
        (
            *("when_matched_update_all", "when_not_matched_insert_all", "when_matched_update"),
            *("when_matched_delete", "when_not_matched_insert", "whenMatchedUpdateAll"),
            *("whenNotMatchedInsertAll",),
        ),
        "merge(source, predicate), whose builder has the clauses",
    ),
    **dict.fromkeys(("delete_where", "delete_rows"), "delete(predicate)"),
    **dict.fromkeys(("log", "audit_log"), "history()"),
    "refs": "branches()",
    "specs": "metadata().partition_columns",
    **dict.fromkeys(("info", "glimpse", "print"), "describe(), schema() or head()"),
    "get_columns": "schema()",
    "to_daft": "to_pyarrow_dataset(), or deltalog.daft.read(table)",
    **dict.fromkeys(("is_empty", "isEmpty", "empty"), "count() == 0"),
    **dict.fromkeys(("to_csv", "to_json", "to_excel", "to_html"), "to_pandas() and its method"),
    "write_csv": "to_polars().write_csv(path)",
    **dict.fromkeys(("to_dict", "to_records"), "to_pyarrow_table().to_pylist()"),
    **dict.fromkeys(("size", "size_in_bytes", "num_files"), "detail()"),
    **dict.fromkeys(("stats", "statistics"), "describe(), or get_add_actions(flatten=True)"),
    **dict.fromkeys(("iterrows", "iter_rows", "to_batches"), "scan(), which yields batches"),
}
"""What methods do that users of other libraries look for by these names."""
_NEEDLESS: Final = dict.fromkeys(
    ("close", "disconnect", "cache", "persist", "unpersist"),
    "an open table holds no connection and no rows, so nothing needs to be done",
)
"""Methods of other libraries that a table does not need → why."""


def explain_missing(name: str, names: Sequence[str]) -> str:
    """Return the error message for a missing attribute of DeltaTable, with the replacement."""
    if name in _GONE:
        return f"DeltaTable.{name} is gone: use {_GONE[name]}"
    if name in _MEANT:
        return f"DeltaTable has no attribute {name!r}: use {_MEANT[name]}"
    if name in _NEEDLESS:
        return f"DeltaTable has no attribute {name!r}: {_NEEDLESS[name]}"
    frames = frame_method(name, "sql(query), to_polars(lazy=True) or to_pandas()")
    hint = f": use {frames}" if frames else similar_to(name, names)
    if not hint and not name.startswith("_"):
        hint = "; help(DeltaTable) lists the methods, and t.alter and t.optimize have more"
    return f"DeltaTable has no attribute {name!r}{hint}"


_SET_BY: Final = {
    "version": "load_as_version(version), or restore(version) for a new version",
    "schema": "the methods of alter, such as alter.add_columns(fields)",
    "properties": "alter.set_table_properties({key: value})",
    "metadata": "alter.set_table_name(name), set_table_description(text) or set_table_properties",
    "protocol": "alter.add_feature(feature) or alter.upgrade_protocol(…)",
    "domain_metadata": "set_domain_metadata(domain, configuration)",
    "engine": "DeltaTable(location, engine=…)",
    "table_uri": "DeltaTable(location) for another table, or clone(location)",
}


def explain_assigned(name: str) -> str:
    """Return the error message for an assignment to a method or property of DeltaTable."""
    advice = f": use {_SET_BY[name]}" if name in _SET_BY else ", and cannot be assigned"
    return f"DeltaTable.{name} is set by the table{advice}"
