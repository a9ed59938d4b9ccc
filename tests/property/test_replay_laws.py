"""Laws of replay: columns agree with a plain dict, wherever the checkpoints are."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog._util.json import dumps
from deltalog.log.context import utc_context
from deltalog.log.listing import canonical_form, checksum_of, parse_hint
from deltalog.log.replay import reconcile
from deltalog.log.snapshot import Snapshot, load_snapshot
from tests.support import logs
from tests.support.examples import examples
from tests.support.logs import DictStore, Json

PATHS = ("a", "b", "c%20d", "e/f")
VECTORS = (None, "v1", "v2")
Key = tuple[str, str | None]

keys = st.tuples(st.sampled_from(PATHS), st.sampled_from(VECTORS))


@dataclass
class Model:
    """The table as dicts: the protocol's own words."""

    adds: dict[Key, int] = field(default_factory=dict)
    removes: dict[Key, int] = field(default_factory=dict)
    txns: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)

    def apply(self, actions: list[Json]) -> None:
        """One commit; removes after adds, since in one version removes win."""
        for action in sorted(actions, key=lambda line: "remove" in line):
            match action:
                case {"add": add}:
                    self.adds[key_of(add)] = add["size"]
                    self.removes.pop(key_of(add), None)
                case {"remove": remove}:
                    self.removes[key_of(remove)] = remove["deletionTimestamp"]
                    self.adds.pop(key_of(remove), None)
                case {"txn": txn}:
                    self.txns[txn["appId"]] = txn["version"]
                case {"domainMetadata": {"removed": True, "domain": name}}:
                    self.domains.pop(name, None)
                case {"domainMetadata": domain}:
                    self.domains[domain["domain"]] = domain["configuration"]
                case _:
                    raise AssertionError(action)

    def actions(self) -> list[Json]:
        """The reconciled state, as a checkpoint has it."""
        return [
            logs.PROTOCOL,
            logs.metadata(),
            *[add_line(key, size) for key, size in self.adds.items()],
            *[remove_line(key, time_ms) for key, time_ms in self.removes.items()],
            *[logs.txn(name, version) for name, version in self.txns.items()],
            *[logs.domain(name, text) for name, text in self.domains.items()],
        ]


def key_of(action: Json) -> Key:
    found = action.get("deletionVector")
    return action["path"], None if found is None else found["pathOrInlineDv"]


def add_line(key: Key, size: int) -> Json:
    path, place = key
    return logs.add(path, size=size, deletionVector=place and logs.vector(place))


def remove_line(key: Key, time_ms: int) -> Json:
    path, place = key
    return logs.remove(path, deletionTimestamp=time_ms, deletionVector=place and logs.vector(place))


@st.composite
def commits(draw: st.DrawFn) -> list[Json]:
    """One commit: any adds and removes, each key once among each."""
    numbers = st.integers(0, 99)
    adds = draw(st.dictionaries(keys, numbers, max_size=4))
    removes = draw(st.dictionaries(keys, numbers, max_size=3))
    lines = [add_line(key, size) for key, size in adds.items()]
    lines += [remove_line(key, time_ms) for key, time_ms in removes.items()]
    txns = draw(st.dictionaries(st.sampled_from("xy"), numbers, max_size=2))
    lines += [logs.txn(name, version) for name, version in txns.items()]
    names = draw(st.lists(st.sampled_from("pq"), unique=True, max_size=2))
    lines += [logs.domain(name, str(draw(numbers)), removed=draw(st.booleans())) for name in names]
    return list(draw(st.permutations(lines)))


