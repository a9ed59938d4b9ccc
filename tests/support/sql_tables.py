"""SQL statements over tables in memory, for tests."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from deltalog import DeltaTable
from deltalog.query.names import QualifiedName
from deltalog.statements import Connection, SqlResult
from deltalog.statements.local import LocalSession
from deltalog.statements.reader import Parameters


class SqlTables:
    """A connection, and a place in memory for the tables that its statements create.

    Attributes:
        root: of the locations, which no other test has.
        session: of the connection.
        connection: runs the statements.
    """

    def __init__(self) -> None:
        self.root = f"memory://sql-{uuid4().hex}"
        self.session = LocalSession()
        self.connection = Connection(self.session)

    def run(self, statement: str, parameters: Parameters = None) -> SqlResult:
        """Run a statement, in which `{root}` is the place of the tables."""
        return self.connection.sql(statement.replace("{root}", self.root), parameters)

    def rows(self, statement: str, parameters: Parameters = None) -> list[tuple[Any, ...]]:
        """The rows of a query, as tuples, ordered."""
        found = self.run(statement, parameters).to_arrow()
        columns = (column.to_pylist() for column in found.columns)
        return sorted(zip(*columns, strict=True), key=repr)

    def values(self, statement: str, parameters: Parameters = None) -> list[Any]:
        """The only column of a query, ordered."""
        return [value for (value,) in self.rows(statement, parameters)]

    def create(self, name: str, definition: str) -> DeltaTable:
        """Create a table with a name, of `(column TYPE, …)` and clauses, or of `AS SELECT`."""
        columns, _, clauses = definition.partition(" -- ")
        query, sign, selected = columns.partition("AS SELECT")
        self.run(
            f"CREATE TABLE {name} {query} {clauses} LOCATION '{{root}}/{name}' {sign}{selected}"
        )
        return self.table(name)

    def table(self, name: str) -> DeltaTable:
        """The table of a name."""
        return self.session.open(QualifiedName.parse(name))

    def history(self, name: str) -> list[str]:
        """The operations of a table, the newest first."""
        return [str(commit["operation"]) for commit in self.table(name).history()]
