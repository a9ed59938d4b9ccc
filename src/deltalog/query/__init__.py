"""SELECT over tables: scans where they suffice, DuckDB for the rest.

- `lexer`, `parse`, `names`, `located`: the query's words, its tree and the tables that it names.
- `translate`: the query in DuckDB's dialect. `native`: what DuckDB computes exactly as Spark does;
  `computed`: what `expressions` computes instead. `joins`: conditions of joins.
- `tables`: the rows of each table, pruned. `running`: runs the query. `duckdb`: the connection.
"""

from __future__ import annotations

from deltalog.query.duckdb import QueryBuilder

__all__ = ["QueryBuilder"]
