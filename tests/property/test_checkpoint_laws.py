"""The law of checkpoints: what is read from one is the state that it was written from.

Any state, any layout, whatever the properties say about statistics, and however much of the
checkpoint before it was in memory.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.log.checkpoints.rows import stats_leaves
from deltalog.log.checkpoints.writer import CheckpointLayout
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.actions.arrow import FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.protocol.stats.schema import schema_of_leaves
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.support import logs
from tests.support.examples import examples
from tests.support.logs import DictStore, Json
from tests.support.raw_tables import mapped, struct_of

pytestmark = pytest.mark.slow("tables are written anew for each example")

NOW = 1_800_000_000_000
DAY = 86_400_000

TYPES = {
    "k": "long",
    "d": "date",
    "t": "timestamp",
    "n": "decimal(5,2)",
    "s": "string",
    "f": "double",
    "b": "boolean",
}
TEXTS: dict[str, list[str | None]] = {
    "k": ["1", "-9223372036854775808", None],
    "d": ["2024-02-29", "0001-01-01", None],
    "t": ["2024-02-29 01:02:03.123456", "1969-12-31T23:59:59.999999Z", None],
    "n": ["-1.50", "999.99", None],
    "s": ["a b", "é%/=\\'\"", "", None],
    "f": ["1.5", "NaN", "-Infinity", None],
    "b": ["true", "false", None],
}
VALUES: dict[str, list[Any]] = {
    "k": [0, -(2**63), 2**63 - 1],
    "d": ["2024-02-29"],
    "t": ["2024-02-29T01:02:03.123Z"],
    "n": [1.5, -999.99],
    "s": ["", 'a"b\\c\n', "é€\U0001f600"],
    "f": [1.5, "NaN", "Infinity", 1e300],
    "b": [True],
}
PATHS = ["a", "b%20c", "p=1/x", "p=%253A/y", "é", "file:/elsewhere/z", "q" * 300]

texts = st.sampled_from(["x", "", 'é\n"', "v" * 40])
numbers = st.sampled_from([0, 1, 2**40, 2**63 - 1])
counts = st.sampled_from([1, 2**40, 2**63 - 1])  # a deletion vector marks one row


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Json], dict[str, str], list[str]]:
    """Protocol and metadata lines; the physical name of each column; the partition columns."""
    mapping = draw(st.booleans())
    partitions = draw(st.lists(st.sampled_from(sorted(TYPES)), unique=True, max_size=3))
    names = {name: f"col-{name}" if mapping else name for name in TYPES}
    fields: list[Any] = [
        mapped(name, kind, number, names[name]) if mapping else (name, kind)
        for number, (name, kind) in enumerate(TYPES.items(), 1)
    ]
    nested = struct_of(("x", "integer"), ("y", "string"))
    fields.append(mapped("st", nested, 90, "col-st") if mapping else ("st", nested))
    if mapping:
        nested["fields"] = [mapped("x", "integer", 91, "x"), mapped("y", "string", 92, "y")]
    configuration = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "delta.checkpoint.writeStatsAsJson": st.sampled_from(["true", "false"]),
                "delta.checkpoint.writeStatsAsStruct": st.sampled_from(["true", "false"]),
                "delta.dataSkippingNumIndexedCols": st.sampled_from(["0", "2", "-1"]),
                "delta.dataSkippingStatsColumns": st.sampled_from(["s,st.x", "gone,k"]),
                "delta.setTransactionRetentionDuration": st.just("interval 1 day"),
            },
        )
    )
    if mapping:
        configuration["delta.columnMapping.mode"] = "name"
    features = ["deletionVectors", "v2Checkpoint", "columnMapping", "domainMetadata", "rowTracking"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features[:3],
        "writerFeatures": features,
    }
    metadata = logs.metadata(
        name=draw(st.none() | texts),
        description=draw(st.none() | texts),
        schemaString=json.dumps(struct_of(*fields)),
        partitionColumns=partitions,
        configuration=configuration,
        createdTime=draw(st.none() | numbers),
    )
    return [{"protocol": protocol}, metadata], names, partitions


@st.composite
def stats(draw: st.DrawFn, names: dict[str, str], partitions: list[str]) -> str | None:
    if draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from([None, "", "{", "{}", "null"]))
    columns = [name for name in names if name not in partitions]
    values = {
        names[name]: draw(st.sampled_from(VALUES[name]))
        for name in draw(st.lists(st.sampled_from(columns), unique=True))
    }
    bounds = {name: value for name, value in values.items() if value is not True}
    found: Json = {"numRecords": draw(counts), "minValues": bounds, "maxValues": bounds}
    found["nullCount"] = dict.fromkeys(values, 1)
    if draw(st.booleans()):
        found["tightBounds"] = draw(st.booleans())
    return json.dumps(found)


@st.composite
def adds(draw: st.DrawFn, path: str, names: dict[str, str], partitions: list[str]) -> Json:
    values = {names[name]: draw(st.sampled_from(TEXTS[name])) for name in partitions}
    members: Json = {
        "partitionValues": values,
        "size": draw(numbers),
        "modificationTime": draw(numbers),
        "stats": draw(stats(names, partitions)),
        "tags": draw(st.none() | st.dictionaries(texts, st.none() | texts, max_size=2)),
        "deletionVector": draw(st.none() | st.builds(logs.vector, st.sampled_from(["v", "w"]))),
        "baseRowId": draw(st.none() | numbers),
        "defaultRowCommitVersion": draw(st.none() | numbers),
        "clusteringProvider": draw(st.sampled_from([None, "liquid"])),
    }
    return logs.add(path, **{name: value for name, value in members.items() if value is not None})


@st.composite
def removes(draw: st.DrawFn, path: str) -> Json:
    age = draw(st.sampled_from([0, 6 * DAY, 7 * DAY, 7 * DAY + 1, 30 * DAY]))
    members = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "size": numbers,
                "extendedFileMetadata": st.booleans(),
                "partitionValues": st.just({"k": "1"}),
                "deletionVector": st.builds(logs.vector, st.sampled_from(["v", "w"])),
                "baseRowId": numbers,
                "stats": st.just("{}"),
            },
        )
    )
    timed = {"deletionTimestamp": NOW - age} if draw(st.booleans()) or age else {}
    line = logs.remove(path, **members)
    del line["remove"]["deletionTimestamp"]
    line["remove"].update(timed)
    return line


@st.composite
def commits(draw: st.DrawFn, names: dict[str, str], partitions: list[str]) -> list[Json]:
    """The actions of one commit: each path and each name once."""
    found: list[Json] = []
    for path in draw(st.lists(st.sampled_from(PATHS), unique=True)):
        if draw(st.integers(0, 3)):
            found.append(draw(adds(path, names, partitions)))
        else:
            found.append(draw(removes(path)))
    for app in draw(st.lists(st.sampled_from(["app", "é"]), unique=True)):
        time_ms = draw(st.sampled_from([None, NOW, NOW - DAY, NOW - DAY - 1]))
        found.append(logs.txn(app, draw(numbers), time_ms))
    domains = draw(st.lists(st.sampled_from(["d", "delta.x"]), unique=True))
    found += [logs.domain(name, draw(texts), removed=draw(st.booleans())) for name in domains]
    return found


def rows_of(snapshot: Snapshot) -> list[Any]:
    """The live files without `dataChange`, and without statistics."""
    names = [name for name in FILE_SCHEMA.names if name not in {"dataChange", "stats"}]
    return sorted(map(repr, snapshot.files(names).to_pylist()))


def texts_of(snapshot: Snapshot) -> list[Any]:
    return sorted(map(repr, snapshot.files(["path", "deletionVector", "stats"]).to_pylist()))


def typed_of(snapshot: Snapshot) -> list[Any]:
    """Every statistic that `stats_parsed` has, beside the file's name."""
    table = snapshot.stats(schema_of_leaves(stats_leaves(snapshot.configuration)))
    keys = snapshot.files(["path", "deletionVector"]).to_pylist()
    return sorted(repr((key, row)) for key, row in zip(keys, table.to_pylist(), strict=True))


