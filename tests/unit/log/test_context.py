"""What holds for a table whatever is done to it."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

from deltalog._util.clock import SystemClock
from deltalog.log.context import TableContext, utc_context
from deltalog.testing.simulation.model import SteadyClock
from tests.support.logs import DictStore


def test_the_present_is_the_clocks_and_in_utc() -> None:
    store = DictStore()
    context = TableContext(store=store, time_zone="Europe/Berlin", clock=SteadyClock(1_499))
    # Such a clock goes on by a millisecond whenever it is asked.
    assert context.now == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)


def test_a_context_of_a_store_alone_is_that_of_a_table_by_its_path() -> None:
    store = DictStore()
    context = utc_context(store)
    assert context.store is store
    assert context.time_zone == "UTC"
    assert isinstance(context.clock, SystemClock)
    assert (context.committer, context.log_tail) == (None, None)


def test_it_travels_and_is_itself_alone() -> None:
    context = utc_context(DictStore({"a": b"1"}))
    there: TableContext = pickle.loads(pickle.dumps(context))
    assert (there.store.read("a"), there.time_zone) == (b"1", "UTC")
    assert there != context
