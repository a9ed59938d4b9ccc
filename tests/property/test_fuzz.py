"""Broken input ends in the right rows or in a `DeltaError`, and in nothing else.

A small table, one of whose files is damaged in thousands of ways. What the rows should be is told
by a model that knows nothing of deltalog: it replays the log with dictionaries.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deltalog import DeltaTable
from deltalog.errors import DeltaError
from tests.support.damaging import damage_bytes, lines_of
from tests.support.raw_tables import Action, RawTable, metadata, protocol

pytestmark = pytest.mark.slow("thousands of damaged inputs")

Rows = list[tuple[int, int | None]]
LONG = os.environ.get("DELTALOG_RULES") == "all"
INPUTS_PER_TEST = 250 if LONG else 60
FOOTERS_PER_TEST = 1000 if LONG else 150
MOST_SECONDS = 20.0
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 3, 2**31, 2**63, 2**64, 1.5, 1e300, "", "x", "%", "../x", "é", [], {}, [None]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subject:
    """A healthy table and the rows of its files."""

    table: RawTable
    files: dict[str, list[int]]
    deleted: dict[str, set[int]]
    checkpoint: Path
    vector: Path

    def read(self) -> Rows:
        """What deltalog makes of it."""
        found = DeltaTable(self.table.path).to_pyarrow_table(columns=["id", "p"])
        return sorted(zip(*(found.column(name).to_pylist() for name in ("id", "p")), strict=True))


def make_subject(path: Path, *, keep_commits: bool) -> Subject:
    """The healthy table; `keep_commits=False` leaves only the checkpoint and what follows it."""
    table = RawTable(path)
    table.create()
    files: dict[str, list[int]] = {}
    actions: list[Action] = []

    def add(start: int, p: int, vector: Action | None = None) -> Action:
        ids = list(range(start, start + 10))
        action = table.add(ids, p, vector)
        files[action["add"]["path"]] = ids
        actions.append(action)
        return action

    vector_path, vector = table.deletion_vector([0, 3, 4, 9])
    first = add(0, 1)
    table.commit(1, [first, add(10, 2)])
    table.commit(2, [add(20, 1, vector), {"txn": {"appId": "a", "version": 7}}])
    gone = {"path": first["add"]["path"], "dataChange": True, "deletionTimestamp": 1}
    table.commit(3, [{"remove": gone}, {"commitInfo": {"operation": "DELETE"}}])
    checkpoint = table.checkpoint(3, actions[1:])
    crc = {"tableSizeBytes": 3, "numFiles": 2, "numMetadata": 1, "numProtocol": 1}
    crc |= {"metadata": metadata(), "protocol": protocol()}  # type: ignore[dict-item]
    (table.log / f"{4:020d}.crc").write_text(json.dumps(crc), "utf-8")
    table.commit(4, [add(30, 3)])
    if not keep_commits:
        for version in range(3):
            table.commit_path(version).unlink()
    return Subject(table, files, {vector_path.as_uri(): {0, 3, 4, 9}}, checkpoint, vector_path)


HEALTHY: Rows = sorted(
    [(i, 2) for i in range(10, 20)]
    + [(i, 1) for i in range(20, 30) if i - 20 not in {0, 3, 4, 9}]
    + [(i, 3) for i in range(30, 40)]
)


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    made = make_subject(tmp_path / "table", keep_commits=True)
    assert made.read() == HEALTHY
    return made


@pytest.fixture
def without_old_commits(tmp_path: Path) -> Subject:
    made = make_subject(tmp_path / "table", keep_commits=False)
    assert made.read() == HEALTHY
    return made


def damage_json(data: bytes, rng: random.Random) -> bytes:
    """One value of one line becomes something strange, or goes."""
    lines = data.decode().splitlines()
    number = rng.randrange(len(lines))
    tree = json.loads(lines[number])
    holder, key = rng.choice(list(_places(tree)))
    if rng.randrange(4) == 0:
        del holder[key]
    else:
        holder[key] = rng.choice(STRANGE)
    lines[number] = json.dumps(tree)
    return "\n".join(lines).encode()


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    keys = node if isinstance(node, dict) else range(len(node))
    for key in list(keys):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _places(node[key])


def _outcome(subject: Subject) -> Rows | DeltaError:
    start = time.process_time()
    try:
        return subject.read()
    except DeltaError as error:
        return error
    finally:
        assert time.process_time() - start < MOST_SECONDS


def _fuzz(
    path: Path,
    seed: int,
    damage: Callable[[bytes, random.Random], bytes],
    check: Callable[[bytes], None],
) -> None:
    rng = random.Random(seed)
    original = path.read_bytes()
    for _ in range(INPUTS_PER_TEST):
        damaged = damage(original, rng)
        if damaged == original:
            continue
        path.write_bytes(damaged)
        try:
            check(damaged)
        except BaseException as error:
            error.add_note(f"damaged {path.name} (seed {seed}): {damaged!r}")
            raise
    path.write_bytes(original)


class Model:
    """Replays a log with dictionaries, or gives up where the log says something new."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def rows(self) -> Rows | None:
        """The rows; None if the model has no opinion."""
        live: dict[tuple[str, str | None], Action] = {}
        for version in range(5):
            text = self.subject.table.commit_path(version).read_bytes().decode()
            actions = list(self._objects(text))
            for action in actions:
                if ("protocol" in action and action["protocol"] != protocol()) or (
                    "metaData" in action and action["metaData"] != metadata()
                ):
                    return None
            for action in actions:
                if (add := action.get("add")) is not None:
                    live[self._key(add)] = add
            for action in actions:
                if (remove := action.get("remove")) is not None:
                    live.pop(self._key(remove), None)
        return sorted(row for add in live.values() for row in self._rows_of(add))

    def _objects(self, text: str) -> Iterator[Action]:
        decoder = json.JSONDecoder()
        at = 0
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            found, at = decoder.raw_decode(text, at)
            yield found

    def _key(self, action: Action) -> tuple[str, str | None]:
        vector = action.get("deletionVector")
        return action["path"], vector and json.dumps(vector, sort_keys=True)

    def _rows_of(self, add: Action) -> Iterator[tuple[int, int | None]]:
        vector = add.get("deletionVector")
        deleted = self.subject.deleted[vector["pathOrInlineDv"]] if vector else set()
        values = add["partitionValues"]
        # Names of columns are resolved without case where no name is the same.
        value = values.get("p", values.get("P"))
        p = None if value is None or value == "" else int(value)
        for row, identifier in enumerate(self.subject.files[add["path"]]):
            if row not in deleted:
                yield identifier, p


