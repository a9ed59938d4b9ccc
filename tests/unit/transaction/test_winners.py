"""What commits that were faster hold."""

from __future__ import annotations

import pickle

import pytest

from deltalog.errors import (
    ConcurrentAppendError,
)
from deltalog.transaction import commit
from tests.support.conflicting import (
    added,
    delete,
    outcome,
    two_partitions,
    won,
)
from tests.support.logs import (
    commit as write_commit,
)
from tests.support.logs import (
    remove,
)
from tests.support.transactions import pending


@pytest.mark.protocol("D-33")
def test_an_error_names_the_winner_and_travels() -> None:
    error = outcome(
        two_partitions(), lambda tx: delete(tx, "p = 'x'"), remove("x.parquet"), operation="MERGE"
    )
    assert error is not None
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.version, copy.operation, copy.files) == (2, "MERGE", ("x.parquet",))
    for part in ("DELETE", "MERGE", "version 2", "x.parquet"):
        assert part in str(copy)


def test_every_winner_is_judged_not_just_the_first() -> None:
    store = two_partitions()
    tx = pending(store)
    delete(tx, "p = 'x'")
    won(store, added("y"))
    write_commit(store, 3, {"commitInfo": {"operation": "WRITE"}}, added("x"))
    with pytest.raises(ConcurrentAppendError) as raised:
        commit(tx)
    assert raised.value.version == 3
