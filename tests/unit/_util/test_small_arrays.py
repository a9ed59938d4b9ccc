"""Arrays that are made without pandas are those of `pa.array`."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from deltalog import write_deltalake
from deltalog._util import small_arrays
from deltalog._util.small_arrays import no_rows, small_array

_VECTOR = pa.struct([("storageType", pa.string()), ("offset", pa.int32()), ("n", pa.int64())])
_VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pa.string(): st.text(),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(allow_nan=False),
    pa.binary(): st.binary(),
    pa.decimal128(9, 2): st.decimals(-9_999_999, 9_999_999, places=2),
    pa.decimal128(38, 0): st.decimals(-(10**38) + 1, 10**38 - 1, places=0),
    _VECTOR: st.fixed_dictionaries(
        {},
        optional={
            "storageType": st.none() | st.text(),
            "offset": st.none() | st.integers(-(2**31), 2**31 - 1),
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "unknown": st.just(1),
        },
    ),
}


@given(data=st.data(), kind=st.sampled_from(list(_VALUES)))
def test_values_become_the_array_of_pyarrow(data: st.DataObject, kind: Any) -> None:
    values = data.draw(st.lists(st.none() | _VALUES[kind], max_size=20))
    made = small_arrays._made(values, kind)
    assert made is not None
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, "a"], pa.string()),
        ([b"a"], pa.string()),
        ([True], pa.int64()),
        ([1.0], pa.int64()),
        ([2**63], pa.int64()),
        ([-(2**31) - 1], pa.int32()),
        ([0], pa.bool_()),
        ([[("storageType", "u")]], _VECTOR),
        ([{"offset": "1"}], _VECTOR),
        ([1], pa.int8()),
        ([1], pa.float64()),
        (["a"], pa.binary()),
        ([Decimal("1.234")], pa.decimal128(9, 2)),
        ([Decimal(12345678)], pa.decimal128(9, 2)),
        ([Decimal("1e10")], pa.decimal128(9, 2)),
        ([Decimal("NaN")], pa.decimal128(9, 2)),
        ([Decimal("-Infinity")], pa.decimal128(9, 2)),
        ([1], pa.decimal128(9, 2)),
    ],
)
def test_other_values_are_left_to_pyarrow(values: list[Any], kind: Any) -> None:
    assert small_arrays._made(values, kind) is None
    try:
        expected = pa.array(values, kind)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        with pytest.raises(type(error)):
            small_array(values, kind)
    else:
        assert small_array(values, kind).equals(expected)


def test_a_table_without_rows() -> None:
    schema = pa.schema([("a", pa.string()), ("b", _VECTOR), ("c", pa.map_("string", "string"))])
    assert no_rows(schema).equals(schema.empty_table())


_PLANS_A_BATCH = """
import sys
from deltalog import DeltaTable
step = DeltaTable(sys.argv[1]).follow(0, max_files_per_step=2).poll()
assert "pandas" not in sys.modules
assert len(step.tasks) == 2
"""


def test_the_first_files_of_a_stream_are_planned_without_pandas(tmp_path: Path) -> None:
    """Its import would take longer than all the rest."""
    for number in range(3):
        write_deltalake(tmp_path, {"id": [number] * 3}, mode="append")
    subprocess.run([sys.executable, "-c", _PLANS_A_BATCH, str(tmp_path)], check=True, timeout=60)


@pytest.mark.parametrize("kind", [pa.int8(), pa.decimal128(9, 2), pa.list_(pa.string()), _VECTOR])
def test_nulls_of_any_type(kind: Any) -> None:
    assert small_array([None, None], kind).equals(pa.array([None, None], kind))
    assert small_array([], kind).equals(pa.array([], kind))


_READS = """
import sys
from deltalog import DeltaTable
table = DeltaTable(sys.argv[1])
scan = table.scan(predicate=sys.argv[2] or None)
print(scan.count(), scan.to_table().num_rows, sum(batch.num_rows for batch in scan), table.count())
assert "pandas" not in sys.modules
"""


@pytest.mark.parametrize(
    ("predicate", "num_rows"),
    [
        ("", 300),
        ("id = 2", 1),
        ("id > 150 AND name <> 'n7'", 148),
        ("x < 1.5 OR ok", 151),
        ("id IN (1, 2, 3)", 3),
        ("name LIKE 'n1%' AND id BETWEEN 3 AND 299", 32),
        ("name IN ('n1', 'n2') OR x = 1.25D", 6),
        ("upper(name) = 'N3'", 3),
    ],
)
def test_a_script_reads_a_table_without_pandas(
    tmp_path: Path, predicate: str, num_rows: int
) -> None:
    """Its import would take as long as reading a million rows."""
    ids = list(range(300))
    rows = pa.table(
        {
            "id": ids,
            "name": [f"n{one % 100}" for one in ids],
            "x": [one / 2 for one in ids],
            "ok": [one % 2 == 0 for one in ids],
        }
    )
    for start in (0, 100, 200):
        write_deltalake(tmp_path, rows.slice(start, 100), mode="append")
    command = [sys.executable, "-c", _READS, str(tmp_path), predicate]
    done = subprocess.run(command, check=True, timeout=60, stdout=subprocess.PIPE, text=True)
    assert done.stdout.split() == [*[str(num_rows)] * 3, "300"]
