"""Verbs that add and drop CHECK constraints.

Protocol: CHECK Constraints
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from deltalog.actions.properties import CONSTRAINT_PREFIX
from deltalog.errors import InvalidInputError
from deltalog.expressions.nodes import Comparison, Literal, Not
from deltalog.features.declarations import check_condition
from deltalog.names import name_key
from deltalog.verbs.alter.existing_rows import check_existing_rows
from deltalog.verbs.alter.staging import Alteration, change_properties

if TYPE_CHECKING:
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True)
class AddConstraints(Alteration):
    """Add CHECK constraints.

    Args:
        constraints: name → Spark SQL. Names ignore case.
    """

    constraints: Mapping[str, str]
    name: ClassVar[str] = "ADD CONSTRAINT"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Check the existing rows, and set the constraints.

        Raises:
            ConstraintViolationError: a condition is false or NULL for existing rows.
            InvalidInputError: a name is taken, or a text is not a condition over the columns.

        Cost: reads the columns of each condition, from the files that data skipping leaves.
        """
        if not isinstance(self.constraints, Mapping):
            raise InvalidInputError(
                f"cannot add the constraints {self.constraints!r}: expected a dictionary, name to "
                "SQL"
            )
        if not self.constraints:
            raise InvalidInputError("there are no constraints to add")
        for name, text in self.constraints.items():
            _add_constraint(transaction, name, text)
        return {"name": name, "expr": text}


@dataclass(frozen=True, slots=True)
class DropConstraint(Alteration):
    """Drop a CHECK constraint by its name."""

    constraint: str
    raise_if_not_exists: bool = True
    name: ClassVar[str] = "DROP CONSTRAINT"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Remove the table property that holds the constraint.

        Raises:
            InvalidInputError: the table has no such constraint.
        """
        name = self.constraint
        configuration = dict(transaction.configuration.metadata.configuration)
        key = _key_of(configuration, name)
        if key is None:
            if self.raise_if_not_exists:
                raise InvalidInputError(
                    f"cannot drop the constraint {name!r}: {transaction.store.root} does not have "
                    "it"
                )
            return {"name": name, "existed": "false"}
        text = configuration.pop(key)
        change_properties(transaction, configuration)
        return {"name": name, "expr": text, "existed": "true"}


def _add_constraint(transaction: PendingTransaction, name: str, text: str) -> None:
    configuration = dict(transaction.configuration.metadata.configuration)
    if not name:
        raise InvalidInputError("a constraint needs a name")
    taken = _key_of(configuration, name)
    if taken is not None:
        raise InvalidInputError(
            f"cannot add the constraint {name!r}: there is one of that name, "
            f"{configuration[taken]!r}; drop it first"
        )
    what = f"the CHECK constraint {name!r}"
    condition = check_condition(what, text, transaction.configuration.schema)
    # Only TRUE passes: NULL violates a constraint (ledger CON-02).
    violation = Not(Comparison("<=>", condition, Literal(value=True)))
    check_existing_rows(transaction, f"{what} ({text})", violation, constraint=name)
    change_properties(transaction, {**configuration, CONSTRAINT_PREFIX + name_key(name): text})


def _key_of(configuration: Mapping[str, str], name: str) -> str | None:
    wanted = CONSTRAINT_PREFIX + name_key(name)
    return next((key for key in configuration if _key_in_lower_case(key) == wanted), None)


def _key_in_lower_case(key: str) -> str:
    """The key of a property: the name is taken alone, as a Σ is lowered by what stands before."""
    start = len(CONSTRAINT_PREFIX)
    return key[:start].lower() + name_key(key[start:])
