"""The property of a part of a table: no answer depends on what the part does not show.

Two tables have the same shown rows in the same files and versions. What is hidden differs at
random: rows that the filter or a deletion vector hides, files and commits of nothing else, values
of columns that are not shared. Both give byte-equal answers to random requests: lines, tokens,
headers, errors, and files.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.protocol.actions.codec import deletion_vector_to_json
from deltalog.protocol.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.sharing.server import endpoints
from tests.support.asgi import Reply
from tests.support.sharing import Caller, commit_at, path_of, sharing

T = "s.d.t"
NOW_MS = 1_800_000_000_000
# Pairs of requests; 10,000 take some minutes.
PAIRS = int(os.environ.get("DELTALOG_HIDDEN_PAIRS", "400"))
REQUESTS = 25
FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.int64()),
    pa.field("v", pa.string()),
    pa.field("secret", pa.string()),
    pa.field("h", pa.int32()),
]
SCHEMA = pa.schema(FIELDS)
FILTERED = {"rowFilter": "h = 0", "columns": ["id", "v", "p"]}
COLUMNS = {"columns": ["id", "v", "p", "h"]}


class History:
    """What is shown: versions with files that are added, removed, and lose rows."""

    def __init__(self, randomness: random.Random) -> None:
        self.versions: list[dict[str, Any]] = []
        live: dict[str, list[int]] = {}
        following = 0
        for number in range(randomness.randint(3, 5)):
            removed = [name for name in live if randomness.random() < 0.15]
            for name in removed:
                del live[name]
            shrunk = {}
            for name, rows in live.items():
                if len(rows) > 1 and randomness.random() < 0.3:
                    gone = randomness.sample(rows, randomness.randint(1, len(rows) - 1))
                    live[name] = [row for row in rows if row not in gone]
                    shrunk[name] = gone
            added = {}
            for place in range(randomness.randint(1 if number == 0 else 0, 3)):
                rows = list(range(following, following + randomness.randint(1, 5)))
                following += len(rows)
                added[f"part-{number}-{place}.parquet"] = rows
            live.update({name: list(rows) for name, rows in added.items()})
            self.versions.append({"removed": removed, "shrunk": shrunk, "added": added})


class Hiding:
    """Writes a history as a table, with hidden rows of its own."""

    def __init__(self, randomness: random.Random, home: Path, *, is_filtered: bool) -> None:
        self._random = randomness
        self._home = home
        self._is_filtered = is_filtered
        self._files: dict[str, list[tuple[int | None, int]]] = {}  # shown id or None, and h
        self._deleted: dict[str, set[int]] = {}

    def write(self, history: History) -> None:
        (self._home / "_delta_log").mkdir(parents=True)
        for version, change in enumerate(history.versions):
            actions = self._head() if version == 0 else []
            actions += [self._remove(name) for name in change["removed"]]
            touched = set(change["shrunk"])
            for name in self._files:
                is_live = name in self._deleted and name not in touched
                if is_live and self._random.random() < 0.3:
                    touched.add(name)  # a hidden row goes, and nothing shown
            for name in sorted(touched):
                actions += self._shrink(name, change["shrunk"].get(name, []))
            for name, rows in change["added"].items():
                actions.append(self._add(name, rows))
            for place in range(self._random.choice([0, 0, 1, 3])):
                actions.append(self._add(f"hidden-{version}-{place}.parquet", []))
            self._random.shuffle(actions)
            actions.append({"commitInfo": {"timestamp": 1_000 + version, "operation": "WRITE"}})
            text = "".join(json.dumps(action) + "\n" for action in actions)
            (self._home / "_delta_log" / f"{version:020d}.json").write_text(text)
        moments = [f"2022-01-01T00:00:{10 + one:02d}Z" for one in range(len(history.versions))]
        commit_at(self._home, *moments)

    def _head(self) -> list[dict[str, Any]]:
        features = ["deletionVectors"]
        fields = [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (
                ("id", "long"),
                ("v", "string"),
                ("secret", "string"),
                ("h", "integer"),
                ("p", "string"),
            )
        ]
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features}
        configuration = {
            "delta.enableDeletionVectors": "true",
            "delta.enableChangeDataFeed": "true",
        }
        metadata = {
            "id": "of-the-table",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": ["p"],
            "configuration": configuration,
        }
        writer = {"writerFeatures": [*features, "changeDataFeed"]}
        return [{"protocol": {**protocol, **writer}}, {"metaData": metadata}]

    def _add(self, name: str, shown: list[int]) -> dict[str, Any]:
        rows: list[tuple[int | None, int]] = [(row, 0) for row in shown]
        deleted_later = set()
        for _ in range(self._random.randint(0 if shown else 1, 6)):
            place = self._random.randint(0, len(rows))
            is_filtered = self._is_filtered and self._random.random() < 0.7
            rows.insert(place, (None, 1 if is_filtered else 2))
        # 2 marks what a deletion vector hides from the beginning.
        deleted_later = {number for number, row in enumerate(rows) if row[1] == 2}
        self._files[name], self._deleted[name] = rows, deleted_later
        self._write_file(name)
        return {"add": self._entry(name)}

    def _write_file(self, name: str) -> None:
        columns: dict[str, list[Any]] = {"id": [], "v": [], "secret": [], "h": []}
        for shown, mark in self._files[name]:
            columns["id"].append(self._random.randint(-9, 99) if shown is None else shown)
            columns["v"].append(
                "x" * self._random.randint(0, 30) if shown is None else f"value {shown}"
            )
            columns["secret"].append(str(self._random.random()))
            columns["h"].append(1 if mark == 1 else 0)
        table = pa.table(columns, SCHEMA)
        pq.write_table(table, self._home / name, row_group_size=self._random.randint(1, 5))

    def _entry(self, name: str) -> dict[str, Any]:
        path = self._home / name
        ids: list[int] = pq.read_table(path).column("id").to_numpy().tolist()
        bounds = {"minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}}
        entry: dict[str, Any] = {
            "path": name,
            "partitionValues": {"p": self._partition(name)},
            "size": path.stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps({"numRecords": len(ids), **bounds, "nullCount": {"id": 0}}),
        }
        if self._deleted[name]:
            entry["deletionVector"] = deletion_vector_to_json(
                inline_descriptor(DeletionBitmap(sorted(self._deleted[name])))
            )
        return entry

    def _partition(self, name: str) -> str:
        return "abc"[sum(name.encode()) % 3]

    def _remove(self, name: str) -> dict[str, Any]:
        entry = self._entry(name)
        del self._deleted[name], entry["stats"]
        return {
            "remove": {**entry, "deletionTimestamp": 1, "extendedFileMetadata": True},
        }

    def _shrink(self, name: str, shown: list[int]) -> list[dict[str, Any]]:
        before = self._entry(name)
        hidden = [
            number
            for number, row in enumerate(self._files[name])
            if row[0] is None and self._random.random() < 0.5
        ]
        places = [number for number, row in enumerate(self._files[name]) if row[0] in shown]
        more = self._deleted[name] | set(hidden) | set(places)
        if more == self._deleted[name]:
            return []
        self._deleted[name] = more
        del before["stats"]
        removed = {**before, "deletionTimestamp": 1, "extendedFileMetadata": True}
        return [{"remove": removed}, {"add": self._entry(name)}]


def _request(randomness: random.Random, last: int) -> tuple[str, str, Any, str]:
    header = randomness.choice(["", "responseformat=delta", "responseformat=parquet"])
    if randomness.random() < 0.5:
        header += ";includeendstreamaction=true"
    start, end = sorted((randomness.randint(0, last), randomness.randint(0, last)))
    body = _body(randomness)
    kind = randomness.choice(["query", "query", "query", "stream", "changes", "metadata"])
    if kind == "query":
        if randomness.random() < 0.4:
            body["version"] = randomness.randint(0, last + 1)
        elif randomness.random() < 0.3:
            body["includeRefreshToken"] = True
        return "POST", "query", body, header
    if kind == "stream":
        return "POST", "query", body | {"startingVersion": start, "endingVersion": end}, header
    if kind == "changes":
        asked = f"changes?startingVersion={start}&endingVersion={end}"
        more = f"&maxFiles={body['maxFiles']}" if "maxFiles" in body else ""
        return "GET", asked + more, None, header
    return "GET", randomness.choice(["metadata", "version"]), None, header


def _body(randomness: random.Random) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if randomness.random() < 0.6:
        column = randomness.choice(["id", "v", "p", "h", "secret"])
        value = randomness.choice(["'b'", "'x'", str(randomness.randint(-12, 102))])
        operator = randomness.choice(["=", "<", ">", "<=", ">=", "<>"])
        body["predicateHints"] = [f"{column} {operator} {value}"]
    if randomness.random() < 0.5:
        body["maxFiles"] = randomness.randint(1, 3)
    if randomness.random() < 0.2:
        body["limitHint"] = randomness.randint(0, 9)
    return body


def _headers(reply: Reply) -> dict[str, str]:
    return {
        name: value
        for name, value in reply.headers.items()
        if name not in {"x-request-id", "etag"}  # of the moment
    }


def _answers(caller: Caller, request: tuple[str, str, Any, str]) -> list[tuple[Any, ...]]:
    """The answers to a request, of all of its pages, and the files that they name."""
    method, target, body, header = request
    headers = {"delta-sharing-capabilities": header} if header else {}
    found: list[tuple[Any, ...]] = []
    token = None
    for _ in range(40):
        sent, place = body, target
        if token is not None and method == "POST":
            sent = {**body, "pageToken": token}
        elif token is not None:
            place = f"{target}&pageToken={token}"
        reply = caller.ask(method, f"{path_of(T)}/{place}", sent, headers)
        found.append((reply.status, _headers(reply), reply.body))
        if reply.status != 200 or target == "version":
            return found
        lines = reply.lines()
        for line in lines:
            for values in line.values():
                action = next(iter(values.get("deltaSingleAction", {"": {}}).values()))
                url = values.get("url") or action.get("path")
                if url is not None:
                    file = caller.download(url)
                    found.append((file.status, _headers(file), file.body))
        ends = [line["endStreamAction"] for line in lines if "endStreamAction" in line]
        token = ends[0].get("nextPageToken") if ends else None
        if token is None:
            return found
    raise AssertionError("the pages have no end")


@pytest.mark.slow("every request, with and without hidden rows")
@pytest.mark.protocol("SHARE-SEC-08", "SHARE-QT-07")
@pytest.mark.parametrize("settings", [FILTERED, COLUMNS], ids=["filtered", "columns"])
@pytest.mark.parametrize("seed", range(max(1, PAIRS // REQUESTS // 2)))
def test_no_answer_depends_on_hidden_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], seed: int
) -> None:
    monkeypatch.setattr(endpoints, "now_ms", lambda: NOW_MS)
    randomness = random.Random(f"{seed} {sorted(settings)}")
    history = History(randomness)
    last = len(history.versions) - 1
    requests = [_request(randomness, last) for _ in range(REQUESTS)]
    both = []
    for side in range(2):
        home = tmp_path / "t"  # names of files are made with the table's place
        hiding = random.Random(f"{seed} {side}")
        Hiding(hiding, home, is_filtered="rowFilter" in settings).write(history)
        caller = sharing({T: {"location": str(home), "historyShared": True, **settings}})
        both.append([_answers(caller, request) for request in requests])
        shutil.rmtree(home)
    for request, one, other in zip(requests, *both, strict=True):
        assert one == other, request
    assert any(len(answers) > 1 for answers in both[0])  # files were shown
