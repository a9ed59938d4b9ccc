"""What pictures show: counted exactly, and put together where there is much of it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable
from deltalog._util.json import dumps
from deltalog.errors import InvalidInputError
from deltalog.table.inspect.plot import plots as measures
from tests.support import logs
from tests.support.raw_tables import column, schema_string

HOUR = 3_600_000


def _history(*named: tuple[int, Any]) -> list[dict[str, Any]]:
    return [{"timestamp": time, "operation": operation} for time, operation in named]


def _values(found: pa.Table, name: str) -> list[Any]:
    return found[name].to_pylist()


def test_commits_are_counted_by_time_and_operation() -> None:
    found = measures.commits(
        _history((0, "WRITE"), (1, "WRITE"), (HOUR * 60, "MERGE"), (HOUR * 60, None), (5, ["x"]))
    ).to_pylist()
    assert [(row["operation"], row["commits"]) for row in found] == [
        ("WRITE", 2),
        ("unknown", 1),
        ("MERGE", 1),
        ("unknown", 1),
    ]
    assert found[0]["begin_ms"] == 0
    assert found[2]["begin_ms"] <= HOUR * 60
    assert measures.commits([]).num_rows == 0


def test_commits_of_one_second_are_counted_together() -> None:
    found = measures.commits(_history((1500, "WRITE"), (1999, "WRITE"), (2600, "WRITE")))
    assert _values(found, "commits") == [2, 1]
    assert _values(found, "begin_ms") == [1500, 2500]


def test_many_commits_and_operations_are_put_together() -> None:
    history = _history(*((number * HOUR, f"OP{number % 50}") for number in range(10_000)))
    found = measures.commits([*history, *_history(*[(0, "WRITE")] * 500)])
    assert found.num_rows <= 60 * 8
    assert sum(_values(found, "commits")) == 10_500
    names = set(found["operation"].to_pylist())
    assert {"WRITE", "others"} <= names
    assert len(names) == 8
    assert len(set(found["begin_ms"].to_pylist())) <= 60


def _table(adds: list[logs.Json], **members: Any) -> DeltaTable:
    store = logs.DictStore()
    logs.commit(store, 0, logs.PROTOCOL, logs.metadata(**members), *adds)
    return DeltaTable(store)


def test_files_are_counted_by_size() -> None:
    sizes = [0, 1, 1000, 1023, 1024, 1025, 3 << 20, -5]
    table = _table([logs.add(f"f{place}", size=size) for place, size in enumerate(sizes)])
    found = measures.file_sizes(table.snapshot).to_pylist()
    for row in found:
        inside = [
            size
            for size in sizes
            if size >= 0 and max(row["from_bytes"], 0) <= max(size, 1) < row["to_bytes"]
        ]
        assert (row["files"], row["bytes"]) == (len(inside), sum(inside))
    assert sum(row["files"] for row in found) == 7
    assert all(one["to_bytes"] <= two["from_bytes"] for one, two in pairwise(found))
    assert measures.file_sizes(_table([]).snapshot).num_rows == 0


def test_partitions_are_added_up_and_the_small_ones_put_together() -> None:
    adds = [
        logs.add(f"f{number}", size=10 * number, partitionValues={"p": f"v{number % 5}"})
        for number in range(50)
    ]
    adds.append(logs.add("none", size=1, partitionValues={"p": None}))
    table = _table(adds, partitionColumns=["p"])
    found = measures.partition_sizes(table.snapshot, 3).to_pylist()
    assert [row["partition"] for row in found] == ["p=v4", "p=v3", "p=v2", "3 others"]
    assert [row["bytes"] for row in found[:3]] == [
        sum(10 * number for number in range(50) if number % 5 == rest) for rest in (4, 3, 2)
    ]
    assert sum(row["bytes"] for row in found) == sum(10 * number for number in range(50)) + 1
    assert sum(row["files"] for row in found) == 51
    whole = measures.partition_sizes(table.snapshot, 100).to_pylist()
    assert whole[-1] == {"partition": "p=NULL", "files": 1, "bytes": 1}
    with pytest.raises(InvalidInputError, match="no partition columns"):
        measures.partition_sizes(_table([]).snapshot, 3)


def _ranges(*ranges: tuple[Any, Any], kind: str = "long") -> DeltaTable:
    adds = [
        logs.add(f"f{place}", stats=dumps(_stats(low, high)).decode())
        for place, (low, high) in enumerate(ranges)
    ]
    return _table(adds, schemaString=schema_string([column("v", kind)]))


def _stats(low: Any, high: Any) -> dict[str, Any]:
    return {"numRecords": 1, "minValues": {"v": low}, "maxValues": {"v": high}}


def _depths(table: DeltaTable) -> list[float]:
    return _values(measures.clustering(table.snapshot, ["v"]), "files")


def test_overlap_is_the_number_of_files_that_hold_a_value() -> None:
    # at 1, 5, 6, 7, 9: one file; then two, three at 6, …
    assert _depths(_ranges((1, 6), (5, 9), (6, 7))) == [1, 2, 3, 2, 1]
    assert _depths(_ranges((1, 2), (3, 4), (5, 6))) == [1] * 6
    assert _depths(_ranges((1, 1), (1, 1))) == [2]
    assert _depths(_ranges(("a", "c"), ("b", "d"), kind="string")) == [1, 2, 2, 1]
    assert _depths(_ranges((1, 2), (None, None))) == [2, 2]  # a file that may hold anything
    assert _depths(_ranges((None, None))) == []


def test_overlap_is_put_together_and_bounded() -> None:
    table = _ranges(*((number, number + 10) for number in range(1000)))
    found = measures.clustering(table.snapshot, None)
    assert 50 <= found.num_rows <= 100
    assert max(_values(found, "most_files")) == 11
    positions = _values(found, "position")
    assert positions[0] == 0
    assert positions == sorted(positions)
    assert positions[-1] < 1


def test_overlap_of_partition_columns_is_exact() -> None:
    adds = [logs.add(f"f{number}", partitionValues={"p": str(number % 3)}) for number in range(30)]
    table = _table(adds, partitionColumns=["p"])
    assert measures.clustering(table.snapshot, ["p"])["files"].to_pylist() == [10, 10, 10]


@pytest.mark.parametrize(("name", "found"), [("w", "w"), ("flag", "boolean")])
def test_columns_without_an_order_are_refused(name: str, found: str) -> None:
    table = _table([], schemaString=schema_string([column("flag", "boolean")]))
    with pytest.raises(InvalidInputError, match=found):
        measures.clustering(table.snapshot, [name])


def test_the_log_is_added_up_by_version_and_kind() -> None:
    store = logs.DictStore()
    logs.commit(store, 0, logs.PROTOCOL, logs.metadata())
    for version in range(1, 450):
        logs.commit(store, version, logs.add(f"f{version}"))
    table = DeltaTable(store)
    found = measures.log_growth(table.snapshot)
    assert found.num_rows <= 4 * 200
    commits = [row for row in found.to_pylist() if row["kind"] == "commit"]
    assert sum(row["files"] for row in commits) == 450
    assert sum(row["bytes"] for row in commits) == sum(map(len, store.files.values()))
    assert {row["files"] for row in commits} == {3}
    table.create_checkpoint()
    kinds = measures.log_growth(table.snapshot)["kind"].to_pylist()
    assert kinds.count("checkpoint") == 1


def test_a_scan_is_what_explain_says() -> None:
    adds = [
        logs.add(
            f"f{number}",
            size=100,
            partitionValues={"p": "a" if number < 4 else "b"},
            stats=f'{{"numRecords":1,"minValues":{{"id":{number}}},"maxValues":{{"id":{number}}}}}',
        )
        for number in range(10)
    ]
    table = _table(adds, partitionColumns=["p"])
    scan = table.scan(predicate="p = 'b' AND id < 6")
    found = measures.scan_outcome(scan.pruned).to_pylist()
    facts = scan.explain().facts
    assert [row["amount"] for row in found] == [
        facts["files_to_read"],
        facts["pruned_by_partition_values"],
        facts["pruned_by_statistics"],
        facts["bytes_to_read"],
        1000 - facts["bytes_to_read"],
    ]
    assert [row["amount"] for row in found[:3]] == [2, 4, 4]