def kept_tombstones(snapshot: Snapshot) -> list[Any]:
    names = [name for name in REMOVE_SCHEMA.names if name not in {"dataChange", "stats", "tags"}]
    return sorted(
        repr(row)
        for row in snapshot.tombstones(names).to_pylist()
        if (row["deletionTimestamp"] or 0) >= NOW - 7 * DAY
    )


def kept_transactions(snapshot: Snapshot) -> dict[str, Any]:
    retained = "delta.setTransactionRetentionDuration" in snapshot.metadata.configuration
    return {
        app: txn
        for app, txn in snapshot.recorded_app_transactions.items()
        if not retained or txn.last_updated_ms is None or txn.last_updated_ms >= NOW - DAY
    }


def assert_same_state(after: Snapshot, before: Snapshot) -> None:
    assert (after.version, after.protocol) == (before.version, before.protocol)
    assert after.metadata == before.metadata
    assert rows_of(after) == rows_of(before)
    assert after.domain_metadata == before.domain_metadata
    assert after.recorded_app_transactions == kept_transactions(before)
    assert len(after.tombstones(["path"])) == len(kept_tombstones(before))
    assert kept_tombstones(after) == kept_tombstones(before)
    properties = before.configuration.properties
    if properties.checkpoint_write_stats_as_json:
        assert texts_of(after) == texts_of(before)
    if properties.checkpoint_write_stats_as_struct:
        assert typed_of(after) == typed_of(before)
    elif not properties.checkpoint_write_stats_as_json:
        assert after.files(["stats"]).column("stats").null_count == after.num_files


