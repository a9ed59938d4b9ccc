"""What users type into the search, and the page that answers it best: it is the first result.

Sphinx' search prefers short titles that contain the words, such as questions of the FAQ. Each term
becomes an entry of the index, which the search prefers to titles.
"""

from __future__ import annotations

import re
from typing import Final

SEARCH_TERMS: Final[dict[str, tuple[str, ...]]] = {
    "concurrency": (
        *(
            "concurrentappendexception",
            "concurrent append",
            "commit conflict",
            "optimistic locking",
        ),
        *("concurrent writers", "concurrent writes", "conflict", "locking", "race condition"),
        *("threads", "multithreading", "multiprocessing"),
    ),
    "cookbook/cdc": ("cdc", "kafka", "debezium"),
    "cookbook/deduplication": (
        *("foreign key",),
        *(
            "delete duplicates",
            "remove duplicates",
            "drop duplicates",
            "duplicates",
            "duplicate rows",
        ),
        *("deduplicate", "unique key", "unique constraint", "primary key"),
    ),
    "cookbook/gdpr": ("gdpr", "right to be forgotten"),
    "cookbook/late-data": ("late data", "late rows", "late arriving data"),
    "cookbook/medallion": ("medallion", "bronze", "silver", "incremental load"),
    "cookbook/notebooks": ("jupyter", "notebook"),
    "cookbook/scd2": ("scd2", "slowly changing dimension"),
    "cookbook/schema-evolution": ("schema evolution", "rename column", "drop column"),
    "cookbook/serverless": ("lambda", "serverless"),
    "cookbook/small-files": ("small files", "too many files"),
    "how-to/altering": (
        *(
            "reorder columns",
            "change column type",
            "not null",
            "check constraint",
            "column comment",
            "rename table column",
        ),
        "alter table",
        "add column",
        "add constraint",
        "append only",
    ),
    "how-to/branches": ("wap", "write audit publish"),
    "how-to/catalogs": (
        *(
            "hive",
            "list tables",
            "glue catalog",
        ),
        "unity catalog",
        "databricks",
        "aws glue",
    ),
    "how-to/change-feed": ("change data feed", "cdf", "load_cdf"),
    "how-to/cli": ("command line", "cli"),
    "how-to/cloning": ("copy table", "backup"),
    "how-to/converting": ("convert parquet", "convert_to_deltalake"),
    "how-to/deleting": ("delete rows", "deletion vectors"),
    "how-to/diff": ("compare versions",),
    "how-to/distributed": ("dask", "daft"),
    "how-to/engines": (
        *(
            "pandas dataframe",
            "read into pandas",
            "read dataframe",
            "select columns",
            "read columns",
            "read some columns",
            "sample rows",
            "to_polars",
            "to_arrow",
        ),
        "pandas",
        "polars",
        "duckdb",
        "to_pandas",
        "data frame",
        "filters",
    ),
    "how-to/explain": ("explain", "data skipping"),
    "how-to/follow": (
        *("incremental read",),
        "streaming",
        "stream",
    ),
    "how-to/large-tables": (
        *(
            "memory error",
            "memoryerror",
        ),
        "larger than memory",
        "out of memory",
    ),
    "how-to/merging": ("merge", "upsert"),
    "how-to/optimizing": ("compact", "z-order", "optimize"),
    "how-to/partitions": (
        *("partition by date",),
        *("partition", "partitions", "partitioning", "partition_by", "partition columns"),
        *("clustering", "liquid clustering"),
    ),
    "how-to/sharing-client": (
        *(
            "profile file",
            "sharing profile",
        ),
        "delta sharing",
    ),
    "how-to/spark": ("spark without jar", "pyspark"),
    "how-to/sql": (
        *(
            "sql query",
            "parameters",
            "order by",
            "join tables",
        ),
        "sql",
        "spark sql",
    ),
    "how-to/stores-by-name": (
        *(
            "iam policy",
            "profile of aws",
            "aws profile",
            "bucket permissions",
        ),
        *("credentials", "s3 credentials", "aws credentials", "azure credentials"),
        *("gcs credentials", "storage_options", "storage options", "minio", "s3", "endpoint"),
        *("onelake", "fabric", "r2", "iam role", "sas token", "azurite"),
    ),
    "how-to/time-travel": (
        *("time travel", "old version", "read version", "list versions", "history"),
        *("log retention",),
    ),
    "how-to/updating": ("update rows",),
    "how-to/vacuuming": (
        *(
            "free disk space",
            "no space left on device",
            "disk full",
            "delete files",
        ),
        "vacuum",
        "retention",
        "vacuum retention",
        "delete old files",
    ),
    "how-to/writing": (
        *(
            "append pandas dataframe",
            "write pandas dataframe",
            "append dataframe",
            "write dataframe",
            "write pandas",
            "write polars",
            "insert rows",
            "insert into",
            "create empty table",
            "mergeschema",
            "merge schema",
        ),
        *("write_deltalake", "schema_mode", "append", "overwrite", "create table", "uuid"),
        *("identity column", "auto increment", "generated column", "default value"),
    ),
    "reference/protocol": ("table properties",),
    "reference/schema": (
        *(
            "timezone",
            "decimal",
            "timestamp_ntz",
            "timestamp ntz",
            "unsigned",
            "struct column",
            "nested columns",
            "array column",
            "json column",
            "variant",
            "cast column",
        ),
        "time zone",
        "timestamp timezone",
        "data types",
    ),
    "tuning": ("performance", "slow", "speed", "memory"),
    "how-to/restoring": (
        "rollback",
        "undo",
        "restore table",
        "undo delete",
        "revert",
    ),
    "cookbook/testing": (
        "mock",
        "unit test",
        "pytest",
        "test data",
    ),
    "error-index": (
        "schema mismatch",
        "schemamismatcherror",
        "table not found",
        "not a delta table",
        "file not found",
        "corrupt",
        "corrupted table",
    ),
    "cookbook/backfill": (
        "overwrite partition",
        "replacewhere",
        "replace where",
        "dynamic overwrite",
        "overwrite one day",
    ),
    "how-to/sharing-server": (
        "sharing server",
        "share tables",
        "ssl certificate",
    ),
    "how-to/from-deltalake": (
        "migrate from deltalake",
        "delta-rs",
        "deltalake",
    ),
    "how-to/transactions": (
        "user metadata",
        "commit metadata",
        "commit info",
        "commit_properties",
    ),
    "security": ("security",),
    "upgrading": ("upgrade",),
    "benchmarks": ("benchmark",),
    "how-to/maintain": (
        "checkpoint",
        "log cleanup",
        "maintenance job",
    ),
    "install": (
        "license",
        "pip install",
    ),
}
"""Page → terms in lower case."""
QUESTIONS: Final[dict[str, tuple[str, ...]]] = {
    "How do I use it in Airflow, Dagster or Lambda?": ("airflow", "dagster", "prefect"),
    "How do I use it in Docker or Kubernetes?": ("docker", "kubernetes", "container"),
    "Is there a dbt adapter?": ("dbt",),
    "Can Trino, Athena, BigQuery or Snowflake read what I write?": (
        *("trino", "presto", "athena", "bigquery", "snowflake"),
    ),
    "How do I count rows, or get the size of a table?": (
        *("table size", "count rows", "row count", "number of rows"),
    ),
    "How do I load CSV, JSON or Parquet files?": (
        "csv",
        "json",
        "load parquet",
        "excel",
        "read csv",
    ),
    "How do I delete a table?": ("drop table", "delete table"),
    "How do I filter rows?": ("filter rows", "where clause"),
    "Which environment variables does it read?": ("environment variables",),
    "What if permission is denied?": (
        *("permission denied", "access denied", "forbidden", "403", "unauthorized"),
    ),
    "How do I enable logging?": ("logging", "log level"),
}
"""Question of the FAQ → terms, whose first result is the answer itself."""
_TITLE: Final = re.compile(r"^# .+\n", re.MULTILINE)


def with_terms(page: str, text: str) -> str:
    """The text of a page with its terms as entries of the index, below its title.

    Args:
        page: its name, relative to the documentation and without `.md`.
        text: of the page.
    """
    if page == "faq":
        for question, terms in QUESTIONS.items():
            heading = f"\n### {question}\n"
            text = text.replace(heading, f"\n{_entries(terms)}{heading}", 1)
    terms = SEARCH_TERMS.get(page, ())
    if not terms:
        return text
    return _TITLE.sub(lambda title: f"{title[0]}\n{_entries(terms)}", text, count=1)


def _entries(terms: tuple[str, ...]) -> str:
    """An index directive with the terms."""
    entries = "".join(f"   ! single: {term}\n" for term in terms)
    return f"```{{eval-rst}}\n.. index::\n{entries}```\n"
