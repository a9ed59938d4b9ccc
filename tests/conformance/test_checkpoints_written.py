"""Our checkpoint of every other writer's table holds the state that its log tells."""

from __future__ import annotations

import pytest

from deltalog._util.paths import LOG_DIRECTORY
from deltalog.errors import UnsupportedFeatureError
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import load_snapshot
from deltalog.protocol.features.support import writer_blockers
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.property.test_checkpoint_laws import NOW, assert_same_state
from tests.support.corpora import Entry, readable_entries
from tests.support.logs import DictStore

pytestmark = pytest.mark.corpus


def log_of(entry: Entry) -> DictStore:
    """A copy of the log in memory."""
    log = entry.path / LOG_DIRECTORY
    files = {
        f"{LOG_DIRECTORY}/{path.relative_to(log).as_posix()}": path.read_bytes()
        for path in log.rglob("*")
        if path.is_file()
    }
    return DictStore(files)


@pytest.mark.protocol("CKPT-02", "CKPT-12", "CKPT-15", "CKPT-16")
@pytest.mark.parametrize("entry", readable_entries(), ids=str)
def test_our_checkpoint_holds_the_state(entry: Entry) -> None:
    store = log_of(entry)
    before = load_snapshot(utc_context(store))
    if writer_blockers(before.protocol):
        with pytest.raises(UnsupportedFeatureError):
            create_checkpoint(before)
        return
    found = before.segment.checkpoint
    info = create_checkpoint(before, at_ms=NOW)
    assert info.num_adds == before.num_files
    if found is not None and found.version == before.version:
        return  # it had one, which is taken as it is
    for version in range(before.version + 1):
        store.files.pop(commit_path(version), None)
    assert_same_state(load_snapshot(utc_context(store)), before)
