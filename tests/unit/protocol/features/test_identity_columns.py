from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import InvalidInputError, InvalidMetadataError
from deltalog.protocol.features.identity_columns import (
    MAX_VALUE,
    MIN_VALUE,
    IdentityColumn,
    identity_columns,
    next_values,
    with_high_water_marks,
)
from deltalog.schema import Field, StructType


def schema_of(kind: str = "long", **entries: Any) -> StructType:
    metadata = {f"delta.identity.{name}": value for name, value in entries.items()}
    return StructType([Field("id", kind, metadata=metadata), Field("x", "long")])


@pytest.mark.protocol("IDN-01")
@pytest.mark.parametrize("quoted", [False, True])
def test_settings_are_metadata_of_the_column(quoted: bool) -> None:
    entries: dict[str, Any] = {
        "start": 5,
        "step": -2,
        "highWaterMark": 1,
        "allowExplicitInsert": True,
    }
    if quoted:
        entries = {name: str(value).lower() for name, value in entries.items()}
    assert identity_columns(schema_of(**entries)) == (
        IdentityColumn(name="id", start=5, step=-2, high_water_mark=1, allow_explicit_insert=True),
    )


@pytest.mark.protocol("IDN-01")
@pytest.mark.parametrize(
    "wrong",
    [
        {"start": 1, "step": 0},
        {"step": 1},
        {"start": 1, "step": "x"},
        {"start": 2**63, "step": 1},
        {"start": 1, "step": True},
        {"kind": "integer", "start": 1, "step": 1},
    ],
    ids=str,
)
def test_what_describes_no_sequence_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidMetadataError, match="'id'"):
        identity_columns(schema_of(**wrong))


def column(start: int, step: int, mark: int | None = None) -> IdentityColumn:
    return IdentityColumn(name="id", start=start, step=step, high_water_mark=mark)


@pytest.mark.protocol("IDN-03", "D-41")
def test_the_first_value_is_the_start_itself() -> None:
    assert column(7, 3).next_value == 7
    assert column(7, 3, mark=10).next_value == 13
    assert column(7, -3, mark=7).next_value == 4


@pytest.mark.protocol("IDN-05")
@pytest.mark.parametrize(
    ("start", "step", "count", "last"),
    [
        (MIN_VALUE, 2**62, 4, 2**62),
        (MAX_VALUE, -(2**62), 4, -(2**62) - 1),
        (MAX_VALUE, 1, 1, MAX_VALUE),
        (3, 1, 1, 3),
    ],
)
def test_sequences_reach_both_ends(start: int, step: int, count: int, last: int) -> None:
    values = next_values(column(start, step), start, count)
    assert values.to_pylist() == [start + k * step for k in range(count)]
    assert values[-1].as_py() == last


@pytest.mark.protocol("IDN-05")
@pytest.mark.parametrize(
    ("start", "step", "count"), [(MAX_VALUE, 1, 2), (MIN_VALUE, -1, 2), (2**63 + 3, 5, 1)]
)
def test_a_value_beyond_a_long_is_an_error(start: int, step: int, count: int) -> None:
    with pytest.raises(InvalidInputError, match="no values left"):
        next_values(column(start, step), start, count)


def test_no_rows_need_no_values() -> None:
    assert next_values(column(1, 1), 2**70, 0).to_pylist() == []


@pytest.mark.protocol("IDN-04")
@pytest.mark.parametrize(
    ("step", "before", "given", "after"),
    [(1, None, 3, 3), (1, 3, 5, 5), (1, 5, 3, 5), (-1, 5, 3, 3), (-1, 3, 5, 3)],
)
def test_marks_only_go_forward(step: int, before: int | None, given: int, after: int) -> None:
    entries: dict[str, Any] = {} if before is None else {"highWaterMark": before}
    schema = schema_of(start=0, step=step, **entries)
    changed = with_high_water_marks(schema, {"id": given})
    assert identity_columns(changed)[0].high_water_mark == after
    assert changed.fields[1] == schema.fields[1]
    assert with_high_water_marks(schema, {}) == schema
