from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog._util.json import dumps, iter_objects, loads, parse_lexemes
from deltalog.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    action_to_json,
    actions_from_json,
    encode_actions,
)
from deltalog.protocol.actions.arrow import adds_from_json, map_array, removes_from_json
from deltalog.protocol.actions.codec import action_from_json
from deltalog.protocol.actions.model import (
    CheckpointMetadata,
    Format,
    RemoveFile,
    RowIdHighWaterMark,
    Sidecar,
)
from deltalog.protocol.features import supported_features
from deltalog.protocol.features.protocol_change import merge, normalise
from deltalog.protocol.features.registry import FEATURES, Kind
from tests.support.examples import examples

LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PATH = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
MAP = st.dictionaries(TEXT, TEXT, max_size=3)
NULLABLE_MAP = st.dictionaries(TEXT, st.none() | TEXT, max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | LONG | TEXT | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)

VECTORS = st.builds(
    DeletionVectorDescriptor,
    storage_type=st.sampled_from("uip"),
    path_or_inline_dv=TEXT.filter(bool),
    size_bytes=st.integers(0, 2**31 - 1),
    cardinality=st.integers(0, 2**63 - 1),
    offset=st.none() | st.integers(0, 2**31 - 1),
    max_row_index=st.none() | st.integers(0, 2**63 - 1),
)
ADDS = st.builds(
    AddFile,
    path=PATH,
    partition_values=NULLABLE_MAP,
    size_bytes=LONG,
    modification_time_ms=LONG,
    data_change=st.booleans(),
    stats=st.none() | TEXT,
    tags=st.none() | NULLABLE_MAP,
    deletion_vector=st.none() | VECTORS,
    base_row_id=st.none() | LONG,
    default_row_commit_version=st.none() | LONG,
    clustering_provider=st.none() | TEXT,
)
REMOVES = st.builds(
    RemoveFile,
    path=PATH,
    data_change=st.booleans(),
    deletion_timestamp_ms=st.none() | LONG,
    extended_file_metadata=st.none() | st.booleans(),
    partition_values=st.none() | NULLABLE_MAP,
    size_bytes=st.none() | LONG,
    stats=st.none() | TEXT,
    tags=st.none() | NULLABLE_MAP,
    deletion_vector=st.none() | VECTORS,
    base_row_id=st.none() | LONG,
    default_row_commit_version=st.none() | LONG,
)
PROTOCOLS = st.builds(
    Protocol, min_reader_version=st.integers(1, 2), min_writer_version=st.integers(1, 6)
) | st.builds(
    Protocol,
    min_reader_version=st.just(3),
    min_writer_version=st.just(7),
    reader_features=TEXTS,
    writer_features=TEXTS,
)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    ADDS,
    REMOVES,
    PROTOCOLS,
    st.builds(
        AddCDCFile,
        path=PATH,
        partition_values=NULLABLE_MAP,
        size_bytes=LONG,
        tags=st.none() | NULLABLE_MAP,
    ),
    st.builds(
        Metadata,
        id=TEXT,
        schema_string=TEXT,
        partition_columns=TEXTS,
        configuration=MAP,
        format=st.builds(Format, provider=TEXT.filter(bool), options=MAP),
        name=st.none() | TEXT,
        description=st.none() | TEXT,
        created_time_ms=st.none() | LONG,
    ),
    st.builds(SetTransaction, app_id=TEXT, version=LONG, last_updated_ms=st.none() | LONG),
    st.builds(DomainMetadata, domain=TEXT, configuration=TEXT | MAP, removed=st.booleans()),
    st.builds(RowIdHighWaterMark, high_water_mark=LONG, preserved_row_ids=st.booleans()),
    st.builds(CommitInfo, values=st.dictionaries(TEXT, JSON, max_size=3)),
    st.builds(CheckpointMetadata, version=LONG, tags=st.none() | NULLABLE_MAP),
    st.builds(
        Sidecar,
        path=PATH,
        size_bytes=LONG,
        modification_time_ms=LONG,
        tags=st.none() | NULLABLE_MAP,
    ),
)


@pytest.mark.protocol("ADD-01", "REM-01", "CDC-01", "TXN-01", "HWM-01", "DOM-01", "PROV-01")
@settings(deadline=None)
@given(ACTIONS)
def test_every_action_comes_back(action: Action) -> None:
    assert action_from_json(loads(dumps(action_to_json(action)))) == action


@pytest.mark.protocol("LOG-03")
@settings(deadline=None, max_examples=examples(50))
@given(st.lists(ACTIONS, max_size=5))
def test_every_commit_comes_back(actions: list[Action]) -> None:
    data = encode_actions(actions)
    assert data.count(b"\n") == len(actions)
    assert actions_from_json(iter_objects(data)) == actions


@settings(deadline=None)
@given(st.lists(ADDS, max_size=6), st.lists(REMOVES, max_size=6))
def test_columns_hold_what_actions_hold(adds: list[AddFile], removes: list[RemoveFile]) -> None:
    added = adds_from_json([action_to_json(action)["add"] for action in adds])
    assert [_from_row("add", row) for row in added.to_pylist()] == adds
    removed = removes_from_json([action_to_json(action)["remove"] for action in removes])
    assert [_from_row("remove", row) for row in removed.to_pylist()] == removes


def _from_row(kind: str, row: dict[str, Any]) -> Action | None:
    return action_from_json({kind: row})


@settings(deadline=None)
@given(st.lists(st.none() | NULLABLE_MAP, max_size=8))
def test_maps_come_back(values: list[dict[str, str | None] | None]) -> None:
    array: Any = map_array(values)
    array.validate(full=True)
    found = [None if row is None else dict(row) for row in array.to_pylist()]
    assert found == values


@settings(deadline=None)
@given(JSON)
def test_the_exact_reader_differs_in_numbers_only(value: Any) -> None:
    assert _without_numbers(parse_lexemes(dumps(value))) == _without_numbers(value)


def _without_numbers(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_numbers(item) for key, item in value.items()}
        case list():
            return [_without_numbers(item) for item in value]
        case bool() | None:
            return value
        case str() if type(value) is str:
            return value
        case _:
            return "a number"


@st.composite
def protocols(draw: st.DrawFn) -> Protocol:
    legacy = draw(st.booleans())
    if legacy:
        return Protocol(
            min_reader_version=draw(st.integers(1, 2)), min_writer_version=draw(st.integers(1, 6))
        )
    names = draw(st.sets(st.sampled_from([*FEATURES, "unheardOf", "timestampNTZ"]), max_size=5))
    names -= {"timestampNTZ"} if "timestampNtz" in names else set()
    readers = {n for n in names if n in FEATURES and FEATURES[n].kind is Kind.READER_WRITER}
    readers |= names & {"timestampNTZ"}
    return Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=tuple(sorted(readers)),
        writer_features=tuple(sorted(names)),
    )


@pytest.mark.protocol("B-08", "D-58")
@settings(deadline=None)
@given(protocols(), protocols())
def test_forms_of_a_protocol_hold_the_same_features(one: Protocol, two: Protocol) -> None:
    features = supported_features(one)
    assert supported_features(normalise(one)) == features
    assert normalise(normalise(one)) == normalise(one)
    both = merge(one, two)
    assert set(supported_features(both)) == set(features) | set(supported_features(two))
    assert merge(both, one) == both
