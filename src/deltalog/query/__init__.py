"""SELECT over tables: by a scan where that suffices, otherwise by DuckDB.

- `lexer`, `parse`, `names`, `located`: the query's words, its tree, and the tables that it names.
- `translate`: the query in DuckDB's dialect. `native`: the expressions that DuckDB computes exactly
as Spark does; `computed`: the expressions that `expressions` computes. `joins`: joins by names.
- `tables`: the rows of each table, pruned. `running`: runs the query. `duckdb`: connections.
"""

from __future__ import annotations

from deltalog.query.duckdb import QueryBuilder

__all__ = ["QueryBuilder"]
