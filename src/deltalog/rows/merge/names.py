"""Resolve the column names in a merge's SQL to the table or the source.

Owns aliases and ambiguity, and by which collation keys are compared. Resolved expressions see two
structs, `target` and `source`.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions import Column, conjunction, conjuncts, map_columns, parse_sql
from deltalog.expressions.nodes import Collate, Comparison
from deltalog.schema import Field, StructType, find_field
from deltalog.schema.collation_names import BY_BYTES
from deltalog.schema.collations import own_collation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from deltalog.expressions import Expression

TARGET: Final = "target"
SOURCE: Final = "source"
BOTH: Final = (TARGET, SOURCE)


class Names:
    """The columns and aliases of both sides.

    Args:
        target: schema of the table.
        source: schema of the source.
        target_alias: of the table in SQL, besides the name `target`.
        source_alias: of the source in SQL, besides the name `source`.
        parameters: values for `:name` in SQL.

    Attributes:
        schema: of the rows that expressions see: `target` and `source` are structs.
    """

    def __init__(
        self,
        target: StructType,
        source: StructType,
        *,
        target_alias: str | None = None,
        source_alias: str | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        self._sides = {TARGET: target, SOURCE: source}
        self.schema: StructType = StructType(
            [Field(TARGET, target, nullable=False), Field(SOURCE, source, nullable=False)]
        )
        self._parameters = parameters
        self._aliases = {SOURCE: SOURCE, TARGET: TARGET}
        given = [(source_alias, SOURCE), (target_alias, TARGET)]
        if (
            source_alias is not None
            and (source_alias or "").lower() == (target_alias or "").lower()
        ):
            raise InvalidInputError(f"source and target cannot both be called {source_alias!r}")
        for alias, side in given:
            if alias is not None:
                self._aliases[alias.strip("`").lower()] = side
        self._shown = {SOURCE: source_alias or SOURCE, TARGET: target_alias or TARGET}

    def parse(self, sql: str | Expression, sides: Collection[str] = BOTH) -> Expression:
        """Parse SQL, or take an expression, and qualify its columns with their sides.

        Args:
            sql: as the caller gave it.
            sides: the sides that have a row where the expression is evaluated.

        Raises:
            InvalidInputError: a column is unknown or ambiguous, or its side has no row.
        """
        if isinstance(sql, str):
            names = {name for side in sides for name in self._sides[side].names}
            parsed = parse_sql(sql, parameters=self._parameters, columns=names, quotes_names=True)
        else:
            parsed = sql
        return map_columns(parsed, lambda column: self._place(column, sides))

    def target_path(self, key: str | tuple[str, ...], parts: tuple[str, ...]) -> tuple[str, ...]:
        """Return the path of an assigned column, without the table's alias.

        Raises:
            InvalidInputError: the column belongs to the source.
        """
        known = {name.lower() for name in self._sides[TARGET].names}
        side = self._aliases.get(parts[0].lower())
        if len(parts) == 1 or side is None or (parts[0].lower() in known and parts[0] != TARGET):
            return parts
        if side == SOURCE:
            raise InvalidInputError(
                f"cannot assign {key!r}: it is a column of the source, and the table's change"
            )
        return parts[1:]

    def _place(self, column: Column, sides: Collection[str]) -> Column:
        path = column.path
        side = self._aliases.get(path[0].lower())
        if side is not None and len(path) > 1:
            if side not in sides:
                raise InvalidInputError(
                    f"cannot use {column.name!r} here: there is no row of the {side}"
                )
            return Column((side, *path[1:]))
        found = [
            side
            for side in sides
            if path[0].lower() in {name.lower() for name in self._sides[side].names}
        ]
        if len(found) == 1:
            return Column((found[0], *path))
        if found:
            raise InvalidInputError(
                f"the column {column.name!r} is ambiguous: it may be "
                f"{' or '.join(repr(f'{self._shown[side]}.{column.name}') for side in found)}"
            )
        raise InvalidInputError(f"there is no column {column.name!r}: {self._hint(column, sides)}")

    def _hint(self, column: Column, sides: Collection[str]) -> str:
        known = {
            f"{self._shown[side]}.{name}".lower(): f"{self._shown[side]}.{name}"
            for side in sides
            for name in self._sides[side].names
        }
        bare = {name.rpartition(".")[2]: shown for name, shown in known.items()}
        close = difflib.get_close_matches(column.name.lower(), [*known, *bare], n=1)
        if close:
            return f"did you mean {(known.get(close[0]) or bare[close[0]])!r}?"
        return f"the columns are {', '.join(map(repr, list(known.values())[:20]))}"


def sides_of(paths: Collection[tuple[str, ...]]) -> set[str]:
    """Return the sides that the columns of an expression belong to."""
    return {path[0] for path in paths}


def without_side(expression: Expression) -> Expression:
    """Return an expression over one side with the side's name removed from its columns."""
    return map_columns(expression, lambda column: Column(column.path[1:]))


def by_the_table(condition: Expression, target: StructType) -> Expression:
    """The condition of an upsert, whose keys are compared by the collations of the table."""

    def collated(part: Expression) -> Expression:
        match part:
            case Comparison(operator, Column() as own, Column() as other):
                collation = own_collation(find_field(target, own.path[1:]))
                if collation != BY_BYTES:
                    return Comparison(operator, own, Collate(other, collation))
        return part

    return conjunction([collated(part) for part in conjuncts(condition)])
