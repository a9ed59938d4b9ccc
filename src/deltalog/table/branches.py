"""Branches of a table, and write-audit-publish: a preview.

A branch is a `DeltaTable` whose commits go to a log of its own. `publish` commits its net changes
to main as one version, after checks; see `operations.publish` for the conflict rules.

Protocol: none (delta-io/delta #7439 proposes branches)
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import (
    AuditFailedError,
    BranchExistsError,
    DeltaError,
    InvalidInputError,
)
from deltalog.log import branches as records
from deltalog.log.branches import Branch, BranchState, branch_of, on_branch, on_main
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.arguments import as_condition
from deltalog.operations.execute import execute
from deltalog.operations.operation import CustomOperation
from deltalog.operations.publish import Publish, app_id_of
from deltalog.schema.check import readable_rows
from deltalog.table.inspect.diff import diff_snapshots
from deltalog.transaction.maintenance.checkpoint import begin_log
from deltalog.transaction.properties import CommitOptions

if TYPE_CHECKING:
    from deltalog.table.delta_table import DeltaTable
    from deltalog.transaction import CommitProperties

_EXAMPLES: Final = 5
_CLOSE: Final = "CLOSE BRANCH"
Check = str | Callable[["DeltaTable"], object]
"""A condition in SQL that no row may violate, or a function of the branch."""


def create_branch(
    table: DeltaTable, name: str, *, version: int | None, expires_after: timedelta | None
) -> Branch:
    """Create a branch of a table; see `DeltaTable.branch`.

    Raises:
        BranchExistsError: the branch exists.
        InvalidInputError: the name is not valid, the table is a branch, or a catalog decides about
            its commits.
    """
    context = table.snapshot.context
    if (known := branch_of(context.store)) is not None:
        raise InvalidInputError(
            f"cannot create a branch of the branch {known.name!r} of {context.store.root}: create "
            "it from main"
        )
    records.checked_name(name)
    if table.snapshot.configuration.is_catalog_managed:
        raise InvalidInputError(
            f"cannot create a branch of {context.store.root}: a catalog decides about its commits"
        )
    base = load_snapshot(context, version=version)
    now_ms = context.clock.now_ms()
    if expires_after is not None and expires_after <= timedelta(0):
        raise InvalidInputError(f"expires_after: expected a positive time, found {expires_after!r}")
    expires_ms = None
    if expires_after is not None:
        expires_ms = now_ms + expires_after // timedelta(milliseconds=1)
    branch = records.new_branch(
        name,
        table_id=base.metadata.id,
        base_version=base.version,
        created_ms=now_ms,
        expires_ms=expires_ms,
    )
    if records.find_branch(context.store, name) is not None:
        raise BranchExistsError(
            f"cannot create the branch {name!r} of {context.store.root}: it exists; "
            "branch(…, exist_ok=True) opens it"
        )
    try:
        begin_log(base, on_branch(context, branch, closes=True).store)
        records.record_branch(context.store, branch)
    except DeltaError:
        records.delete_branch(context.store, branch)
        raise
    return branch


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOutcome:
    """The outcome of a publish.

    Args:
        version: the version of main with the changes.
        was_published: whether an earlier call has published the branch.
    """

    version: int
    was_published: bool = False


def publish(
    draft: DeltaTable, checks: Sequence[Check], commit_properties: CommitProperties | None
) -> PublishOutcome:
    """Publish a branch; see `DeltaTable.publish`."""
    branch = the_branch(draft, "publish")
    main = on_main(draft.snapshot.context)
    done = _published_version(main, branch)
    if done is not None:
        records.delete_record(main.store, branch)
        return PublishOutcome(version=done, was_published=True)
    records.set_state(main.store, branch, BranchState.CLOSED)
    try:
        head = _closed_head(draft, branch)
        check_draft(draft, head, branch, checks)
        base = load_snapshot(main, version=branch.base_version)
        operation = Publish(branch=branch, head=head, changes=diff_snapshots(base, head))
        options = CommitOptions(properties=commit_properties, on_conflict="raise")
        ran = execute(operation, lambda: base, draft.engine, options)
    except Exception:
        records.set_state(main.store, branch, BranchState.OPEN)
        raise
    records.delete_record(main.store, branch)
    return PublishOutcome(version=ran.committed.version, was_published=ran.committed.skipped)


def discard(draft: DeltaTable) -> None:
    """Discard a branch; see `DeltaTable.discard`."""
    branch = the_branch(draft, "discard")
    main = on_main(draft.snapshot.context)
    records.set_state(main.store, branch, BranchState.CLOSED)
    _closed_head(draft, branch)
    records.delete_record(main.store, branch)


def the_branch(draft: DeltaTable, doing: str) -> Branch:
    """Return the branch that a table shows.

    Raises:
        InvalidInputError: the table is no branch.
    """
    found = branch_of(draft.snapshot.store)
    if found is None:
        raise InvalidInputError(
            f"cannot {doing} {draft.table_uri}: it is main, not a branch; branch('name') creates "
            "a branch"
        )
    return found


def _closed_head(draft: DeltaTable, branch: Branch) -> Any:
    """Commit the end of a branch, and return its last version.

    The commit takes the next version, so a writer that has seen the branch open loses this version,
    and sees that the branch is closed before its next attempt.
    """
    context = on_branch(on_main(draft.snapshot.context), branch, closes=True)
    operation = CustomOperation(name=_CLOSE, plan=lambda _: None)
    ran = execute(operation, lambda: load_snapshot(context), draft.engine)
    return ran.committed.snapshot


def _published_version(main: Any, branch: Branch) -> int | None:
    """Return the version of main that published a branch; None if it is not published."""
    latest = load_snapshot(main)
    if app_id_of(branch) not in latest.app_transactions:
        return None
    for entry in latest.history():
        parameters = entry.get("operationParameters")
        if isinstance(parameters, dict) and parameters.get("branchId") == branch.id:
            return int(entry["version"])
    return latest.version


# --- Checks


def check_draft(draft: DeltaTable, head: Any, branch: Branch, checks: Sequence[Check]) -> None:
    """Run the checks of a publish.

    Raises:
        AuditFailedError: a check fails; the error has examples.
    """
    if isinstance(checks, str) or callable(checks):
        checks = (checks,)
    table = type(draft).from_context(head.context, draft.engine)
    failures = [found for check in checks if (found := _failure(table, check)) is not None]
    if failures:
        listed = "\n".join(f"- {failure}" for failure in failures)
        raise AuditFailedError(
            f"cannot publish the branch {branch.name!r} of {head.store.root}: "
            f"{len(failures)} of {len(checks)} checks failed; main is unchanged, and the branch "
            f"remains:\n{listed}",
            branch=branch.name,
            failures=failures,
        )


def _failure(table: DeltaTable, check: Check) -> str | None:
    """Return what a check found; None if it passes."""
    if isinstance(check, str):
        return _violations(table, check)
    name = getattr(check, "__name__", repr(check))
    try:
        found = check(table)
    except AssertionError as error:
        return f"{name}: {error}"
    if found is None or found is True:
        return None
    return f"{name}: {found}" if isinstance(found, str) else f"{name} returned {found!r}"


def _violations(table: DeltaTable, condition: str) -> str | None:
    """Return how many rows do not match a condition, with examples; NULL is no match."""
    session = table.snapshot.context.session
    as_condition(table.schema(), condition, session=session)  # raises for an invalid condition
    scan = table.scan(predicate=f"NOT coalesce({condition}, false)")
    count = scan.count()
    if not count:
        return None
    examples = readable_rows(table.head(_EXAMPLES, predicate=f"NOT coalesce({condition}, false)"))
    return f"{condition}: {count:,} rows do not match, such as {examples}"


@contextmanager
def audited(table: DeltaTable, checks: Sequence[Check], name: str | None) -> Iterator[DeltaTable]:
    """Yield a new branch, and publish it after the block; see `DeltaTable.audit`."""
    name = name or f"audit-{uuid.uuid4().hex[:12]}"
    draft = table.branch(name)
    try:
        yield draft
    except BaseException:
        discard(draft)
        raise
    publish(draft, checks, None)
    table.update_incremental(same_table=True)
