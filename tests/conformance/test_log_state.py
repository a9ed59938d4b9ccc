"""The state of every version of other writers' tables, from the log alone."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from deltalog._util.paths import decode_path
from deltalog.errors import DeltaError
from deltalog.log import reader
from deltalog.log.context import LogTail, RatifiedCommit, utc_context
from deltalog.log.replay import vector_ids
from deltalog.log.snapshot import Snapshot, find_version, load_snapshot
from deltalog.operations.arguments import as_timestamp_ms
from deltalog.storage.fsspec_store import open_store
from tests.support.corpora import VARIABLES, Entry, load_entries

pytestmark = pytest.mark.corpus

ENTRIES: Final = [entry for variable in VARIABLES for entry in load_entries(variable)]
# What the log alone can tell; the other kinds of error come when data is read.
LOG_ERRORS: Final = frozenset(
    {
        "checkpoint-missing",
        "checkpoint-unreadable",
        "invalid-metadata",
        "invalid-protocol",
        "log-gap",
        "no-metadata",
        "no-protocol",
        "table-not-found",
    }
)


def state_of(snapshot: Snapshot) -> dict[str, Any]:
    """The members that the manifests have."""
    files = snapshot.files(["path", "deletionVector", "size"])
    names = [decode_path(str(path)) for path in files["path"].to_pylist()]
    vectors = vector_ids(files["deletionVector"]).to_pylist()
    lines = sorted(
        f"{name}#{vector}" if vector else name for name, vector in zip(names, vectors, strict=True)
    )
    protocol = snapshot.protocol
    return {
        "num_files": snapshot.num_files,
        "files_digest": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "files_size": sum(size for size in files["size"].to_pylist() if size is not None),
        "protocol": [protocol.min_reader_version, protocol.min_writer_version],
        "features": {
            "reader": sorted(protocol.reader_features or ()),
            "writer": sorted(protocol.writer_features or ()),
        },
        "partition_columns": list(snapshot.metadata.partition_columns),
        "txn": {name: txn.version for name, txn in snapshot.recorded_app_transactions.items()},
        "domain_metadata": sorted(snapshot.domain_metadata),
    }


def check(entry: Entry, version: int | None, expected: dict[str, Any]) -> str | None:
    """What is wrong, or None."""
    try:
        found = state_of(load_snapshot(utc_context(open_store(entry.path)), version=version))
    except DeltaError as error:
        kinds = set(expected.get("error", ()))
        if expected["outcome"] != "error":
            return f"{version}: {error!r}"
        # The manifest calls a version whose commits were cleaned up "data-file-missing".
        cleaned = error.code == "checkpoint-missing" and "data-file-missing" in kinds
        # It blames a hole for versions before it, too; the one of the corpus has no schema.
        before_hole = error.code == "invalid-metadata" and kinds == {"log-gap"} and version == 0
        fits = error.code in kinds or cleaned or before_hole or expected.get("optional")
        return None if fits else f"{version}: {error.code}, expected one of {kinds}"
    if expected["outcome"] == "error":
        due = set(expected.get("error", ())) <= LOG_ERRORS and not expected.get("optional")
        return f"{version}: opened, expected {expected['error']}" if due else None
    facts = {"txn": {}, "domain_metadata": [], **expected}
    for name in expected.get("txn_expired", ()):
        found["txn"].pop(name, None)  # past their retention: Delta Spark leaves them out
    if "features" in facts:
        facts["features"] = {side: sorted(names) for side, names in facts["features"].items()}
    wrong = {
        name: (value, facts[name])
        for name, value in found.items()
        if name in facts and value != facts[name]
    }
    return f"{version}: {wrong}" if wrong else None


@pytest.mark.protocol(
    "OV-03", "UPG-01", "LOG-03", "LOG-09", "CKPT-07", "CKPT-22", "CKPT-23", "B-15", "B-16", "B-17",
    "B-18", "B-26", "B-40", "D-21", "D-22", "D-23", "D-24", "D-53", "D-54", "D-60",
)  # fmt: skip
@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_every_version(entry: Entry) -> None:
    expected = entry.facts["expected"]
    latest = expected["latest"]
    if "version" in latest:
        latest = expected["versions"][str(latest["version"])]
    found = [check(entry, None, latest)]
    found += [check(entry, int(text), facts) for text, facts in expected["versions"].items()]
    assert [problem for problem in found if problem is not None] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_commits_parsed_together(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    latest = entry.expected("latest")
    assert check(entry, None, latest) is None
    monkeypatch.setattr(reader, "_TOGETHER_BYTES", 0)
    assert check(entry, None, latest) is None


@pytest.mark.protocol("D-51", "D-52", "B-22", "PROV-01")
@pytest.mark.parametrize(
    "entry", [entry for entry in ENTRIES if entry.facts["expected"].get("timestamps")], ids=str
)
def test_travel_by_time(entry: Entry) -> None:
    store = open_store(entry.path)
    latest = load_snapshot(utc_context(store))
    expected = entry.facts["expected"]
    times = {line["version"]: line["timestamp"] for line in latest.history()}
    stated = expected["in_commit_timestamps"].items()
    wrong = {
        version: (times[int(version)], time_ms)
        for version, time_ms in stated
        if int(version) in times and times[int(version)] != time_ms
    }
    assert wrong == {}
    for text, version in expected["timestamps"].items():
        moment = as_timestamp_ms(text)
        if moment > latest.commit_timestamp_ms and version == "error":
            continue  # an error for Spark; the last version for us, if the moment has passed
        if version == "error":
            with pytest.raises(DeltaError):
                find_version(utc_context(store), moment)
        else:
            assert find_version(utc_context(store), moment, latest=latest) == version


@pytest.mark.protocol("B-43", "B-56")
@pytest.mark.parametrize(
    "entry",
    [entry for entry in ENTRIES if entry.facts["expected"].get("with_staged_commits")],
    ids=str,
)
def test_ratified_commits(entry: Entry) -> None:
    store = open_store(entry.path)
    staged = sorted(store.list_from("_delta_log/_staged_commits", ""), key=lambda info: info.path)
    tail = LogTail(
        commits=tuple(RatifiedCommit(version=int(info.name[:20]), file=info) for info in staged)
    )
    for text, facts in entry.facts["expected"]["with_staged_commits"].items():
        snapshot = load_snapshot(utc_context(store).with_log_tail(tail), version=int(text))
        assert snapshot.num_files == facts["num_files"]


@pytest.mark.protocol("OV-06")
def test_a_copied_directory_is_the_same_table(reference: Path, tmp_path: Path) -> None:
    table = reference / "spark-reference" / "cp-v2-json-sidecars"
    copy = tmp_path / "copy of a table"
    shutil.copytree(table, copy)
    found = [state_of(load_snapshot(utc_context(open_store(place)))) for place in (table, copy)]
    assert found[0] == found[1]
