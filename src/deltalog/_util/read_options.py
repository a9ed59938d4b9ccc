"""Options of other libraries' readers, for errors of the methods that return rows.

Users pass options of `pandas.read_parquet`, `polars.scan_delta`, pyarrow and DuckDB to `to_pandas`,
`to_polars` and similar methods. An option that a method of deltalog has is in `similar_names`.

Protocol: none
"""

from __future__ import annotations

from typing import Final

_METHODS: Final = frozenset(
    {"to_pandas", "to_polars", "to_arrow", "to_table", "to_pyarrow_table", "to_pyarrow_dataset"}
    | {"to_duckdb", "to_batches", "to_reader", "read_all", "read_pandas"}
)
"""The methods that return rows."""
_TABLES: Final = frozenset({"DeltaTable", "SharedTable"})
_PANDAS: Final = (
    *("use_threads", "split_blocks", "self_destruct", "date_as_object", "categories"),
    *("strings_to_categorical", "zero_copy_only", "timestamp_as_object", "ignore_metadata"),
    *(
        "integer_object_nulls",
        "deduplicate_objects",
        "maps_as_pydicts",
        "coerce_temporal_nanoseconds",
    ),
)
_PRUNING: Final = (
    *("partitions", "filesystem", "file_pruning_predicate", "parameters", "where"),
    *("select", "usecols", "n_rows", "nrows", "num_rows", "sort", "sort_by"),
)
"""What the call that makes the rows decides."""
_MAKERS: Final = {
    "Scan": "scan(columns, predicate, limit=…, order_by=…) of the table",
    "Changes": "load_cdf(…, columns=…, predicate=…) of the table",
    "Step": "follow(…, columns=…, predicate=…) of the table",
    "SqlResult": "SELECT, WHERE, ORDER BY and LIMIT in the query",
    "TableDiff": "diff(…, columns=…), or deltalog.sql('SELECT * FROM d WHERE …', d=table.diff(…))",
    "TableDescription": "the methods of its dataframe",
    "CommitHistory": "history(limit), or the methods of its dataframe",
}
"""Class → what selects the rows and columns of its objects."""
_SELECTING: Final = (
    *("columns", "filters", "predicate", "filter", "limit", "n", "order_by"),
    *_PRUNING,
)
_CAST: Final = "cast(…) or astype(…) of the result"
_OPTIONS: Final = {
    **dict.fromkeys(("use_pyarrow", "pyarrow_options", "low_memory", "rechunk"), ""),
    **dict.fromkeys(("memory_map", "pre_buffer", "buffer_size", "read_kwargs"), ""),
    **dict.fromkeys(
        ("row_index_name", "row_index_offset", "with_row_index"),
        "with_row_index(name) of a Polars dataframe, or a scan's column '_metadata.row_index'",
    ),
    "version": "DeltaTable(location, version=…)",
    "include_file_paths": "the column '_metadata.file_path' of a scan",
    **dict.fromkeys(
        ("index_col", "index", "index_cols", "set_index"),
        "set_index(columns) of a pandas dataframe",
    ),
    **dict.fromkeys(("dtype", "dtypes", "schema_overrides", "schema", "converters"), _CAST),
    **dict.fromkeys(("types_mapper", "dtype_backend"), "to_pandas(dtype_backend=…)"),
    **dict.fromkeys(
        ("storage_options", "credential_provider"), "DeltaTable(location, storage_options=…)"
    ),
    **dict.fromkeys(
        ("distinct", "unique", "offset", "skip", "skiprows"), "sql(query) of the table"
    ),
    **dict.fromkeys(("connection", "con"), "to_duckdb(connection)"),
    "as_large_types": "to_pyarrow_dataset(as_large_types=True) of the table",
    "parquet_read_options": "to_pyarrow_dataset(parquet_read_options=…) of the table",
    "progress": "to_pyarrow_table(progress=…) of the table",
    **dict.fromkeys(
        ("lazy", "streaming", "engine"),
        "to_polars(lazy=True) of the table, and its collect(engine=…)",
    ),
    **dict.fromkeys(("partitions", "partition_filters"), "filters=…"),
    "filesystem": "DeltaTable(location, filesystem=…)",
}
"""Option → what has it instead; empty if no method needs it."""
_OF_OTHER_ROWS: Final = {
    **dict.fromkeys(("lazy", "streaming", "engine"), "to_batches(), or to_polars().lazy()"),
    **dict.fromkeys(
        ("distinct", "unique", "offset", "skip", "skiprows"), "deltalog.sql(query, t=rows)"
    ),
    **dict.fromkeys(("as_large_types", "parquet_read_options"), "cast(schema) of the Arrow table"),
    "progress": "to_batches(), and count the batches",
}
"""As `_OPTIONS`, for rows that are not those of a version of a table."""
_OF_DUCKDB: Final = {
    **dict.fromkeys(("limit", "n", "n_rows", "nrows"), "limit(n) of the relation"),
    **dict.fromkeys(("order_by", "sort", "sort_by"), "order('id DESC') of the relation"),
    "lazy": "",
}
_OF_DATASETS: Final = {
    **dict.fromkeys(("limit", "n", "n_rows", "nrows"), "head(n) of the dataset"),
    **dict.fromkeys(("order_by", "sort", "sort_by"), "scan(order_by=…, limit=…)"),
    "batch_size": "to_batches(batch_size=…) of the dataset",
    "lazy": "",
}


def is_of_other_rows(kind: str) -> bool:
    """Whether the rows of a class are not those of a version of a table."""
    return kind in _MAKERS and kind != "Scan"


def read_option(kind: str, method: str, option: str) -> str:
    """Return what to do instead of an option that a method with rows lacks; maybe empty.

    Args:
        kind: the name of the class.
        method: the name of the method.
        option: the name of the option.
    """
    if method not in _METHODS:
        return ""
    is_table = kind in _TABLES
    if not is_table and option in _SELECTING:
        return f": use {_MAKERS[kind]}" if kind in _MAKERS else ""
    special = {"to_duckdb": _OF_DUCKDB, "to_pyarrow_dataset": _OF_DATASETS}.get(method, {})
    other = special.get(option)
    if other is None and is_of_other_rows(kind):
        other = _OF_OTHER_ROWS.get(option)
    if other is None and option in _PANDAS:
        other = "scan(…).to_pandas(…)" if is_table else "to_pandas(…)"
        other += ", which passes it to pyarrow"
    if other is None and option in {"batch_size", "chunksize", "iterator", "max_chunksize"}:
        other = "scan(), which yields batches" if is_table else "to_batches()"
    if other is None:
        other = _OPTIONS.get(option)
    if other is None:
        return ""
    return f": use {other}" if other else ": omit it, the method does not need it"
