"""The checks at the end of a history: of each readable version, and of each writer's results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from deltalog._util.json import iter_objects
from deltalog.errors import DeltaError
from deltalog.log.names import commit_path
from deltalog.testing.simulation.history import History, Made
from deltalog.testing.simulation.model import simulated
from deltalog.testing.simulation.workers import free_cached_properties, open_table, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.storage.store import Store
    from deltalog.table import DeltaTable
    from deltalog.testing.simulation.model import Row, TableState
    from deltalog.testing.simulation.workers import StatementRun

_NEEDS_A_COMMIT = {"append", "append wide", "overwrite", "replace where", "add column"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryReport:
    """The report of a history in which no difference was found.

    Args:
        seed: the seed of the history.
        steps: the number of calls to stores and catalogs.
        versions: the number of created versions.
        compared: the number of versions that are readable at the end, and whose rows are correct.
        trace: the trace, with one line per step and per commit.
        digest: the digest of the trace and of all commits.
    """

    seed: int
    steps: int
    versions: int
    compared: int
    trace: list[str]
    digest: str


def simulate(
    seed: int, *, wrap_store: Callable[[Store], Store] = lambda store: store
) -> HistoryReport:
    """Run the history that a seed determines; compare the table with the model after each step.

    Args:
        seed: the seed. It determines the table, the writers, the order of their calls, the
            failures, the times and the names.
        wrap_store: a function that wraps the store of the writers. The wrapper must be
            deterministic.

    Raises:
        WrongHistoryError: the table differs from the model, or a writer failed although no failure
            was injected and there was no conflict.
    """
    free_cached_properties()
    history = History(seed, wrap_store)
    with simulated(), history.machine.on():
        history.play()
        compared = examine(history)
    return HistoryReport(
        seed=seed,
        steps=history.steps,
        versions=len(history.made),
        compared=compared,
        trace=history.trace,
        digest=history.digest(),
    )


def examine(history: History) -> int:
    """Compare the table at the end with the model; return the number of readable versions.

    Raises:
        WrongHistoryError: the table, or a result of a writer, differs from the model.
    """
    check_log(history)
    for outcome in history.outcomes.values():
        check_reported(history, outcome)
    return check_versions(history)


def check_log(history: History) -> None:
    """Check that a commit never changes, and that it exists until a clean-up deletes it."""
    times: list[int] = []
    for version, made in enumerate(history.made):
        for path in {made.path, commit_path(version)}:
            if history.store.files.get(path, made.data) != made.data:
                history.fail(f"the commit of version {version} was changed")
        times.append(_time_ms(made))
    if history.plan.properties["delta.enableInCommitTimestamps"] == "true" and any(
        later <= earlier for earlier, later in pairwise(times)
    ):
        history.fail(f"the times of commits do not grow: {times}")


def check_reported(history: History, outcome: StatementRun) -> None:
    """Check that the result of a statement agrees with the log."""
    statement = outcome.statement
    versions = [v for v, made in enumerate(history.made) if made.outcome is outcome]
    if outcome.state == "failed" and versions and statement.kind != "vacuum":
        history.fail(f"{statement} failed, and made version {versions[0]}")
    if outcome.state == "running":
        history.fail(f"{statement} has no end")
    if outcome.state != "done" or versions:
        return
    if statement.kind == "append once":
        had = [
            made.outcome.statement.app_version
            for made in history.made
            if made.outcome is not None and made.outcome.statement.app_version
        ]
        is_right = any(version >= statement.app_version for version in had)
    elif statement.kind in _NEEDS_A_COMMIT:
        is_right = False
    else:
        is_right = outcome.target is not None or any(
            statement.applied_to(made.state) == made.state for made in history.made
        )
    if not is_right:
        history.fail(f"{statement} was acknowledged, and no version has it")


def check_versions(history: History) -> int:
    """Compare the rows, the row ids and the change feed of each readable version with the model."""
    table = open_table(history.store, history.committer)
    properties = history.plan.properties
    tracks = properties["delta.enableRowTracking"] == "true"
    feeds = properties["delta.enableChangeDataFeed"] == "true"
    compared = 0
    ids: dict[int, dict[int, int]] = {}
    for version, made in enumerate(history.made):
        try:
            table.load_as_version(version)
            columns, rows = read_rows(table)
            history.compare(version, columns, rows, f"version {version}, at the end")
            if tracks:
                ids[version] = _row_ids(table)
        except DeltaError as error:
            if history.must_be_readable(version):
                history.fail(f"version {version} cannot be read any more: {error!r}")
            continue
        compared += 1
        if tracks:
            _check_row_ids(history, version, made, ids)
        if feeds and version:
            _check_feed(history, table, version)
    return compared


def _row_ids(table: DeltaTable) -> dict[int, int]:
    found = table.scan(["id", "_metadata.row_id"]).to_table().to_pylist()
    return {row["id"]: row["_metadata.row_id"] for row in found}


def _check_row_ids(
    history: History, version: int, made: Made, ids: dict[int, dict[int, int]]
) -> None:
    """Check that the rows of a version have distinct row ids, and that a row keeps its row id."""
    found = ids[version]
    if None in found.values() or len(set(found.values())) < len(found):
        history.fail(f"version {version} has row ids {found}")
    target = None if made.outcome is None else made.outcome.target
    before = ids.get(version - 1 if target is None else target, {})
    changed = {
        n: (before[n], row_id) for n, row_id in found.items() if before.get(n, row_id) != row_id
    }
    if changed:
        history.fail(f"version {version} has other row ids than before: {changed}")


def _check_feed(history: History, table: DeltaTable, version: int) -> None:
    """Check that the change feed of a version is the difference from the previous version."""
    try:
        read = table.load_cdf(starting_version=version, ending_version=version).read_all()
    except DeltaError as error:
        if history.must_tell_changes(version):
            history.fail(f"the changes of version {version} cannot be read any more: {error!r}")
        return
    rows = read.to_pylist()
    before, after = history.made[version - 1].state, history.made[version].state
    found = _net(rows)
    expected = _changed(before, after), _changed(after, before)
    if found != expected:
        history.fail(f"the change feed of version {version} is {found}, expected {expected}")


def _net(rows: list[dict[str, Any]]) -> tuple[Counter[Any], Counter[Any]]:
    """Return the removed rows and the added rows, except rows that were removed and added."""
    gone = Counter(
        _key(row) for row in rows if row["_change_type"] in {"delete", "update_preimage"}
    )
    come = Counter(
        _key(row) for row in rows if row["_change_type"] in {"insert", "update_postimage"}
    )
    return gone - come, come - gone


def _changed(state: TableState, other: TableState) -> Counter[Any]:
    return Counter(
        _key(row)
        for number, row in state.rows.items()
        if number not in other.rows or _key(other.rows[number]) != _key(row)
    )


def _key(row: Row) -> tuple[Any, ...]:
    return row["id"], row["p"], row["v"]


def _time_ms(made: Made) -> int:
    info = next(iter(iter_objects(made.data))).get("commitInfo", {})
    return int(info.get("inCommitTimestamp", 0))
