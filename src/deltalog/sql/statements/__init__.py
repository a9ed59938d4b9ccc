"""SQL statements: frozen values that a session runs, each with its grammar beside it."""

from __future__ import annotations

from deltalog.sql.statements.grammar import parse_statement
from deltalog.sql.statements.statement import Answer, Session, Statement

__all__ = ["Answer", "Session", "Statement", "parse_statement"]
