"""CHECK constraints added and dropped.

Protocol: CHECK Constraints
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deltalog.actions.properties import CONSTRAINT_PREFIX
from deltalog.errors import InvalidInputError
from deltalog.expressions.nodes import Comparison, Literal, Not
from deltalog.features.declarations import check_condition
from deltalog.verbs.alter.existing_rows import check_existing_rows
from deltalog.verbs.alter.staging import change_properties, record

if TYPE_CHECKING:
    from deltalog.transaction import PendingTransaction


def add_constraints(pending: PendingTransaction, constraints: Mapping[str, str]) -> None:
    """Have every row meet conditions from now on.

    Args:
        pending: the transaction.
        constraints: name → Spark SQL. Names ignore case.

    Raises:
        ConstraintViolationError: rows of the table break a condition, or it is NULL for them.
        InvalidInputError: a name is taken, or a text is no condition over the table's columns.

    Cost: reads the columns of each condition, of the files that statistics do not rule out.
    """
    if not isinstance(constraints, Mapping):
        raise InvalidInputError(
            f"cannot add the constraints {constraints!r}: expected a dictionary, name to SQL"
        )
    if not constraints:
        raise InvalidInputError("there are no constraints to add")
    for name, text in constraints.items():
        _add_constraint(pending, name, text)


def drop_constraint(
    pending: PendingTransaction, name: str, *, raise_if_not_exists: bool = True
) -> None:
    """Have rows no longer meet a condition.

    Raises:
        InvalidInputError: the table has no such constraint.
    """
    configuration = dict(pending.configuration.metadata.configuration)
    key = _key_of(configuration, name)
    if key is None:
        if raise_if_not_exists:
            raise InvalidInputError(
                f"cannot drop the constraint {name!r}: {pending.store.root} does not have it"
            )
        record(pending, "DROP CONSTRAINT", name=name, existed="false")
        return
    text = configuration.pop(key)
    change_properties(pending, configuration)
    record(pending, "DROP CONSTRAINT", name=name, expr=text, existed="true")


def _add_constraint(pending: PendingTransaction, name: str, text: str) -> None:
    configuration = dict(pending.configuration.metadata.configuration)
    if not name:
        raise InvalidInputError("a constraint needs a name")
    taken = _key_of(configuration, name)
    if taken is not None:
        raise InvalidInputError(
            f"cannot add the constraint {name!r}: there is one of that name, "
            f"{configuration[taken]!r}; drop it first"
        )
    what = f"the CHECK constraint {name!r}"
    condition = check_condition(what, text, pending.configuration.schema)
    # Only TRUE will do: NULL breaks a constraint (ledger CON-02).
    violation = Not(Comparison("<=>", condition, Literal(value=True)))
    check_existing_rows(pending, f"{what} ({text})", violation, constraint=name)
    change_properties(pending, {**configuration, CONSTRAINT_PREFIX + name.lower(): text})
    record(pending, "ADD CONSTRAINT", name=name, expr=text)


def _key_of(configuration: Mapping[str, str], name: str) -> str | None:
    wanted = f"{CONSTRAINT_PREFIX}{name}".lower()
    return next((key for key in configuration if key.lower() == wanted), None)
