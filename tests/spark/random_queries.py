"""Random queries over three tables, whose names and hints are spelt in many ways.

The texts have `{schema}` for the schema of the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

TABLES = {"m": ("id", "v"), "w": ("id", "q"), "2odd": ("id", "zé")}
"""Tables and their columns: whole numbers, then texts."""

GAPS = (" ", "\t", "\r\n", " /* FROM w */ ", " -- m\n", "  ", " -- on \\\n m \n", " /* /* */ m */ ")
HINTS = ("BROADCAST({0})", "SHUFFLE_HASH({0})", "MERGE({0}, {1})", "COALESCE(2)",
         "BROADCAST({0}) MERGE({1})", "SHUFFLE_REPLICATE_NL({0}), REBALANCE")  # fmt: skip
TEXTS = ("'m'", "'FROM w'", "'it''s {{m}}'", "r'\\'", "'é😀'", '"m -- "', "'/*'")


class RandomQueries:
    """Makes queries.

    Args:
        seed: of the random choices.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._number = 0

    def query(self, depth: int = 2) -> str:
        """Return a query whose columns are called `a` and `b`: a whole number and a text."""
        kind = self._random.randrange(10)
        if depth and kind == 0:
            way = self._one(("UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
            return f"({self.query(depth - 1)}) {way} ({self.query(depth - 1)})"
        if depth and kind == 1:
            name = self._one(("x", "m", "w"))
            inner = self.query(depth - 1)
            return f"WITH {name} AS ({inner}) SELECT a, b FROM {name}"
        return self._select(depth)

    def _select(self, depth: int) -> str:
        names = self._random.sample(sorted(TABLES), self._random.choice((1, 1, 2, 2, 3)))
        calls, relations = zip(*map(self._relation, names), strict=True)
        hint = self._hint(calls) if self._random.random() < 0.5 else ""
        number, text = self._column(names[0], calls[0], 0), self._column(names[-1], calls[-1], 1)
        if self._random.random() < 0.3:
            text = f"concat({text}, {self._one(TEXTS)})"
        gap = self._one(GAPS)
        found = f"SELECT{gap}{hint}{number} AS a,{gap}{text} AS b FROM{gap}{relations[0]}"
        for name, call, relation in list(zip(names, calls, relations, strict=True))[1:]:
            way = self._one(("JOIN", "LEFT JOIN", "INNER JOIN"))
            other = self._column(name, call, 0)
            found += f" {way}{gap}{relation} ON {self._column(names[0], calls[0], 0)} = {other}"
        condition = self._condition(names[0], calls[0], depth)
        return f"{found}{gap}WHERE {condition}" if condition else found

    def _relation(self, name: str) -> tuple[str, str]:
        """Return what columns call a table, and the table in FROM."""
        quoted = f"`{name}`" if self._random.random() < 0.2 else name
        called = self._one((quoted, f"{{schema}}.{quoted}", f"spark_catalog.{{schema}}.{quoted}"))
        if self._random.random() < 0.2:
            called = called.replace(".", self._one((" . ", "./* m */", ".\n")))
        if self._random.random() < 0.3:
            called += self._one((" TABLESAMPLE (100 PERCENT)", " TABLESAMPLE (100 ROWS)"))
        if self._random.random() < 0.3:
            alias = self._one(("t1", "t2", "t3")) + str(self._number)
            self._number += 1
            return alias, f"{called} {self._one(('', 'AS '))}{alias}"
        return quoted, called

    def _column(self, name: str, call: str, place: int) -> str:
        column = f"`{TABLES[name][place]}`".replace("{", "{{").replace("}", "}}")
        if call[:1] == "t":
            return f"{call}.{column}"
        return self._one((
            f"{call}.{column}", f"{{schema}}.{call}.{column}",
            f"spark_catalog.{{schema}}.{call}.{column}", f"{call.upper()}.{column.upper()}",
        ))  # fmt: skip

    def _condition(self, name: str, call: str, depth: int) -> str:
        own = self._column(name, call, 0)
        kind = self._random.randrange(6)
        if kind == 0 or not depth:
            return f"{own} > 1"
        if kind == 1:
            return f"{own} IN (SELECT a FROM ({self.query(depth - 1)}) y)"
        if kind == 2:
            other = self._one([one for one in TABLES if one != name])
            call, relation = self._relation(other)
            inner = self._column(other, call, 0)
            return f"EXISTS (SELECT {self._hint((call,))}1 FROM {relation} WHERE {inner} = {own})"
        if kind == 3:
            return f"{own} <= (SELECT max(a) FROM ({self.query(depth - 1)}))"
        return f"{own} = 2 OR {self._one(TEXTS)} = 'm'" if kind == 4 else ""

    def _hint(self, calls: Sequence[str]) -> str:
        return f"/*+ {self._one(HINTS).format(calls[0], calls[-1])} */ "

    def _one(self, options: Sequence[str]) -> str:
        return self._random.choice(options)
