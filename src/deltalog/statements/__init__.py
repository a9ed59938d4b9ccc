"""SQL statements over tables by their names, and a PEP 249 connection.

A statement is a frozen value with its grammar beside it, which a session runs: in this process
(`local`), or on a cluster (the Spark edge has its own). What it does is a verb of `verbs`.
"""

from __future__ import annotations

from deltalog.statements.connection import (
    Connection,
    Cursor,
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
    "Connection",
    "Cursor",
    "Session",
    "SqlResult",
    "SqlStatement",
    "StatementAnswer",
    "apilevel",
    "connect",
    "paramstyle",
    "parse_statement",
    "sql",
    "threadsafety",
]
