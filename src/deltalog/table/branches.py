"""Branches of a table, and write-audit-publish: a preview.

A branch is a `DeltaTable` whose commits go to a log of its own. `publish` commits its net changes
to main as one version, after checks; see `operations.publish` for the conflict rules.

Protocol: none (delta-io/delta #7439 proposes branches)
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from deltalog._util.cards import ShownFields
from deltalog._util.readable import counted
from deltalog.errors import (
    AuditFailedError,
    BranchClosedError,
    BranchExistsError,
    CheckpointMissingError,
    CommitOutcomeUnknownError,
    DeltaError,
    InvalidInputError,
    MalformedLogError,
    ObjectNotFoundError,
    VersionNotFoundError,
)
from deltalog.log import branches as records
from deltalog.log.branches import Branch, BranchState, branch_of, on_branch, on_main
from deltalog.log.listing import list_commits
from deltalog.log.names import commit_path
from deltalog.log.reader import advising_on_damage, read_in_batches
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.arguments import as_condition, as_whole_number
from deltalog.operations.execute import execute
from deltalog.operations.operation import CustomOperation
from deltalog.operations.publish import Publish, app_id_of
from deltalog.schema.check import readable_rows, shown_values
from deltalog.table.inspect.diff import diff_snapshots
from deltalog.transaction.conflicts import parse_winner
from deltalog.transaction.maintenance.checkpoint import begin_log
from deltalog.transaction.properties import CommitOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalog.log.context import TableContext
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.transaction import CommitProperties

logger: logging.Logger = logging.getLogger(__name__)

_EXAMPLES: Final = 5
_CLOSE: Final = "CLOSE BRANCH"
Check = str | Callable[[Any], object]
"""A condition in SQL that no row may violate, or a function of the branch."""


class BranchedTable(Protocol):
    """The members of `DeltaTable` that are needed here."""

    @property
    def snapshot(self) -> Snapshot:
        """The version that the object shows."""
        ...

    @property
    def engine(self) -> Engine:
        """Runs the work on rows and files."""
        ...

    @property
    def table_uri(self) -> str:
        """The location; for a branch, `table@name`."""
        ...

    @classmethod
    def from_context(cls, context: TableContext, engine: Engine | None = None) -> Self:
        """Open the latest version of the table of a context."""
        ...

    def load_as_version(self, version: int) -> None:
        """Load another version."""
        ...

    def update_incremental(self, *, same_table: bool = True) -> None:
        """Load the latest version."""
        ...

    def branch(self, name: str) -> Self:
        """Create a branch."""
        ...

    def scan(self, columns: None = None, predicate: Any = None) -> Any:
        """Plan a read of rows."""
        ...

    def head(self, num_rows: int, columns: None = None, predicate: Any = None) -> pa.Table:
        """Return a few rows."""
        ...


TableT = TypeVar("TableT", bound=BranchedTable)


def create_branch(
    table: BranchedTable, name: str, *, version: int | None, expires_after: timedelta | None
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
    number = as_whole_number(version)
    if version is not None and number is None:
        raise InvalidInputError(f"version: expected a version of main, found {version!r}")
    base = load_snapshot(context, version=number)
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
    except ObjectNotFoundError as error:
        records.delete_branch(context.store, branch)
        raise VersionNotFoundError(
            f"cannot create the branch {name!r} of {context.store.root} at version {base.version}: "
            "the commit of this version was cleaned up; choose a newer version"
        ) from error
    except DeltaError:
        records.delete_branch(context.store, branch)
        raise
    return branch


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOutcome(ShownFields):
    """The outcome of a publish.

    Args:
        version: a version of main with the changes.
        was_published: whether an earlier or concurrent call has published the branch.
    """

    version: int
    was_published: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The commit of main that published a branch.

    Args:
        version: the version of main.
        head_version: the last version of the branch that was published.
    """

    version: int
    head_version: int


def publish(
    draft: BranchedTable, checks: Sequence[Check], commit_properties: CommitProperties | None
) -> PublishOutcome:
    """Publish a branch; see `DeltaTable.publish`."""
    branch = the_branch(draft, "publish")
    main = on_main(draft.snapshot.context)
    done, was_published = publication(main, branch), True
    if done is None:
        branch = records.set_state(main.store, branch, BranchState.CLOSED)
        try:
            done = _publish_closed(draft, branch, checks, commit_properties)
            was_published = False
        except Exception as error:
            done = publication_after(error, main, branch)
            if done is None:
                raise
    check_all_published(main, branch, done)
    records.delete_record(main.store, branch)
    return PublishOutcome(version=done.version, was_published=was_published)


