"""Names of methods of dataframes, for errors of tables and rows, which have no such methods.

The names are those of pandas, Polars, Spark and DuckDB. A name that has a better answer is in the
table of the class.

Protocol: none
"""

from __future__ import annotations

from typing import Final

_AGGREGATES: Final = """
    agg aggregate all any approx_n_unique avg corr cov describe histogram kurt max max_horizontal
    mean mean_horizontal median min min_horizontal mode n_unique null_count nunique product quantile
    skew std stddev sum sum_horizontal summary value_counts var variance
"""
_ROWS: Final = """
    bfill bottom_k clip clone coalesce combine_first
    concat crossJoin cross_join cum_sum cumsum distinct
    drop dropDuplicates drop_duplicates drop_nans drop_nulls dropna duplicated except_ exceptAll
    ewm expanding fetchnumpy ffill fill_nan fill_null fillna filter first groupBy group_by
    group_by_dynamic groupby head interpolate intersect is_duplicated is_unique isna isnull join
    join_asof join_where lag last lead limit melt merge_sorted nlargest notna notnull nsmallest
    offset orderBy order_by pct_change pivot pivot_table project query rank remove repartition
    resample reverse rolling sample select shift shuffle slice sort sort_by sort_index sort_values
    stack subtract tail take top_k transpose union unionByName union_all unique unnest unpivot
    unstack upsample where with_row_index
"""
_COLUMNS: Final = """
    abs apply assign astype cast eval explode get_column get_columns hstack insert_column map
    map_batches map_rows mapInArrow mapInPandas pipe rename rename_columns replace_column
    reset_index round selectExpr select_dtypes select_seq set_index to_dummies to_struct
    transform withColumn withColumnRenamed withColumns with_columns with_columns_seq
"""
_VALUES: Final = """
    T at boxplot collect_schema dot estimated_size foreach glimpse height hist iat iloc index info
    isEmpty is_empty item items iter_columns iter_rows iter_slices iterrows itertuples loc
    memory_usage nbytes ndim pandas_api row rows_by_key style toJSON toLocalIterator to_csv to_dict
    to_excel to_feather to_hdf to_html to_jax to_json to_latex to_markdown to_numpy to_orc to_pickle
    to_records to_series to_sql to_string to_torch to_xarray to_xml values width write_avro
    write_clipboard write_csv write_database write_excel write_ipc write_ipc_stream write_json
    write_ndjson sink_csv sink_ipc sink_ndjson sink_parquet
"""
FRAME_METHODS: Final = frozenset(f"{_AGGREGATES} {_ROWS} {_COLUMNS} {_VALUES}".split())
"""Methods of dataframes."""
