"""SELECT over tables: by a scan where that suffices, otherwise by DuckDB.

- `lexer`, `parse`, `names`, `located`: the words of a query, its tree, and the tables that it
names.
- `translate`: the query in DuckDB's dialect. `native`: decides which expressions DuckDB computes as
  Spark does. `computed`: the expressions that the package `expressions` computes instead.
- `joins`: joins by column names.
- `tables`: the rows of each table, after pruning. `duckdb_files`: files that DuckDB reads itself.
- `running`: runs the query. `duckdb`: connections, and streams of rows. `duckdb_expressions`:
  Spark's expressions in DuckDB's SQL.
- `results`: what a query or another statement returns to the user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import explain_call, explain_names
from deltalog.query.duckdb import QueryBuilder

__all__ = ["QueryBuilder"]

if not TYPE_CHECKING:  # type checkers report such uses themselves
    __getattr__ = explain_names(__name__, __all__)
    explain_call(__name__, "deltalog.sql(query, t=table)")
