"""Which rows of two streams are the same, in bounded memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.operations.changes.row_diff import match_rows
from tests.support.examples import examples

if TYPE_CHECKING:
    pass


def test_changed_rows_are_told_as_they_were_then_as_they_are() -> None:
    def rows(*values: int) -> pa.Table:
        return pa.table({"k": [0] * len(values), "v": list(values)})

    old, new = rows(1, 1, 2, 2), rows(1, 1, 1, 2)
    (batch,) = match_rows(
        old.to_batches(), new.to_batches(), schema=old.schema, keys=["k"], memory_bytes=1 << 20
    )
    assert batch.to_pylist() == [
        {"k": 0, "v": 2, "_change_type": "update_preimage"},
        {"k": 0, "v": 1, "_change_type": "update_postimage"},
    ]


def test_what_does_not_fit_into_memory_goes_to_disk_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = pa.table({"k": list(range(1000)), "v": [1.5] * 1000})
    other = rows.set_column(1, "v", pa.array([2.5] * 1000))
    for memory, uses_disk in ((1 << 20, False), (1000, True)):
        found = match_rows(
            rows.to_batches(max_chunksize=100),
            other.to_batches(max_chunksize=100),
            schema=rows.schema,
            keys=["k"],
            memory_bytes=memory,
        )
        first = next(found)
        assert bool(list(tmp_path.iterdir())) is uses_disk
        assert first.num_rows + sum(batch.num_rows for batch in found) == 2000
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("memory_bytes", [1 << 20, 1], ids=["memory", "disk"])
def test_values_that_python_does_not_have_are_compared(memory_bytes: int) -> None:
    day = pa.array([4_000_000, 4_000_001], pa.int32()).cast(pa.date32())
    text = pa.array([b"\xff", b"\xfe"]).view(pa.string())
    offsets: Any = pa.array([0, 1, 2], pa.int32())
    days: Any = pa.StructArray.from_arrays([day], ["d"])
    old = pa.table(
        {
            "list": pa.ListArray.from_arrays(offsets, day),
            "map": pa.MapArray.from_arrays(offsets, text, days),
        }
    )
    found = match_rows(
        old.to_batches(),
        old.slice(0, 1).to_batches(),
        schema=old.schema,
        keys=[],
        memory_bytes=memory_bytes,
    )
    assert [batch.select(old.schema.names) for batch in found] == old.slice(1).to_batches()


NESTED = pa.schema(
    [
        ("k", pa.int64()),
        ("s", pa.struct([("a", pa.float64()), ("b", pa.list_(pa.string()))])),
        ("t", pa.timestamp("us", "UTC")),
        ("n", pa.null()),
    ]
)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.integers(0, 3) | st.none(),
            "s": st.none()
            | st.fixed_dictionaries(
                {
                    "a": st.sampled_from([0.0, float("nan"), None]),
                    "b": st.lists(st.sampled_from(["x", None]), max_size=2) | st.none(),
                }
            ),
            "t": st.none() | st.integers(0, 1),
        }
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=examples(60))
@given(old=ROWS, new=ROWS, by=st.sampled_from([[], ["k"]]), memory=st.sampled_from([0, 1 << 20]))
def test_matching_is_the_difference_of_bags(
    old: list[dict[str, Any]], new: list[dict[str, Any]], by: list[str], memory: int
) -> None:
    found = [
        row
        for batch in match_rows(
            pa.Table.from_pylist(old, NESTED).to_batches(max_chunksize=3),
            pa.Table.from_pylist(new, NESTED).to_batches(max_chunksize=3),
            schema=NESTED,
            keys=by,
            memory_bytes=memory,
        )
        for row in batch.to_pylist()
    ]
    gone = [repr(row) for row in pa.Table.from_pylist(old, NESTED).to_pylist()]
    come = []
    for row in pa.Table.from_pylist(new, NESTED).to_pylist():
        if repr(row) in gone:
            gone.remove(repr(row))
        else:
            come.append(repr(row))
    kinds = [row.pop("_change_type") for row in found]
    before = [
        repr(row)
        for row, kind in zip(found, kinds, strict=True)
        if kind in {"delete", "update_preimage"}
    ]
    after = [
        repr(row)
        for row, kind in zip(found, kinds, strict=True)
        if kind in {"insert", "update_postimage"}
    ]
    assert sorted(before) == sorted(gone)
    assert sorted(after) == sorted(come)
    if not by:
        assert not {"update_preimage", "update_postimage"} & set(kinds)
        return
    left = {row["k"] for row, kind in zip(found, kinds, strict=True) if kind == "delete"}
    right = {row["k"] for row, kind in zip(found, kinds, strict=True) if kind == "insert"}
    assert not left & right
    pairs = [row["k"] for row, kind in zip(found, kinds, strict=True) if kind.startswith("update_")]
    assert pairs[::2] == pairs[1::2]


# Names that were ours once, or that one might take for such a column.
NAMES = ["_file", "bucket", "key", "position", "number", "canonical", "_metadata.partition"]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_compared_on_disk_whatever_a_column_is_called(name: str) -> None:
    old, new = (pa.table({name: values}) for values in (["a", "b"], ["b", "c"]))
    found = pa.Table.from_batches(
        match_rows(
            old.to_batches(), new.to_batches(), schema=old.schema, keys=[name], memory_bytes=0
        )
    )
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [
        ("a", "delete"),
        ("c", "insert"),
    ]
