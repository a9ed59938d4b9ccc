"""Laws: pruning never loses a row, and the change feed is the difference of two versions.

Files differ in their schema, their row groups, their deletion vectors and in what the log says of
them, so that partition values, statistics and footers prune in every combination.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.data.scan import open_changes, plan_scan
from deltalog.expressions import Expression, col, filter_mask, lit, resolve_predicate
from deltalog.expressions.nodes import COMPARISONS, Comparison, Not
from deltalog.protocol.stats.collect import StatsCollector, encode_stats
from deltalog.schema import Field, StructType, to_arrow_schema
from tests.support import logs
from tests.support.examples import examples
from tests.support.raw_tables import DataTable, rows_of

KINDS = {
    "i": "long",
    "f": "double",
    "s": "string",
    "d": "date",
    "t": "timestamp",
    "c": "decimal(6,2)",
    "p": "long",
}
DATA = {name: kind for name, kind in KINDS.items() if name != "p"}
DAY, EPOCH = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-2, 2),
    "f": st.sampled_from([-1.0, -0.0, 0.0, 1.0, float("nan"), float("inf")]),
    "s": st.text("ab\uffff😀", max_size=3) | st.just("b" * 40),
    "d": st.integers(0, 3).map(lambda days: DAY + dt.timedelta(days)),
    "t": st.integers(-2, 2).map(lambda micros: EPOCH + dt.timedelta(microseconds=600 * micros)),
    "c": st.integers(-3, 3).map(lambda cents: Decimal(cents).scaleb(-2)),
    "p": st.integers(0, 2),
}
COLUMNS = StructType([Field(name, kind) for name, kind in DATA.items()])
SCHEMA = to_arrow_schema(COLUMNS)


def comparisons(name: str) -> st.SearchStrategy[Expression]:
    compared = st.builds(
        lambda symbol, value: Comparison(symbol, col(name), lit(value)),
        st.sampled_from(sorted(COMPARISONS)),
        VALUES[name],
    )
    return compared | st.sampled_from([col(name).is_null(), col(name).is_not_null()])


predicates = st.recursive(
    st.sampled_from(sorted(KINDS)).flatmap(comparisons),
    lambda inner: (
        st.builds(lambda left, right: left & right, inner, inner)
        | st.builds(lambda left, right: left | right, inner, inner)
        | inner.map(Not)
    ),
    max_leaves=4,
)


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """A file as keyword arguments of `DataTable.add`, and its deleted rows."""
    num_rows = draw(st.integers(1, 6))
    columns = {
        name: draw(st.lists(st.none() | VALUES[name], min_size=num_rows, max_size=num_rows))
        for name in DATA
    }
    table = pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in DATA})
    shown = table.select(sorted(draw(st.sets(st.sampled_from(sorted(DATA)), min_size=1))))
    collector = StatsCollector(StructType([f for f in COLUMNS if f.name in shown.column_names]))
    collector.update(shown)
    stats = json.loads(encode_stats(collector.finish()))
    kept = draw(st.sets(st.sampled_from(["minValues", "maxValues", "nullCount", "numRecords"])))
    return {
        "data": shown,
        "partitionValues": {"p": draw(st.none() | st.sampled_from("012"))},
        "stats": {name: value for name, value in stats.items() if name in kept},
        "options": {"row_group_size": draw(st.integers(1, 6))},
        "deleted": draw(st.sets(st.integers(0, num_rows - 1))),
    }


def table_of(parts: list[dict[str, Any]]) -> DataTable:
    table = DataTable(list(KINDS.items()), partition_by=["p"], features=["deletionVectors"])
    for part in parts:
        deleted = part["deleted"]
        vector = table.vector(*deleted) if deleted else None
        rest = {name: value for name, value in part.items() if name != "deleted"}
        table.commit(table.add(**rest, deletionVector=vector))
    return table


def key(row: Any) -> str:
    return repr(row)  # NaN equals nothing, and NULL has no order


@pytest.mark.protocol("DV-19")
@given(st.lists(files(), min_size=1, max_size=4), predicates)
@settings(max_examples=examples(100))
def test_pruning_never_loses_a_row(parts: list[dict[str, Any]], predicate: Expression) -> None:
    snapshot = table_of(parts).snapshot()
    names = [*KINDS, "_metadata.file_name", "_metadata.row_index"]
    whole = plan_scan(snapshot, columns=names).to_table()
    resolved = resolve_predicate(predicate, snapshot.configuration.schema)
    expected = whole.filter(filter_mask(resolved, whole))
    scan = plan_scan(snapshot, columns=names, predicate=predicate)
    assert sorted(map(key, scan.to_table().to_pylist())) == sorted(map(key, expected.to_pylist()))
    assert scan.count() == expected.num_rows


@given(st.lists(files(), min_size=1, max_size=4), st.integers(0, 8))
@settings(max_examples=examples(50))
def test_a_limit_gives_so_many_rows_of_the_table(parts: list[dict[str, Any]], limit: int) -> None:
    snapshot = table_of(parts).snapshot()
    rows = plan_scan(snapshot).to_table().to_pylist()
    limited = plan_scan(snapshot, limit=limit)
    assert [*map(key, limited.to_table().to_pylist())] == [*map(key, rows)][:limit]
    assert limited.count() == min(limit, len(rows))


steps = st.tuples(
    st.sampled_from(["add", "remove", "delete", "restore", "rearrange"]),
    st.integers(0, 3),
    st.sets(st.integers(0, 3)),
)


def commit_of(table: DataTable, live: dict[str, dict[str, Any]], step: Any) -> list[dict[str, Any]]:
    """The lines of one step on the `live` files, which it keeps."""
    kind, number, deleted = step
    if kind == "add" or not live:
        first = 10 * len(table.store.files)
        add = table.add({"id": [first + row for row in range(4)]})
        live[add["add"]["path"]] = add["add"]
        return [add]
    path = sorted(live)[number % len(live)]
    before = live.pop(path)
    vector = before.get("deletionVector")
    changes = kind != "rearrange"
    lines = [logs.remove(path, partitionValues={}, deletionVector=vector, dataChange=changes)]
    if kind == "rearrange":  # the same rows in a file of their own
        one = DataTable([("id", "long")], features=["deletionVectors"], store=logs.DictStore())
        one.store.files |= {
            name: data for name, data in table.store.files.items() if "_log" not in name
        }
        one.commit({"add": before})
        after = table.add(pa.table({"id": pa.array(one.rows(), pa.int64())}), dataChange=changes)[
            "add"
        ]
    elif kind == "remove":
        return lines
    else:
        after = {**before, "dataChange": True}
        after.pop("deletionVector", None)
        if kind == "delete":
            rows = pq.read_metadata(pa.BufferReader(table.store.files[path])).num_rows
            after["deletionVector"] = table.vector(*(row for row in deleted if row < rows))
        elif vector is None:  # nothing to restore: only its facts are told again
            live[path] = before
            return [{"add": {**before, "dataChange": False}}]
    live[after["path"]] = after
    return [*lines, {"add": after}]


@pytest.mark.slow("a long property")
@pytest.mark.protocol("CDC-04", "D-42")
@given(st.lists(steps, min_size=1, max_size=8), st.data())
@settings(max_examples=examples(100))
def test_changes_lead_from_one_version_to_another(commits: list[Any], data: st.DataObject) -> None:
    table = DataTable(
        [("id", "long")],
        features=["deletionVectors", "changeDataFeed"],
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    live: dict[str, dict[str, Any]] = {}
    for step in commits:
        table.commit(*commit_of(table, live, step))
    start = data.draw(st.integers(1, len(commits)))
    end = data.draw(st.integers(start, len(commits)))
    rows = Counter(rows_of(plan_scan(table.snapshot(start - 1)).to_table()))
    found = open_changes(table.snapshot(), start=start, end=end, columns=["id", "_change_type"])
    for row, kind in rows_of(found.to_table()):
        rows[row] += {"insert": 1, "delete": -1}[kind]
    assert +rows == Counter(rows_of(plan_scan(table.snapshot(end)).to_table()))
    assert min(rows.values(), default=0) >= 0
