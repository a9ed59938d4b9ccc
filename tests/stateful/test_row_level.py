"""Writers that change rows of one file at once: the versions are what they make one by one.

Each of two or three writers stops before every call of the store. Some are led up to their commit
before anybody may make one; then hypothesis chooses who goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog import CommitProperties, DeltaTable, write_deltalake
from deltalog.errors import CommitConflictError
from deltalog.storage.store import Store
from deltalog.testing.simulation.workers import CommonStore, Worker, free_cached_properties
from tests.support.examples import examples
from tests.support.facade import VECTORS, actions, rows
from tests.support.logs import DictStore

pytestmark = pytest.mark.slow("writers are interleaved in many ways")

free_cached_properties()
ROWS = 8
Rows = Mapping[int, int]


@dataclass(frozen=True)
class Statement:
    """Something done to the rows that match, once."""

    verb: Literal["delete", "update", "upsert"]
    column: Literal["id", "v"]
    low: int
    high: int
    value: int

    @property
    def where(self) -> str:
        return f"{self.column} between {self.low} and {self.high}"

    def run(self, store: Store, number: int) -> None:
        """As a writer of its own does it."""
        table, told = DeltaTable(store), CommitProperties({"number": str(number)})
        if self.verb == "delete":
            table.delete(self.where, commit_properties=told)
        elif self.verb == "update":
            table.update({"v": str(self.value)}, predicate=self.where, commit_properties=told)
        else:
            source = [{"id": n, "v": self.value} for n in range(self.low, self.high + 1)]
            table.upsert(source, "id", commit_properties=told)

    def applied_to(self, before: Rows) -> Rows:
        """The rows afterwards."""
        wanted = range(self.low, self.high + 1)
        if self.verb == "upsert":
            return {**before, **dict.fromkeys(wanted, self.value)}
        hit = {n for n, v in before.items() if (n if self.column == "id" else v) in wanted}
        if self.verb == "delete":
            return {n: v for n, v in before.items() if n not in hit}
        return {n: self.value if n in hit else v for n, v in before.items()}


NUMBERS = st.integers(0, ROWS - 1)
STATEMENTS = st.builds(
    lambda verb, column, low, width, value: Statement(verb, column, low, low + width, value),
    st.sampled_from(["delete", "update", "upsert"]),
    st.sampled_from(["id", "id", "v"]),
    NUMBERS,
    st.integers(0, 2),
    NUMBERS,
)


def _is_at_commit(worker: Worker) -> bool:
    verb, paths = worker.at or ("", ())
    return verb == "put_if_absent" and "".join(paths[:1]).startswith("_delta_log/")


def _run(
    store: DictStore, statements: list[Statement], late: set[int], turns: list[int]
) -> list[Worker]:
    def work(statement: Statement, number: int) -> Any:
        return lambda found: statement.run(found, number)

    shared = CommonStore(store)
    workers = [Worker(shared, work(one, number)) for number, one in enumerate(statements)]
    try:
        for number, worker in enumerate(workers):
            while number not in late and not worker.is_done and not _is_at_commit(worker):
                worker.step()
        for turn in turns:
            worker = workers[turn % len(workers)]
            if not worker.is_done:
                worker.step()
        for worker in workers:
            worker.finish()
    finally:
        for worker in workers:
            worker.kill()
    return workers


@pytest.mark.parametrize("rewritten_above", ["0.5", "1"])
@settings(max_examples=examples(60), deadline=None)
@given(
    statements=st.lists(STATEMENTS, min_size=2, max_size=3),
    late=st.sets(st.integers(0, 2), max_size=1),
    turns=st.lists(st.integers(0, 2), max_size=40),
)
def test_versions_are_the_statements_one_after_the_other(
    rewritten_above: str, statements: list[Statement], late: set[int], turns: list[int]
) -> None:
    store = DictStore()
    properties = {
        **VECTORS,
        "delta.enableRowLevelConcurrency": "true",
        "deltalog.maxDeletedRowsRatio": rewritten_above,
    }
    expected: Rows = {n: n for n in range(ROWS)}
    write_deltalake(store, [{"id": n, "v": n} for n in range(ROWS)], configuration=properties)
    workers = _run(store, statements, late, turns)
    table = DeltaTable(store)
    made = set()
    for version in range(1, table.version() + 1):
        number = int(actions(table, version)[0]["commitInfo"]["number"])
        made.add(number)
        expected = statements[number].applied_to(expected)
        assert dict(rows(DeltaTable(store, version))) == expected
    for number, worker in enumerate(workers):
        if worker.error is not None:
            assert isinstance(worker.error, CommitConflictError), worker.error
            assert number not in made