def _publish_closed(
    draft: BranchedTable,
    branch: Branch,
    checks: Sequence[Check],
    commit_properties: CommitProperties | None,
) -> Publication:
    """Check a closed branch, and commit its changes to main."""
    operation, base = prepare(draft, branch, checks)
    options = CommitOptions(properties=commit_properties, on_conflict="raise")
    committed = execute(operation, lambda: base, draft.engine, options).committed
    if committed.skipped:  # another publish was faster
        raise BranchClosedError(
            f"cannot publish the branch {branch.name!r} of {base.store.root}: it is published"
        )
    return Publication(version=committed.version, head_version=operation.head.version)


def prepare(
    draft: BranchedTable, branch: Branch, checks: Sequence[Check]
) -> tuple[Publish, Snapshot]:
    """Return the publish of a closed branch, and the version of main at which the branch starts.

    Raises:
        AuditFailedError, InvalidInputError, VersionNotFoundError: see `DeltaTable.publish`.
    """
    main = on_main(draft.snapshot.context)
    # A vacuum that sees the branch closed keeps its files, also if it has expired.
    if branch.is_expired(main.clock.now_ms()):
        raise InvalidInputError(
            f"cannot publish the branch {branch.name!r} of {main.store.root}: it has expired, so a "
            "vacuum may have deleted its files; discard it, and create it anew"
        )
    head = _closed_head(draft, branch)
    base = _base_of(main, branch, head)
    retention_ms = base.configuration.properties.deleted_file_retention_ms
    if main.clock.now_ms() - branch.created_ms > retention_ms:
        logger.warning(
            "the branch %r of %s is older than the retention of files: another engine's vacuum may "
            "have deleted files that only the branch has, which publish checks",
            branch.name,
            main.store.root,
        )
    check_draft(draft, head, branch, checks)
    return Publish(branch=branch, head=head, changes=diff_snapshots(base, head)), base


def _base_of(main: TableContext, branch: Branch, head: Snapshot) -> Snapshot:
    """Return the version of main at which a branch starts.

    Raises:
        VersionNotFoundError: main no longer has this version.
        MalformedLogError: the record of the branch does not agree with the logs.
    """
    try:
        base = load_snapshot(main, version=branch.base_version)
    except (VersionNotFoundError, CheckpointMissingError) as error:
        raise VersionNotFoundError(
            f"cannot publish the branch {branch.name!r} of {main.store.root}: main has no version "
            f"{branch.base_version}, at which it starts; if the log of main was cleaned up "
            "(delta.logRetentionDuration), nobody knows whether its commits conflict, so read the "
            "rows from the branch, and write them to main"
        ) from error
    path = commit_path(branch.base_version)
    try:
        is_same = main.store.read(path) == head.store.read(path)
    except ObjectNotFoundError:
        is_same = True  # one of the logs was cleaned up
    if not is_same or branch.table_id != base.metadata.id or head.version < base.version:
        raise MalformedLogError(
            f"cannot publish the branch {branch.name!r} of {main.store.root}: it does not start at "
            f"version {branch.base_version} of this table; the table was replaced, or the record "
            "of the branch is wrong; discard the branch"
        )
    return base


def publication_after(error: Exception, main: TableContext, branch: Branch) -> Publication | None:
    """Return the commit that published a branch although a publish failed; else open the branch.

    The branch remains closed if it is unknown whether it is published.
    """
    if isinstance(error, CommitOutcomeUnknownError):
        return None
    try:
        done = publication(main, branch)
        if done is None:
            records.set_state(main.store, branch, BranchState.OPEN)
    except DeltaError as later:
        error.add_note(f"the branch {branch.name!r} was not opened again: {later}")
        return None
    return done


def check_all_published(main: TableContext, branch: Branch, done: Publication) -> None:
    """Raise if a branch has commits that its publish does not contain.

    A failed publish opens the branch again, perhaps while another publish succeeds.

    Raises:
        BranchClosedError: there are such commits.
    """
    store = on_branch(main, branch).store
    try:
        run = list_commits(store, done.head_version + 1, log_tail=None)
    except (ObjectNotFoundError, MalformedLogError):
        run = []
    with advising_on_damage(store, run, None):
        late = [
            file.version
            for batch in read_in_batches(store, run)
            for file, data in batch
            if parse_winner(file, data).operation != _CLOSE
        ]
    if late:
        raise BranchClosedError(
            f"the branch {branch.name!r} of {main.store.root} was published as version "
            f"{done.version} of main, without its later version(s) {late}, because two publishes "
            "ran at the same time; read these rows from the branch, write them to main, and "
            "discard the branch"
        )