LAYOUTS = {
    "classic": (CheckpointLayout.CLASSIC, None),
    "V2 JSON": (CheckpointLayout.V2_JSON, None),
    "V2 JSON, small sidecars": (CheckpointLayout.V2_JSON, 2),
    "V2 Parquet": (CheckpointLayout.V2_PARQUET, None),
    "parts": (CheckpointLayout.CLASSIC, 2),
}


def without_feature(line: Json, name: str) -> Json:
    protocol = {
        key: [item for item in value if item != name] if isinstance(value, list) else value
        for key, value in line["protocol"].items()
    }
    return {"protocol": protocol}


def forget_commits(store: DictStore, version: int) -> None:
    """Only checkpoints can make the version now."""
    for number in range(version + 1):
        store.files.pop(commit_path(number), None)


@pytest.mark.protocol(
    "CKPT-01", "CKPT-02", "CKPT-03", "CKPT-12", "CKPT-13", "CKPT-15", "CKPT-16", "CKPT-19",
    "CKPT-21", "B-15", "B-25", "B-26", "B-42", "D-17", "D-20", "D-29", "DOM-04",
)  # fmt: skip
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@given(data=st.data())
@settings(max_examples=examples(20))
def test_a_checkpoint_is_the_state_that_it_was_written_from(
    layout: tuple[CheckpointLayout, int | None], data: st.DataObject
) -> None:
    first, names, partitions = data.draw(tables())
    if layout == LAYOUTS["parts"]:
        first[0] = without_feature(first[0], "v2Checkpoint")
    store = DictStore()
    before: Snapshot | None = None
    for version in range(3):  # every checkpoint but the first is made from the one before
        actions = data.draw(commits(names, partitions))
        logs.commit(store, version, *(first if version == 0 else []), *actions)
        if before is not None:
            for columns in data.draw(st.lists(st.sampled_from([["path"], ["stats", "tags"]]))):
                before.files(columns)  # in memory already
            before = before.refresh()
        else:
            before = load_snapshot(utc_context(store))
        create_checkpoint(before, layout=layout[0], part_rows=layout[1], at_ms=NOW)
        forgotten = DictStore(dict(store.files))
        forget_commits(forgotten, version)
        after = load_snapshot(utc_context(forgotten))
        assert_same_state(after, before)
        if data.draw(st.booleans()):
            before = load_snapshot(
                utc_context(store)
            )  # nothing of it in memory, and from the checkpoint
