"""Constraints come and go."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.errors import ConstraintViolationError, InvalidInputError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations import alter
from tests.support.aging import AgingTable
from tests.support.altering import apply, last, make, told


@pytest.mark.protocol("CON-02", "CON-03", "CON-04", "CON-05")
def test_constraints_are_checked_against_the_rows() -> None:
    table = make()
    after = apply(table, alter.AddConstraints({"Big": "id > 0"}))
    assert after.metadata.configuration == {"delta.constraints.big": "id > 0"}
    assert (after.protocol.min_reader_version, after.protocol.min_writer_version) == (1, 3)
    assert told(table) == ("ADD CONSTRAINT", {"name": "Big", "expr": "id > 0"})
    assert last(table)["commitInfo"]["isBlindAppend"] is False
    with pytest.raises(InvalidInputError, match="the name is taken by"):
        apply(table, alter.AddConstraints({"BIG": "id > 1"}))
    with pytest.raises(ConstraintViolationError, match="2 rows break it") as caught:
        apply(table, alter.AddConstraints({"c": "v > 'a'"}))
    assert (caught.value.constraint, caught.value.num_rows) == ("c", 2)
    assert caught.value.examples == ({"v": "a"}, {"v": None})
    with pytest.raises(InvalidInputError, match="no column 'nope'"):
        apply(table, alter.AddConstraints({"c": "nope > 1"}))
    assert load_snapshot(utc_context(table.store)).version == after.version


def test_rows_that_break_a_constraint_are_shown_whatever_values_they_have() -> None:
    table = AgingTable()
    late = pa.array([4_000_000], pa.int32()).cast(pa.date32())
    table.create(pa.table({"d": late}))
    with pytest.raises(ConstraintViolationError, match=r"such as .*'\+12921-08-18'"):
        table.do(alter.AddConstraints({"c": "d < DATE'2000-01-01'"}))


@pytest.mark.protocol("CON-05")
def test_a_constraint_is_dropped() -> None:
    table = make()
    apply(table, alter.AddConstraints({"c": "id > 0"}))
    after = apply(table, alter.DropConstraint("C"))
    assert after.metadata.configuration == {}
    assert told(table) == ("DROP CONSTRAINT", {"name": "C", "expr": "id > 0", "existed": "true"})
    with pytest.raises(InvalidInputError, match="does not have it"):
        apply(table, alter.DropConstraint("c"))
