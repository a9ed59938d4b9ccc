"""Delta Lake tables in pure Python: the whole protocol, on any fsspec store.

Start with `DeltaTable`. Names are imported on first use, so `import deltalog` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog._util.lazy_names import names_on_demand, state_higher_names
from deltalog._util.moved import find_moved_modules

if TYPE_CHECKING:
    from deltalog import daft as daft
    from deltalog import dask as dask
    from deltalog import errors as errors
    from deltalog import exceptions as exceptions
    from deltalog import expressions as expressions
    from deltalog import fs as fs
    from deltalog import polars as polars
    from deltalog import query as query
    from deltalog import ray as ray
    from deltalog import schema as schema
    from deltalog import sharing as sharing
    from deltalog import spark as spark
    from deltalog import table as table
    from deltalog import testing as testing
    from deltalog import transaction as transaction
    from deltalog import writer as writer
    from deltalog._util.cards import progress_bar
    from deltalog._util.version import __version__
    from deltalog.data.write.options import (
        BloomFilterProperties,
        ColumnProperties,
        WriterProperties,
    )
    from deltalog.data.write.written import WrittenFiles
    from deltalog.expressions.nodes import col, lit
    from deltalog.protocol.actions.model import Metadata, Protocol
    from deltalog.protocol.features.registry import (
        TableFeatures,
        enable_nanosecond_timestamps,
        enable_preview,
    )
    from deltalog.query import QueryBuilder
    from deltalog.schema.types import (
        ArrayType,
        DataType,
        Field,
        MapType,
        PrimitiveType,
        Schema,
        StructType,
        VariantType,
    )
    from deltalog.statements import connect, sql
    from deltalog.table import (
        CatalogTransactions,
        DeltaTable,
        convert_to_deltalake,
        table_defaults,
        write_deltalake,
        write_files,
    )
    from deltalog.transaction.properties import (
        AppTransaction,
        CommitProperties,
        PostCommitHookProperties,
        Transaction,
    )


_ORIGINS = {
    "deltalog._util.cards": ["progress_bar"],
    "deltalog._util.version": ["__version__"],
    "deltalog.data.write.options": [
        "BloomFilterProperties",
        "ColumnProperties",
        "WriterProperties",
    ],
    "deltalog.data.write.written": ["WrittenFiles"],
    "deltalog.expressions.nodes": ["col", "lit"],
    "deltalog.protocol.actions.model": ["Metadata", "Protocol"],
    "deltalog.protocol.features.registry": [
        "TableFeatures",
        "enable_nanosecond_timestamps",
        "enable_preview",
    ],
    "deltalog.query": ["QueryBuilder"],
    "deltalog.schema.types": [
        "ArrayType",
        "DataType",
        "Field",
        "MapType",
        "PrimitiveType",
        "Schema",
        "StructType",
        "VariantType",
    ],
    "deltalog.statements": ["connect", "sql"],
    "deltalog.table": [
        "CatalogTransactions",
        "DeltaTable",
        "convert_to_deltalake",
        "table_defaults",
        "write_deltalake",
        "write_files",
    ],
    "deltalog.transaction.properties": [
        "AppTransaction",
        "CommitProperties",
        "PostCommitHookProperties",
        "Transaction",
    ],
}
# The submodules that are imported when they are first accessed, such as `deltalog.errors`.
_MODULES = (
    "daft",
    "dask",
    "errors",
    "exceptions",
    "expressions",
    "fs",
    "polars",
    "query",
    "ray",
    "schema",
    "sharing",
    "spark",
    "table",
    "testing",
    "transaction",
    "writer",
)

__all__ = [
    "AppTransaction",
    "ArrayType",
    "BloomFilterProperties",
    "CatalogTransactions",
    "ColumnProperties",
    "CommitProperties",
    "DataType",
    "DeltaTable",
    "Field",
    "MapType",
    "Metadata",
    "PostCommitHookProperties",
    "PrimitiveType",
    "Protocol",
    "QueryBuilder",
    "Schema",
    "StructType",
    "TableFeatures",
    "Transaction",
    "VariantType",
    "WriterProperties",
    "WrittenFiles",
    "__version__",
    "col",
    "connect",
    "convert_to_deltalake",
    "enable_nanosecond_timestamps",
    "enable_preview",
    "lit",
    "progress_bar",
    "sql",
    "table_defaults",
    "write_deltalake",
    "write_files",
]

find_moved_modules()
# Names that low-level packages use, although high-level packages define them.
state_higher_names(
    {
        "read_large": "deltalog.data.scan.polars_rows",
        "CatalogTransactions": "deltalog.table.catalog_transaction",
        "from_deltalake": "deltalog.table.delta_table",
        "from_arrow_type": "deltalog.schema.arrow",
        "parse_type": "deltalog.expressions.sql",
        "shown_sql": "deltalog.expressions.render",
        "changes_frame": "deltalog.spark.sharing.batch",
        "scan_frame": "deltalog.spark.sharing.batch",
    }
)

if not TYPE_CHECKING:  # type checkers must not see it, so that they report wrong names
    __getattr__, __dir__ = names_on_demand(
        __name__,
        _ORIGINS,
        _MODULES,
        meant={
            **dict.fromkeys(
                (
                    *("read_deltalake", "open_table", "load_table", "read_table", "load", "open"),
                    *("read", "scan", "read_pandas", "read_polars", "to_polars", "to_arrow"),
                    *("load_as_pandas", "load_as_polars"),
                ),
                "DeltaTable(location), and its to_pandas(), to_polars() or scan()",
            ),
            **dict.fromkeys(
                (
                    *("write", "save", "append", "insert", "overwrite", "write_table"),
                    *("sink_delta", "from_pandas", "from_polars", "from_arrow", "to_deltalake"),
                ),
                "write_deltalake(location, data, mode=…)",
            ),
            **dict.fromkeys(("load_cdf", "read_cdf", "read_changes"), "DeltaTable(…).load_cdf()"),
            **dict.fromkeys(
                ("create", "create_table", "DeltaTableBuilder"),
                "DeltaTable.create(location, schema)",
            ),
            "drop_table": "connect(catalog=…) and DROP TABLE, or the store's tools",
            **dict.fromkeys(
                ("convert", "convert_to_delta", "convertToDelta"), "convert_to_deltalake(location)"
            ),
            **dict.fromkeys(
                ("execute", "query", "read_sql", "cursor", "Session", "SQLContext"),
                "sql(query, t=table) or connect()",
            ),
            **dict.fromkeys(
                ("SparkSession", "configure_spark_with_delta_pip"), "deltalog.spark on Spark"
            ),
            **dict.fromkeys(
                ("SharingServer", "ShareServer", "DeltaSharingServer", "serve", "share"),
                "the command deltalog share serve CONFIG",
            ),
            **dict.fromkeys(("SharingClient", "SharedTable", "Client"), "deltalog.sharing"),
            **dict.fromkeys(
                ("functions", "expr", "when", "F"), "SQL, such as predicate=\"lower(name) = 'a'\""
            ),
            **dict.fromkeys(
                ("read_csv", "read_parquet", "read_json", "read_files", "read_excel"),
                "Polars, pandas or DuckDB, whose rows write_deltalake(location, data) accepts",
            ),
            **dict.fromkeys(("version", "show_versions", "rust_core_version"), "__version__"),
            "StructField": "Field(name, type)",
            **{
                name: f"deltalog.errors.{name}"
                for name in (
                    *("TableNotFoundError", "TableExistsError", "InvalidInputError", "DeltaError"),
                    *("DeltaProtocolError", "CommitFailedError", "CommitConflictError"),
                    *("SchemaMismatchError", "ConstraintViolationError", "StorageError"),
                )
            },
            **dict.fromkeys(
                (
                    "set_option",
                    "config",
                    "Config",
                    "options",
                    "configure",
                    "settings",
                    "set_config",
                ),
                "the arguments of calls, or table_defaults({property: value}) for new tables",
            ),
            **dict.fromkeys(
                ("init_logging", "set_log_level", "logger", "logging", "enable_logging"),
                "logging.getLogger('deltalog') of Python",
            ),
            **dict.fromkeys(
                ("DeltaOptimizer", "DeltaOptimizeBuilder", "TableOptimizer"),
                "DeltaTable(location).optimize",
            ),
            "TableAlterer": "DeltaTable(location).alter",
            **dict.fromkeys(
                ("init_tracing", "shutdown_tracing"),
                "deltalog.telemetry.watch_with_opentelemetry()",
            ),
            "read_delta": "DeltaTable(location).to_polars() or .to_pandas()",
            "scan_delta": "DeltaTable(location).to_polars(lazy=True)",
            "write_delta": "write_deltalake(location, data)",
            "to_pandas": "DeltaTable(location).to_pandas()",
            **dict.fromkeys(
                ("exists", "is_deltatable", "is_delta_table"), "DeltaTable.is_deltatable(location)"
            ),
            **dict.fromkeys(("Table", "DeltaLog", "Delta", "Lakehouse"), "DeltaTable(location)"),
            **dict.fromkeys(
                ("sum", "avg", "mean", "min", "max", "count_distinct", "concat", "lower", "upper"),
                'sql("SELECT sum(n) FROM t", t=table), or columns and functions in conditions',
            ),
            **dict.fromkeys(
                (
                    *("merge", "delete", "update", "optimize", "vacuum", "restore", "history"),
                    *("upsert", "clone", "copy", "count", "DeltaMergeBuilder", "TableMerger"),
                ),
                "the method of DeltaTable(location)",
            ),
            **dict.fromkeys(
                ("UnityCatalog", "Unity", "unity", "connect_unity", "connect_unity_catalog"),
                "connect(catalog='uc://'), or UnityCatalog(url) of deltalog.catalogs",
            ),
            **dict.fromkeys(
                ("GlueCatalog", "AwsGlueCatalog", "Glue", "glue", "connect_glue"),
                "connect(catalog='glue'), or GlueCatalog() of deltalog.catalogs",
            ),
            **dict.fromkeys(
                (
                    *("Catalog", "DataCatalog", "FileCatalog", "load_catalog", "LakeFSCatalog"),
                    *("connect_catalog", "open_catalog", "get_catalog", "catalog"),
                ),
                "connect(catalog=…), or the classes of deltalog.catalogs",
            ),
            **dict.fromkeys(
                (
                    "IntegerType",
                    "LongType",
                    "ShortType",
                    "ByteType",
                    "StringType",
                    "DoubleType",
                    "FloatType",
                    "BooleanType",
                    "BinaryType",
                    "DateType",
                    "TimestampType",
                    "DecimalType",
                    *("Int64", "Int32", "Long", "Integer", "String", "Utf8", "Datetime", "types"),
                ),
                "the name of the type, as in Field('id', 'long')",
            ),
        },
    )


def load_ipython_extension(shell: Any) -> None:
    """Register the notebook magics `%sql` and `%%sql`, for `%load_ext deltalog`."""
    from deltalog.statements.magic import load  # noqa: PLC0415  # only needed in notebooks

    load(shell)