@st.composite
def histories(draw: st.DrawFn) -> tuple[DictStore, list[Model]]:
    """A log with checkpoints of any layout anywhere, and the model at each version."""
    history = draw(st.lists(commits(), min_size=1, max_size=6))
    store = logs.table_of(*history)
    model, models = Model(), []
    for version, actions in enumerate(history):
        model.apply(actions)
        models.append(Model(*(dict(part) for part in vars(model).values())))
        layout = draw(st.sampled_from(["none", "none", "classic", "parts", "V2", "inline V2"]))
        state = list(draw(st.permutations(model.actions())))
        if layout == "classic":
            logs.classic_checkpoint(store, version, state)
        elif layout == "parts":
            logs.multi_part_checkpoint(store, version, [state[::2], state[1::2]])
        elif layout == "V2":
            logs.v2_checkpoint(store, version, state, sidecars=draw(st.integers(1, 2)))
        elif layout == "inline V2":
            logs.v2_checkpoint(store, version, state, sidecars=0, suffix="parquet")
    return store, models


def seen(snapshot: Snapshot) -> Model:
    adds = snapshot.files(["path", "deletionVector", "size"]).to_pylist()
    removes = snapshot.tombstones(["path", "deletionVector", "deletionTimestamp"]).to_pylist()
    assert len({key_of(row) for row in adds}) == len(adds)
    return Model(
        {key_of(row): row["size"] for row in adds},
        {key_of(row): row["deletionTimestamp"] for row in removes},
        {name: txn.version for name, txn in snapshot.app_transactions.items()},
        {name: str(found.configuration) for name, found in snapshot.domain_metadata.items()},
    )


@pytest.mark.protocol("REC-02", "REC-03", "REC-05", "REC-06", "LOG-04", "LOG-05", "OV-09", "D-18")
@settings(max_examples=examples(60))
@given(histories())
def test_every_version_equals_the_model(history: tuple[DictStore, list[Model]]) -> None:
    store, models = history
    for version, model in enumerate(models):
        assert seen(load_snapshot(utc_context(store), version=version)) == model


@pytest.mark.protocol("REC-06", "OV-07")
@settings(max_examples=examples(40))
@given(histories(), st.data())
def test_following_equals_opening(
    history: tuple[DictStore, list[Model]], data: st.DataObject
) -> None:
    store, models = history
    snapshot = load_snapshot(utc_context(store), version=data.draw(st.integers(0, len(models) - 1)))
    if data.draw(st.booleans()):
        assert snapshot.num_files == len(seen(snapshot).adds)
    assert seen(snapshot.refresh()) == models[-1]


@pytest.mark.protocol("REC-06", "OV-09", "D-19")
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=12),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=12),
)
def test_reconcile_equals_a_loop(
    adds: list[tuple[str, int]], removes: list[tuple[str, int]]
) -> None:
    newest: dict[str, tuple[int, bool, int]] = {}
    for is_remove, actions in ((False, adds), (True, removes)):
        for row, (key, version) in enumerate(actions):
            newest[key] = max(newest.get(key, (-1, False, -1)), (version, is_remove, row))

    def column(actions: list[tuple[str, int]]) -> tuple[pa.StringArray, pa.Int64Array]:
        names, versions = [key for key, _ in actions], [version for _, version in actions]
        return pa.array(names, pa.string()), pa.array(versions, pa.int64())

    found = reconcile(*column(adds), *column(removes))
    decided = newest.values()
    assert found.adds.to_pylist() == sorted(row for _, removed, row in decided if not removed)
    assert found.removes.to_pylist() == sorted(row for _, removed, row in decided if removed)
    assert set(found.keys.to_pylist()) == set(newest)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


@pytest.mark.protocol("SUM-01", "SUM-05", "LAST-05")
@given(st.dictionaries(st.text(max_size=4), json_values, max_size=5), st.integers(0, 10**9))
def test_a_signed_hint_is_accepted_and_a_changed_one_is_not(members: Json, version: int) -> None:
    members = {**members, "version": version}
    members.pop("checksum", None)
    text = dumps(members).decode()
    signed = dumps({**members, "checksum": checksum_of(text)})
    hint = parse_hint(signed)
    assert hint is not None
    assert hint.version == version
    changed = {**members, "version": version + 1, "checksum": checksum_of(text)}
    assert parse_hint(dumps(changed)) is None
    assert canonical_form(signed.decode()) == canonical_form(text)
