"""New rules are checked against the rows that are there."""

from __future__ import annotations

import pytest

from deltalog.errors import ConstraintViolationError, InvalidInputError
from deltalog.operations import alter
from deltalog.operations.engine import LocalEngine
from deltalog.operations.operation import CustomOperation
from deltalog.schema import Field, find_field
from deltalog.transaction import PendingTransaction
from tests.support.altering import apply, make


@pytest.mark.protocol("INV-04")
def test_not_null_is_checked_against_the_rows() -> None:
    table = make()
    after = apply(table, alter.SetColumnNotNull("id"))
    assert not find_field(after.configuration.schema, "id").nullable
    with pytest.raises(ConstraintViolationError, match="1 row breaks") as caught:
        apply(table, alter.SetColumnNotNull("v"))
    assert caught.value.num_rows == 1
    assert caught.value.examples == ({"v": None},)
    # A struct that is NULL misses none of its fields; one that is there does.
    with pytest.raises(ConstraintViolationError, match="1 row breaks"):
        apply(table, alter.SetColumnNotNull("s.x"))
    after = apply(table, alter.DropColumnNotNull("id"))
    assert find_field(after.configuration.schema, "id").nullable


def test_rules_are_checked_before_rows_of_the_same_commit_are_there() -> None:
    table = make()

    def both(tx: PendingTransaction) -> None:
        assert tx.snapshot is not None
        tx.add_again(tx.snapshot.files())
        alter.AddConstraints({"c": "id > 0"}).stage(tx, LocalEngine())

    with pytest.raises(InvalidInputError, match="commit them first"):
        apply(table, CustomOperation(name="TEST", plan=both))

    def column_first(tx: PendingTransaction) -> None:
        alter.AddColumns([Field("w", "long")]).stage(tx, LocalEngine())
        alter.AddConstraints({"c": "w > 0"}).stage(tx, LocalEngine())

    with pytest.raises(InvalidInputError, match="changes the schema"):
        apply(table, CustomOperation(name="TEST", plan=column_first))
