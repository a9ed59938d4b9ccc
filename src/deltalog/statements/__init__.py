"""SQL statements over named tables, and a PEP 249 connection.

A statement (see `statement`) is a frozen value. Its class and its grammar are in the same module;
the table in `grammar` maps the first words of a statement to its parser. A session runs the
statement: `local` in this process, or `deltalog.spark.cluster_session` on a cluster. To run a
statement means to run one or more operations of `operations`.

- `changes`: INSERT, DELETE, UPDATE, MERGE, TRUNCATE. `alter`: ALTER and COMMENT.
- `create`: CREATE, DROP and CONVERT, for tables and schemas.
- `maintenance`: OPTIMIZE, VACUUM, RESTORE and others.
- `shows`: queries, which the package `query` runs, EXPLAIN, and DESCRIBE and SHOW of one table.
- `catalog_names`: the names of tables in catalogs; USE, SHOW TABLES and SHOW SCHEMAS.
- `connection`: `connect` and `sql`.
- `reader`: parses the words of a statement. `clauses`: what may precede it. `magic`: notebooks.
"""

from __future__ import annotations

from deltalog.query.results import SqlResult
from deltalog.statements.connection import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Connection,
    Cursor,
    DatabaseError,
    DataError,
    Date,
    DateFromTicks,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    Warning,  # noqa: A004  # PEP 249's name
    apilevel,
    connect,
    paramstyle,
    sql,
    threadsafety,
)
from deltalog.statements.grammar import parse_statement
from deltalog.statements.statement import Session, SqlStatement, StatementAnswer

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Session",
    "SqlResult",
    "SqlStatement",
    "StatementAnswer",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "parse_statement",
    "sql",
    "threadsafety",
]
