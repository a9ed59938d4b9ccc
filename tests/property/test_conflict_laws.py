"""Laws of conflicts: a pruned answer never lets a conflict pass, and blind appends never lose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog._util.json import dumps
from deltalog.errors import CommitConflictError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.protocol.actions.arrow import adds_from_json
from deltalog.transaction import commit
from deltalog.transaction.conflicts import may_match
from tests.support.logs import Json, add, remove
from tests.support.logs import commit as write_commit
from tests.support.transactions import condition, new_file, pending, table

ROWS = st.lists(
    st.tuples(st.none() | st.integers(-3, 3), st.none() | st.sampled_from("xyz")),
    min_size=1,
    max_size=4,
)
CONDITIONS = st.sampled_from(
    ["id = 1", "id < 0", "id is null", "p = 'x'", "p <> 'y'", "p is null", "p = 'x' and id > 1",
     "p = 'x' or id > 1", "not (id = 2)", "id in (1, 3) and p in ('y', 'z')"]
)  # fmt: skip
SNAPSHOT = load_snapshot(utc_context(table(partitionColumns=["p"])))


def _file(rows: list[tuple[int | None, str | None]], has_stats: bool) -> tuple[Json, list[Any]]:
    """A file with the rows of one partition, and these rows."""
    partition = rows[0][1]
    ids = [row[0] for row in rows]
    known = [value for value in ids if value is not None]
    stats: dict[str, Any] = {"numRecords": len(ids), "nullCount": {"id": len(ids) - len(known)}}
    if known:
        stats |= {"minValues": {"id": min(known)}, "maxValues": {"id": max(known)}}
    text = dumps(stats).decode() if has_stats else None
    return add("f", partitionValues={"p": partition}, stats=text), [(i, partition) for i in ids]


def _holds(text: str, row: tuple[int | None, str | None]) -> bool:
    import pyarrow as pa

    from deltalog.expressions import filter_mask

    data = pa.table({"id": pa.array([row[0]], pa.int64()), "p": pa.array([row[1]], pa.string())})
    return filter_mask(condition(text, SNAPSHOT), data).to_pylist() == [True]


@pytest.mark.protocol("D-35")
@given(rows=ROWS, has_stats=st.booleans(), text=CONDITIONS)
def test_a_file_with_a_row_that_matches_is_never_passed_over(
    rows: list[tuple[int | None, str | None]], has_stats: bool, text: str
) -> None:
    action, held = _file(rows, has_stats)
    files = adds_from_json([action["add"]])
    [found] = may_match(condition(text, SNAPSHOT), files, SNAPSHOT.configuration, "UTC").to_pylist()
    assert found or not any(_holds(text, row) for row in held)


WINNERS = st.lists(
    st.lists(
        st.sampled_from(["a", "b", "c"]).flatmap(
            lambda name: st.sampled_from([add(name), remove(name), add(f"new-{name}")])
        ),
        max_size=3,
        unique_by=str,
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.protocol("D-36", "OV-05")
@given(winners=WINNERS, level=st.sampled_from(["Serializable", "WriteSerializable"]))
def test_no_file_can_stand_in_a_blind_append_s_way(winners: list[list[Json]], level: str) -> None:
    store = table([add("a"), add("b")], configuration={"delta.isolationLevel": level})
    tx = pending(store, new_file("mine"))
    for version, actions in enumerate(winners, 2):
        write_commit(store, version, {"commitInfo": {"operation": "ANY"}}, *actions)
    assert commit(tx).version == 2 + len(winners)


@pytest.mark.protocol("D-35", "D-36")
@given(winners=WINNERS)
def test_what_a_weaker_level_refuses_a_stronger_one_refuses_too(winners: list[list[Json]]) -> None:
    refused = []
    for level in ("SnapshotIsolation", "WriteSerializable", "Serializable"):
        store = table([add("a"), add("b")], configuration={"delta.isolationLevel": level})
        tx = pending(store, new_file("mine"), operation="DELETE")
        assert tx.snapshot is not None
        tx.record_read(condition("id = 1", tx.snapshot), tx.snapshot.files().slice(0, 1))
        tx.remove_files(tx.snapshot.files().slice(0, 1), data_change=True)
        for version, actions in enumerate(winners, 2):
            info = {"commitInfo": {"operation": "ANY", "isBlindAppend": True}}
            write_commit(store, version, info, *actions)
        try:
            commit(tx)
        except CommitConflictError:
            refused.append(True)
        else:
            refused.append(False)
    assert refused == sorted(refused)
