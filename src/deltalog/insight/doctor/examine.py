"""Run the checks, on a table that can be opened and on one that cannot.

Owns which checks there are and their order.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.clock import now_ms as present_ms
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.insight.doctor.checkpoints import (
    check_checkpoints,
    check_checksum,
    check_compactions,
    check_hint,
)
from deltalog.insight.doctor.files import (
    check_orphans,
    check_partition_values,
    check_paths,
    check_row_ids,
    check_vectors,
)
from deltalog.insight.doctor.log import (
    check_commits,
    check_gaps,
    check_length,
    check_live_paths,
)
from deltalog.insight.doctor.pages import check_stored_pages
from deltalog.insight.doctor.patient import Patient
from deltalog.insight.doctor.protocol import (
    check_access,
    check_features,
    check_properties,
    check_schema,
)
from deltalog.insight.doctor.report import Finding, Report, Severity, in_order
from deltalog.insight.doctor.statistics import check_statistics
from deltalog.log.listing import list_log
from deltalog.snapshot import load_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalog.context import TableContext
    from deltalog.snapshot import Snapshot

    Check = Callable[[Patient], Iterator[Finding]]

# Checks of the log alone.
_OF_LOGS: Final[Mapping[str, Check]] = {
    "gaps": check_gaps,
    "commits": check_commits,
    "last-checkpoint": check_hint,
    "checkpoints": check_checkpoints,
    "compactions": check_compactions,
}
# Checks for which the table must open.
_OF_TABLES: Final[Mapping[str, Check]] = {
    "length": check_length,
    "access": check_access,
    "features": check_features,
    "properties": check_properties,
    "schema": check_schema,
    "checksum": check_checksum,
    "live-paths": check_live_paths,
    "partition-values": check_partition_values,
    "row-ids": check_row_ids,
    "paths": check_paths,
    "vectors": check_vectors,
    "statistics": check_statistics,
    "pages": check_stored_pages,
    "orphans": check_orphans,
}
CHECKS: Final = (*_OF_LOGS, *_OF_TABLES)


def examine(
    context: TableContext,
    *,
    snapshot: Snapshot | None = None,
    checks: Sequence[str] | None = None,
    num_samples: int = 8,
    num_commits: int = 1000,
    now_ms: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Examine a table with all or some checks; nothing is changed.

    Args:
        context: of the table.
        snapshot: the version to examine; None opens the latest.
        checks: names of `CHECKS`; None is all.
        num_samples: how many data files and deletion vectors are read, evenly spread.
        num_commits: how many of the newest commits are read.
        now_ms: milliseconds since 1970, UTC; None is now.
        progress: called after each check with the number done and the total.

    Raises:
        TableNotFoundError: there is no log.
        InvalidInputError: an unknown check.

    Cost: two listings, the newest commits, the columns of the newest checkpoints, and the samples.
    """
    unknown = [name for name in checks or () if name not in CHECKS]
    if unknown:
        raise InvalidInputError(
            f"there is no check {unknown[0]!r}; the checks are {', '.join(CHECKS)}"
        )
    findings: list[Finding] = []
    store = context.store
    listing = list_log(store, from_version=0, log_tail=context.log_tail)
    if snapshot is None:
        try:
            snapshot = load_snapshot(context)
        except DeltaError as error:
            if listing.latest_version is None:
                raise
            findings.append(_failed("open", error))
    patient = Patient(
        store=store,
        listing=listing,
        opened=snapshot,
        now_ms=present_ms() if now_ms is None else now_ms,
        num_samples=num_samples,
        num_commits=num_commits,
    )
    known = _OF_LOGS if snapshot is None else {**_OF_LOGS, **_OF_TABLES}
    wanted = [name for name in known if checks is None or name in checks]
    for number, name in enumerate(wanted, 1):
        try:
            findings += known[name](patient)
        except DeltaError as error:
            findings.append(_failed(name, error))
        if progress is not None:
            progress(number, len(wanted))
    return Report(
        table=store.root,
        version=None if snapshot is None else snapshot.version,
        findings=in_order(findings),
        checks=tuple(wanted),
    )


def _failed(name: str, error: DeltaError) -> Finding:
    notes = "; ".join(getattr(error, "__notes__", ()))
    message = f"{error}; {notes}" if notes else str(error)
    return Finding(check=name, severity=Severity.ERROR, message=message)
