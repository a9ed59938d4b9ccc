"""Conditions that every row must satisfy: CHECK constraints and column invariants.

Owns where they are stored and what they are called; writers evaluate them.

Protocol: CHECK Constraints, Column Invariants
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import JsonObject, loads
from deltalog.actions.properties import TableProperties
from deltalog.errors import InvalidMetadataError
from deltalog.features.schema_traits import INVARIANTS_KEY
from deltalog.schema.columns import walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.schema.types import StructType

CHECK: Final = "CHECK"
INVARIANT: Final = "INVARIANT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A condition in SQL that must be true for every row: NULL violates it too (ledger CON-02).

    Args:
        name: of a constraint, as stored; for an invariant, its column.
        text: Spark SQL.
        kind: `CHECK` or `INVARIANT`.
    """

    name: str
    text: str
    kind: str = CHECK


def table_checks(
    configuration: Mapping[str, str], schema: StructType, *, invariants: bool = True
) -> tuple[Check, ...]:
    """All conditions on the rows of a table.

    Args:
        configuration: the table's properties.
        schema: of the table.
        invariants: whether the protocol supports column invariants; otherwise their metadata has
            no meaning (ledger INV-02).

    Raises:
        InvalidMetadataError: an invariant is malformed.
    """
    # Delta Spark enforces constraints even if the protocol does not have the feature (CON-06).
    stored = TableProperties(configuration).constraints
    checks = [Check(name=name, text=text) for name, text in stored.items()]
    # "Writers MUST abort any transaction that adds a row to the table, where an invariant evaluates
    # to `false` or `null`."
    if invariants:
        checks += [
            Check(
                name=".".join(path),
                text=_invariant_text(field.metadata[INVARIANTS_KEY], path),
                kind=INVARIANT,
            )
            for path, field in walk(schema)
            if INVARIANTS_KEY in field.metadata
        ]
    return tuple(checks)


def _invariant_text(stored: Any, path: tuple[str, ...]) -> str:
    """The condition in `{"expression": {"expression": "x > 3"}}`, JSON text or parsed."""
    where = f"column {'.'.join(path)!r}: {INVARIANTS_KEY}"
    tree = loads(stored, where) if isinstance(stored, str) else stored
    outer = JsonObject(tree, where, InvalidMetadataError)
    inner = JsonObject(
        outer.required("expression", dict), f"{where}: expression", InvalidMetadataError
    )
    return inner.required("expression", str)
