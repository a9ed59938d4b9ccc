from __future__ import annotations

import pytest

from deltalog.errors import InvalidMetadataError, MalformedLogError
from deltalog.protocol.features.declarations import INVARIANT, Check, table_checks
from deltalog.schema import ArrayType, Field, StructType

TEXT = '{"expression":{"expression":"x > 3"}}'


@pytest.mark.protocol("CON-01", "CON-03")
def test_checks_are_properties() -> None:
    configuration = {"delta.constraints.pos": "a > 0", "DELTA.Constraints.B": "b", "delta.x": "y"}
    assert table_checks(configuration, StructType([])) == (
        Check(name="pos", text="a > 0"),
        Check(name="B", text="b"),
    )


@pytest.mark.protocol("INV-01", "INV-02")
@pytest.mark.parametrize("stored", [TEXT, {"expression": {"expression": "x > 3"}}])
def test_invariants_are_metadata_of_columns(stored: object) -> None:
    inner = StructType([Field("x", "long", metadata={"delta.invariants": stored})])
    schema = StructType([Field("l", ArrayType(inner))])
    expected = Check(name="l.element.x", text="x > 3", kind=INVARIANT)
    assert table_checks({}, schema) == (expected,)
    assert table_checks({}, schema, invariants=False) == ()


@pytest.mark.parametrize("stored", ["{", "[]", "{}", '{"expression":{}}', '{"expression":3}'])
def test_what_is_no_invariant_is_an_error(stored: str) -> None:
    schema = StructType([Field("x", "long", metadata={"delta.invariants": stored})])
    with pytest.raises((InvalidMetadataError, MalformedLogError), match="column 'x'"):
        table_checks({}, schema)
