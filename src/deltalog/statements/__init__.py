"""SQL statements over named tables, and a PEP 249 connection.

A statement (see `statement`) is a frozen value. Its grammar is in the same module, and its first
words are a row in `grammar`. A session runs the statement, in this process (`local`) or on a
cluster (in `spark`), with one or more operations of `operations`.

- `changes`: INSERT, DELETE, UPDATE, MERGE, TRUNCATE. `create`: CREATE, DROP and CONVERT, also for
schemas. `alter`: ALTER and COMMENT. `maintenance`: OPTIMIZE, VACUUM, RESTORE and others.
- `select`: queries, which `query` runs, and EXPLAIN. `shows`: DESCRIBE and SHOW of one table.
- `catalog_names`: names that a catalog resolves; USE, SHOW TABLES and SHOW SCHEMAS.
- `connection`: `connect` and `sql`. `results`: results. `reader`: reads words. `magic`: notebooks.
"""

from __future__ import annotations

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
from deltalog.statements.results import SqlResult
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