@pytest.mark.protocol("LOG-03", "LOG-10", "D-70", "META-01", "ADD-01", "REM-01")
@pytest.mark.parametrize("damage", [damage_bytes, damage_json], ids=["bytes", "values"])
@pytest.mark.parametrize("version", range(5))
def test_damaged_commits(
    subject: Subject, version: int, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    def check(_damaged: bytes) -> None:
        outcome = _outcome(subject)
        if isinstance(outcome, DeltaError):
            return
        try:
            expected = Model(subject).rows()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            pytest.fail(f"rows of a log that cannot be read ({error!r}): {outcome}")
        assert expected is None or outcome == expected

    # The checkpoint would hide what is damaged below it.
    subject.checkpoint.unlink()
    _fuzz(subject.table.commit_path(version), version, damage, check)


@pytest.mark.protocol("LAST-06", "LAST-02", "SUM-08", "D-21")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("damage", [damage_bytes, damage_json], ids=["bytes", "values"])
def test_a_damaged_hint_never_matters(
    subject: Subject, seed: int, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    _fuzz(
        subject.table.log / "_last_checkpoint",
        seed,
        damage,
        lambda _: _equal(subject.read(), HEALTHY),
    )


@pytest.mark.protocol("D-53")
@pytest.mark.parametrize("damage", [damage_bytes, damage_json], ids=["bytes", "values"])
def test_a_damaged_checksum_file_never_matters(
    subject: Subject, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    path = subject.table.log / f"{4:020d}.crc"
    _fuzz(path, 5, damage, lambda _: _equal(subject.read(), HEALTHY))


@pytest.mark.protocol("DV-15", "DV-12", "DV-13")
@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_deletion_vector_is_noticed(subject: Subject, seed: int) -> None:
    def check(_damaged: bytes) -> None:
        outcome = _outcome(subject)
        assert isinstance(outcome, DeltaError) or outcome == HEALTHY

    _fuzz(subject.vector, seed, damage_bytes, check)


@pytest.mark.parametrize("seed", range(2))
def test_a_torn_checkpoint_is_worked_around(subject: Subject, seed: int) -> None:
    """Parquet's footer comes last, so a cut or an overwritten end is always noticed."""

    def tear(data: bytes, rng: random.Random) -> bytes:
        cut = data[: rng.randrange(len(data))]
        return cut if rng.randrange(2) else cut + bytes(len(data) - len(cut))

    _fuzz(subject.checkpoint, seed, tear, lambda _: _equal(subject.read(), HEALTHY))


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_checkpoint_raises_ours(without_old_commits: Subject, seed: int) -> None:
    """Parquet has no checksum over its footer: what a flip means there cannot be known."""
    _fuzz(without_old_commits.checkpoint, seed, damage_bytes, lambda _: _ours(without_old_commits))


@pytest.mark.parametrize("part", range(4))
def test_a_damaged_footer_raises_ours(tmp_path: Path, part: int) -> None:
    """Arrow decodes by the footer: the process must survive it, so it is not this one."""
    first, inputs = part * FOOTERS_PER_TEST, FOOTERS_PER_TEST
    said = lines_of("tests.property.damaged_footers", tmp_path / "table", first, inputs)
    assert len(said) == inputs


@pytest.mark.parametrize("part", ["footer", "pages"])
def test_a_damaged_data_file_raises_ours(tmp_path: Path, part: str) -> None:
    """With predicates and without; also in another process, which must survive it."""
    inputs = 600 if LONG else 100
    said = lines_of("tests.property.damaged_data_files", tmp_path / "table", 0, inputs, part)
    assert len(said) == inputs


@pytest.mark.parametrize("part", ["offsets", "bounds", "headers", "footer"])
def test_damaged_pages_lose_no_rows_unseen(tmp_path: Path, part: str) -> None:
    """The page index and the headers of pages; also in another process, which must survive it."""
    inputs = 1000 if LONG else 80
    said = lines_of("tests.property.damaged_pages", tmp_path / "table", 0, inputs, part)
    assert len(said) == inputs


def _ours(subject: Subject) -> None:
    _outcome(subject)


def _equal(outcome: Rows, expected: Rows) -> None:
    assert outcome == expected
