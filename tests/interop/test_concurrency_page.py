"""Who may pass whom: the table of `docs/concurrency.md`, tried with a winner at the last moment."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from deltalog import DeltaTable, Field, write_deltalake
from deltalog.testing import CountingStore

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "concurrency.md"
WORK: Final[dict[str, Callable[[DeltaTable], object]]] = {
    "append": lambda t: write_deltalake(t, [{"p": 0, "a": 9}], mode="append"),
    "delete, update, merge": lambda t: t.delete("p = 0 and a = 2"),
    "overwrite": lambda t: write_deltalake(
        t, [{"p": 0, "a": 5}], mode="overwrite", predicate="p = 0"
    ),
    "compact, cluster": lambda t: t.optimize.compact(),
    "schema, properties": lambda t: t.alter.add_columns(Field(f"c{uuid4().hex}", "long")),
}
ROWS: Final = {**WORK, "compact, cluster, purge": WORK["compact, cluster"]}


class _LosingStore(CountingStore):
    """A store with another writer who commits just before our first commit."""

    winner: Callable[[], object] | None = None

    def put_if_absent(self, path: str, data: bytes) -> None:
        winner, self.winner = self.winner, None
        if winner is not None:
            winner()
        super().put_if_absent(path, data)


def _cells() -> list[tuple[str, str, str]]:
    lines = PAGE.read_text("utf-8").partition("| mine")[2].partition("\n\n")[0].splitlines()
    winners = [cell.strip() for cell in lines[0].split("|")[1:-1]]
    found = []
    for line in lines[2:]:
        mine, *cells = (cell.strip(" *") for cell in line.strip("|").split("|"))
        found += [(mine, won, cell) for won, cell in zip(winners, cells, strict=True)]
    return [one for one in found if one[0] in ROWS]


@pytest.mark.parametrize(("mine", "won", "cell"), _cells())
def test_the_page_says_who_passes_whom(
    mine: str, won: str, cell: str, caplog: pytest.LogCaptureFixture
) -> None:
    place = f"memory://{uuid4()}"
    rows = [{"p": n % 2, "a": n} for n in range(8)]
    for _ in range(2):
        write_deltalake(place, rows, mode="append", partition_by=["p"])
    store = _LosingStore(DeltaTable(place).snapshot.store)
    table, other = DeltaTable(store), DeltaTable(place)
    store.winner = lambda: WORK[won](other)
    with caplog.at_level(logging.INFO, "deltalog"):
        ROWS[mine](table)
    assert other.version() == 2
    assert table.version() in {2, 3}  # evaluated again, there may be nothing left to do
    was_run_again = any("again" in record.getMessage() for record in caplog.records)
    assert was_run_again == cell.startswith("again")


def test_work_on_other_partitions_passes() -> None:
    place = f"memory://{uuid4()}"
    write_deltalake(place, [{"p": n % 2, "a": n} for n in range(8)], partition_by=["p"])
    store = _LosingStore(DeltaTable(place).snapshot.store)
    table, other = DeltaTable(store), DeltaTable(place)
    store.winner = lambda: other.delete("p = 1 and a = 3")
    table.delete("p = 0 and a = 2")
    assert sorted(table.to_pandas()["a"]) == [0, 1, 4, 5, 6, 7]


def test_the_page_has_every_pair() -> None:
    assert len(_cells()) == 5 * 4