def discard(draft: BranchedTable) -> None:
    """Discard a branch; see `DeltaTable.discard`."""
    branch = the_branch(draft, "discard")
    drop_branch(on_main(draft.snapshot.context), branch)


def drop_branch(main: TableContext, branch: Branch) -> None:
    """Delete a branch. A commit to it that is under way is discarded with it.

    Raises:
        BranchNotFoundError: the branch was published or discarded.
    """
    records.check_recorded(main.store, branch)
    records.delete_record(main.store, branch)


def the_branch(draft: BranchedTable, doing: str) -> Branch:
    """Return the branch that a table shows.

    Raises:
        InvalidInputError: the table is no branch.
    """
    found = branch_of(draft.snapshot.store)
    if found is None:
        raise InvalidInputError(
            f"cannot {doing} {draft.table_uri}: it is main, not a branch; open a branch by "
            f"DeltaTable('{draft.table_uri}@NAME'), or create it by branch('NAME')"
        )
    return found


def _closed_head(draft: BranchedTable, branch: Branch) -> Snapshot:
    """Commit the end of a branch, and return its last version.

    The commit takes the next version, so a writer that has seen the branch open loses this version,
    and sees that the branch is closed before its next attempt.
    """
    context = on_branch(on_main(draft.snapshot.context), branch, closes=True)
    operation = CustomOperation(name=_CLOSE, plan=lambda _: None)
    ran = execute(operation, lambda: load_snapshot(context), draft.engine)
    return ran.committed.snapshot


def publication(main: TableContext, branch: Branch) -> Publication | None:
    """Return the commit of main that published a branch; None if it is not published."""
    latest = load_snapshot(main)
    found = latest.app_transactions.get(app_id_of(branch))
    if found is None:
        return None
    version = latest.version
    for entry in latest.history(max(1, latest.version - branch.base_version)):
        parameters = entry.get("operationParameters")
        if isinstance(parameters, dict) and parameters.get("branchId") == branch.id:
            version = int(entry["version"])
            break
    return Publication(version=version, head_version=found.version)


# --- Checks


def check_draft(
    draft: BranchedTable, head: Snapshot, branch: Branch, checks: Sequence[Check]
) -> None:
    """Run the checks of a publish.

    Raises:
        AuditFailedError: a check fails; the error has examples.
    """
    if isinstance(checks, str) or callable(checks):
        checks = (checks,)
    given: Any = checks
    wrong = [check for check in given if not (isinstance(check, str) or callable(check))]
    if isinstance(given, Mapping) or wrong:
        shown = repr(given if isinstance(given, Mapping) else wrong[0])
        raise InvalidInputError(
            f"cannot publish the branch {branch.name!r}: expected a list of checks, which are "
            f"conditions in SQL or functions of the branch, found {shown}"
        )
    # The checks must not commit to the branch, because their commits would not be published.
    table = type(draft).from_context(on_branch(on_main(head.context), branch), draft.engine)
    table.load_as_version(head.version)
    for check in given:
        _check_callable(table, branch, check)
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


def _check_callable(table: BranchedTable, branch: Branch, check: Check) -> None:
    """Raise if a function does not take the branch as its only argument."""
    if isinstance(check, str):
        return
    try:
        signature(check).bind(table)
    except TypeError as error:
        name = getattr(check, "__name__", repr(check))
        raise InvalidInputError(
            f"cannot publish the branch {branch.name!r}: the check {name} is called with the "
            f"branch, as in lambda branch: branch.count() > 0 ({error})"
        ) from None
    except ValueError:  # a function of C has no signature
        return


def _failure(table: BranchedTable, check: Check) -> str | None:
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


def _violations(table: BranchedTable, condition: str) -> str | None:
    """Return how many rows do not match a condition, with examples; NULL is no match."""
    session = table.snapshot.context.session
    as_condition(
        table.snapshot.configuration.schema, condition, session=session
    )  # raises for an invalid condition
    violated = f"NOT coalesce({condition}\n, false)"  # a comment may be at the end
    scan = table.scan(predicate=violated)
    count = scan.count()
    if not count:
        return None
    examples = shown_values(readable_rows(table.head(_EXAMPLES, predicate=violated)))
    verb = "does" if count == 1 else "do"
    return f"{condition}: {counted(count, 'row')} {verb} not match, such as {examples}"


@contextmanager
def audited(table: TableT, checks: Sequence[Check], name: str | None) -> Iterator[TableT]:
    """Yield a new branch, and publish it after the block; see `DeltaTable.audit`."""
    name = name or f"audit-{uuid.uuid4().hex[:12]}"
    draft = table.branch(name)
    try:
        yield draft
    except BaseException:
        discard(draft)
        raise
    publish(draft, checks, None)
    table.update_incremental()
