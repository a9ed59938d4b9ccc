"""SQL statements over tables by their names, and a PEP 249 connection.

A statement (`statement`) is a frozen value, with its grammar in the same module and a row in
`grammar`. A session runs it: in this process (`local`), or on a cluster (in `spark`). It runs one
or more operations of `operations`.

- `changes`: INSERT, DELETE, UPDATE, MERGE, TRUNCATE. `create`: CREATE, DROP, CONVERT, also of
  schemas. `alter`: ALTER and COMMENT. `maintenance`: OPTIMIZE, VACUUM, RESTORE and others.
- `select`: queries, which `query` answers, and EXPLAIN. `shows`: DESCRIBE and SHOW of one table.
- `catalog_names`: names that a catalog resolves; USE, SHOW TABLES and SHOW SCHEMAS.
- `connection`: `connect` and `sql`. `results`: their rows. `reader`: words. `magic`: notebooks.
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
