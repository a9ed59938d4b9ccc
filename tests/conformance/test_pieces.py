"""Tables of other writers in pieces: all together they are the version, whoever wrote it."""

from __future__ import annotations

import pickle

import pytest

from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.log.snapshot.splits import CutSnapshot, cut_snapshot
from deltalog.protocol.stats.schema import indexed_columns, stats_schema
from deltalog.storage import open_store
from tests.property.test_pieces_laws import texts
from tests.support.corpora import Entry, readable_entries

pytestmark = pytest.mark.corpus
CHECKPOINTED = [
    entry for entry in readable_entries() if any(entry.path.glob("_delta_log/*.checkpoint.*"))
]


@pytest.mark.parametrize("entry", CHECKPOINTED, ids=str)
def test_pieces_are_the_version(entry: Entry) -> None:
    store = open_store(str(entry.path))
    whole, other = load_snapshot(utc_context(store)), load_snapshot(utc_context(store))
    found: CutSnapshot = pickle.loads(
        pickle.dumps(other.read_log(lambda state: cut_snapshot(other, state, share_bytes=8000)))
    )
    pieces = [found.piece(number) for number in range(found.num_pieces)]
    small = [one for number in range(found.num_pieces) for one in found.small_pieces(number)]
    assert texts(one.files() for one in pieces) == texts([whole.files()])
    assert texts(one.files() for one in small) == texts([whole.files()])
    assert texts(one.tombstones() for one in pieces) == texts([whole.tombstones()])
    leaves = stats_schema(indexed_columns(whole.configuration.physical_schema))
    assert texts(one.stats(leaves) for one in small) == texts([whole.stats(leaves)])
