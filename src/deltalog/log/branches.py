"""Branches of a table: what is stored for them, and the store that shows a branch's log.

This is a preview of deltalog. It is the only module that knows the format:

- `_delta_log/_branches/<name>.json` is the record of a branch. The branch exists while its record
  exists.
- `_delta_log/_branches/<id>/` contains the branch's log, in the format of any Delta log. The log
  begins with a checkpoint of the version of main at which the branch starts, so no clean-up of main
  can damage it.
- Data files are in the directory of the table, beside those of main. So are the packs of a key
  index, which only narrow reads.

Other writers ignore the directory, because the protocol does not define it.

Protocol: none (delta-io/delta #7439 proposes branches)
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from deltalog._util.cards import ShownFields
from deltalog._util.escaping import name_key
from deltalog._util.json import JsonObject, dumps, loads
from deltalog._util.paths import KEYS_DIRECTORY, LOG_DIRECTORY, FileInfo
from deltalog.errors import (
    AlreadyExistsError,
    BranchClosedError,
    BranchExistsError,
    BranchNotFoundError,
    InvalidInputError,
    MalformedLogError,
    ObjectNotFoundError,
)
from deltalog.log.names import MAX_VERSION, LogFileKind, parse_log_name
from deltalog.storage import store as stores
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalog.log.context import Committer, TableContext
    from deltalog.storage.links import Home
    from deltalog.storage.store import ByteRange, Store

_DIRECTORY: Final = f"{LOG_DIRECTORY}/_branches"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_VERSION_NAME: Final = re.compile(r"v[0-9]+")
_ID: Final = re.compile(r"[0-9a-f]{32}")
_FORMAT: Final = 1
_MOST_BYTES: Final = 64 * 1024


class BranchState(Enum):
    """Whether a branch accepts commits."""

    OPEN = "open"
    CLOSED = "closed"
    """The branch is being published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(ShownFields):
    """A branch of a table.

    Args:
        name: name of the branch.
        id: identifier of the branch; a later branch with the same name has another one.
        table_id: the id of the table.
        base_version: the version of main at which the branch starts.
        created_ms: milliseconds since 1970, UTC.
        expires_ms: after this time, vacuum deletes the branch; None means never.
        state: whether the branch accepts commits.
    """

    name: str
    id: str
    table_id: str
    base_version: int
    created_ms: int
    expires_ms: int | None = None
    state: BranchState = BranchState.OPEN

    @property
    def directory(self) -> str:
        """The directory of the branch's log, relative to the table's root."""
        return f"{_DIRECTORY}/{self.id}"

    def is_expired(self, now_ms: int) -> bool:
        """Whether the branch has expired at a time."""
        return self.expires_ms is not None and self.expires_ms <= now_ms

    def is_abandoned(self, now_ms: int) -> bool:
        """Whether vacuum may delete the branch: it has expired, and is not being published."""
        return self.state is BranchState.OPEN and self.is_expired(now_ms)


def new_branch(name: str, **facts: Any) -> Branch:
    """Return a branch with a new id; see `Branch` for the facts.

    Raises:
        InvalidInputError: the name is not valid.
    """
    return Branch(name=checked_name(name), id=uuid.uuid4().hex, **facts)


def checked_name(name: object) -> str:
    """Return the name of a branch.

    Raises:
        InvalidInputError: the name is not valid.
    """
    if not is_valid_name(name):
        raise InvalidInputError(
            f"cannot use {name!r} as the name of a branch: expected at most 100 letters, digits, "
            "'_' and '-', beginning with a letter or '_'; 'main' and versions such as 'v3' are "
            "reserved"
        )
    return cast("str", name)


def is_valid_name(name: object) -> bool:
    """Whether a branch may have this name."""
    return (
        isinstance(name, str)
        and _NAME.fullmatch(name) is not None
        and _VERSION_NAME.fullmatch(name) is None
        and name != "main"
    )


# --- Records


def _record_path(name: str) -> str:
    return f"{_DIRECTORY}/{name}.json"


def _encode(branch: Branch) -> bytes:
    return dumps(
        {
            "format": _FORMAT,
            "id": branch.id,
            "tableId": branch.table_id,
            "baseVersion": branch.base_version,
            "createdTime": branch.created_ms,
            "expirationTime": branch.expires_ms,
            "state": branch.state.value,
        }
    )


def _decode(name: str, data: bytes, store: Store) -> Branch:
    where = f"{store.root}: {_record_path(name)}"
    _check_size(store, name, len(data))
    found = JsonObject(loads(data, where), where)
    version = found.required("format", int)
    identity = found.required("id", str)
    states = {state.value: state for state in BranchState}
    state = found.required("state", str)
    # The id becomes part of paths, and a record is not trusted.
    if version != _FORMAT or not _ID.fullmatch(identity) or state not in states:
        raise MalformedLogError(
            f"cannot read the branch {name!r} of {store.root}: expected a record in format "
            f"{_FORMAT}, found format {version!r}, id {identity!r} and state {state!r}; if another "
            f"program has written {_record_path(name)!r}, move it away"
        )
    base = found.required("baseVersion", int)
    if not 0 <= base < MAX_VERSION:
        raise MalformedLogError(
            f"cannot read the branch {name!r} of {store.root}: its base version is {base}"
        )
    return Branch(
        name=name,
        id=identity,
        table_id=found.required("tableId", str),
        base_version=base,
        created_ms=found.required("createdTime", int),
        expires_ms=found.optional("expirationTime", int),
        state=states[state],
    )


def _check_size(store: Store, name: str, size_bytes: int) -> None:
    if size_bytes > _MOST_BYTES:
        raise MalformedLogError(
            f"cannot read the branch {name!r} of {store.root}: expected a record of at most "
            f"{_MOST_BYTES} bytes, found {size_bytes}; if another program has written "
            f"{_record_path(name)!r}, move it away"
        )


def find_branch(store: Store, name: str) -> Branch | None:
    """Return the branch with a name; None if there is none.

    Raises:
        InvalidInputError: the name is not valid.
        MalformedLogError: the record is malformed.

    Cost: one request.
    """
    try:
        data = store.read(_record_path(checked_name(name)))
    except ObjectNotFoundError:
        return None
    return _decode(name, data, store)


def get_branch(store: Store, name: str) -> Branch:
    """Return the branch with a name.

    Raises:
        BranchNotFoundError: there is no branch with this name.
    """
    found = find_branch(store, name)
    if found is None:
        names = ", ".join(repr(branch.name) for branch in list_branches(store))
        newest = name_key(name) in {"latest", "newest", "current", "head"}
        version = name_key(name).startswith("v")  # such as version0
        raise BranchNotFoundError(
            f"cannot open the branch {name!r} of {store.root}: "
            + (f"the table has the branches {names}" if names else "the table has no branches")
            + f"; without @{name}, a location means the latest version" * newest
            + f"; a version is written with v and its number, as in {store.root}@v0" * version
        )
    return found


def list_branches(store: Store) -> list[Branch]:
    """Return all branches, in the order of their names.

    Raises:
        MalformedLogError: a record is malformed.

    Cost: one listing, and one request for each branch.
    """
    return _recorded(store, store.list_from(_DIRECTORY, ""))


def _recorded(store: Store, files: Iterable[FileInfo]) -> list[Branch]:
    names = []
    for info in files:
        name = info.name.removesuffix(".json")
        if info.path == _record_path(name) and is_valid_name(name):
            _check_size(store, name, info.size_bytes)
            names.append(name)
    found = map_in_pool(lambda name: find_branch(store, name), sorted(names))
    return [branch for branch in found if branch is not None]


def record_branch(store: Store, branch: Branch) -> None:
    """Write the record of a new branch, whose log must exist.

    Raises:
        BranchExistsError: there is a branch with this name.
    """
    try:
        store.put_if_absent(_record_path(branch.name), _encode(branch))
    except AlreadyExistsError:
        raise BranchExistsError(
            f"cannot create the branch {branch.name!r} of {store.root}: it exists; "
            "branch(…, exist_ok=True) opens it"
        ) from None


def set_state(store: Store, branch: Branch, state: BranchState) -> Branch:
    """Record whether a branch accepts commits; return the branch as it is recorded then.

    Raises:
        BranchNotFoundError: the branch was published or discarded.
    """
    changed = replace(check_recorded(store, branch), state=state)
    store.put(_record_path(branch.name), _encode(changed))
    return changed


def check_recorded(store: Store, branch: Branch) -> Branch:
    """Return the record of a branch as it is now.

    Raises:
        BranchNotFoundError: the branch was published or discarded.
    """
    found = find_branch(store, branch.name)
    if found is None or found.id != branch.id:
        raise BranchNotFoundError(
            f"the branch {branch.name!r} of {store.root}, which starts at version "
            f"{branch.base_version}, does not exist any more: it was published or discarded"
        )
    return found


def delete_record(store: Store, branch: Branch) -> None:
    """Delete the record of a branch, which then no longer exists.

    Its log remains until vacuum deletes it, so that a writer that has not yet seen the end of the
    branch cannot begin another log in the same place.
    """
    found = find_branch(store, branch.name)
    if found is not None and found.id == branch.id:
        store.delete_many([_record_path(branch.name)])


def delete_branch(store: Store, branch: Branch) -> None:
    """Delete the record and the log of a branch that was never committed to."""
    delete_record(store, branch)
    store.delete_many([info.path for info in store.list_all(branch.directory)])


def sweep_branches(store: Store, *, now_ms: int, cutoff_ms: int) -> list[str]:
    """Delete expired branches, and the logs of branches that no longer exist.

    Args:
        store: the table's store.
        now_ms: milliseconds since 1970, UTC.
        cutoff_ms: logs of branches that no longer exist are deleted if they were not written to
            since this time.

    Returns:
        The paths of the deleted files.

    Cost: one listing of all logs of branches, and one request for each branch.
    """
    files = list(store.list_all(_DIRECTORY))
    branches = _recorded(store, files)
    expired = [branch for branch in branches if branch.is_abandoned(now_ms)]
    for branch in expired:
        delete_record(store, branch)
    known = {branch.id for branch in branches if branch not in expired}
    logs: dict[str, list[FileInfo]] = {}
    for info in files:
        identity, slash, _ = info.path.removeprefix(f"{_DIRECTORY}/").partition("/")
        if slash and _ID.fullmatch(identity) and identity not in known:
            logs.setdefault(identity, []).append(info)
    old = [
        info.path
        for files in logs.values()
        if max(info.modified_ms for info in files) < cutoff_ms
        for info in files
    ]
    if old:
        store.delete_many(old)
    return old


# --- Store of a branch


def branch_of(store: Store) -> Branch | None:
    """Return the branch whose log a store shows; None for main."""
    found = getattr(store, "branch", None)
    return found if isinstance(found, Branch) else None


def named_root(store: Store) -> str:
    """Return the location of a table; for a branch, with its name: `table@name`."""
    found = branch_of(store)
    return store.root if found is None else f"{store.root}@{found.name}"


def on_branch(context: TableContext, branch: Branch, *, closes: bool = False) -> TableContext:
    """Return the context of a branch, from the context of its table.

    Args:
        context: context of the table.
        branch: the branch.
        closes: whether commits are allowed although the branch is closed.
    """
    store = BranchStore(context.store, branch, closes=closes, committer=context.committer)
    # A catalog knows only the commits of main.
    return replace(context, store=store, committer=None, log_tail=None)


def on_named_branch(context: TableContext, name: str) -> TableContext:
    """Return the context of an existing branch, from a context of its table.

    Raises:
        BranchNotFoundError: there is no branch with this name.
    """
    main = on_main(context)
    return on_branch(main, get_branch(main.store, name))


def on_main(context: TableContext) -> TableContext:
    """Return the context of the table, from the context of a branch."""
    store = context.store
    if not isinstance(store, BranchStore):
        return context
    return replace(context, store=store.main, committer=store.committer)


def check_main(store: Store, doing: str, why: str) -> None:
    """Raise if a store shows a branch.

    Args:
        store: store of a table.
        doing: what only main allows, such as `vacuum`.
        why: the reason.

    Raises:
        InvalidInputError: the store shows a branch.
    """
    branch = branch_of(store)
    if branch is not None:
        raise InvalidInputError(f"cannot {doing} the branch {branch.name!r} of {store.root}: {why}")


class BranchStore:
    """A store that shows the log of a branch as the table's log; data files are the table's.

    Args:
        main: the table's store.
        branch: the branch.
        closes: whether commits are allowed although the branch is closed.
        committer: makes the commits of main, see `TableContext`.
    """

    def __init__(
        self,
        main: Store,
        branch: Branch,
        *,
        closes: bool = False,
        committer: Committer | None = None,
    ) -> None:
        self.main = main
        self.branch = branch
        self.committer = committer
        self._closes = closes

    @property
    def root(self) -> str:
        """The table's location."""
        return self.main.root

    def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
        """See `Store.list_from`."""
        return map(self._shown, self.main.list_from(self._place(directory), first))

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        """See `Store.list_all`."""
        return map(self._shown, self.main.list_all(self._place(directory)))

    def stat(self, path: str) -> FileInfo:
        """See `Store.stat`."""
        return replace(self.main.stat(self._place(path)), path=path)

    def read(self, path: str) -> bytes:
        """See `Store.read`."""
        return self.main.read(self._place(path))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `Store.read_ranges`."""
        return self.main.read_ranges(self._place(path), ranges)

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """See `Store.read_many`."""
        return self.main.read_many([self._place(path) for path in paths])

    def open(self, path: str) -> BinaryIO:
        """See `Store.open`."""
        return self.main.open(self._place(path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically. Commits are checked first.

        Raises:
            BranchNotFoundError: the branch was published or discarded.
            BranchClosedError: the branch is being published.
        """
        found = parse_log_name(FileInfo(path, 0, 0)) if _is_of_branch(path) else None
        if found is not None and found.kind is LogFileKind.COMMIT and not self._closes:
            self.check_open()
        self.main.put_if_absent(self._place(path), data)

    def check_open(self) -> None:
        """Raise unless the branch accepts commits; see `put_if_absent`. Cost: one request."""
        if check_recorded(self.main, self.branch).state is not BranchState.OPEN:
            raise BranchClosedError(
                f"cannot commit to the branch {self.branch.name!r} of {self.root}: it is being "
                "published; if that was interrupted, run publish() again, or discard()"
            )

    def put(self, path: str, data: bytes) -> None:
        """See `Store.put`."""
        self.main.put(self._place(path), data)

    def delete_many(self, paths: Sequence[str]) -> None:
        """See `Store.delete_many`."""
        self.main.delete_many([self._place(path) for path in paths])

    # --- What only some stores can do

    def native_path(self, path: str) -> str | None:
        """See `NativeStore.native_path`."""
        return stores.native_path(self.main, self._place(path))

    @property
    def native_home(self) -> Home | None:
        """See `native_home`."""
        return cast("Home | None", getattr(self.main, "native_home", None))

    def fetches_whole(self, path: str) -> bool:
        """See `WholeFileStore.fetches_whole`."""
        return stores.fetches_whole(self.main, self._place(path))

    @property
    def syncs(self) -> bool:
        """See `DurableStore.syncs`."""
        return stores.syncs_files(self.main)

    def without_sync(self) -> Store:
        """See `DurableStore.without_sync`."""
        return BranchStore(
            stores.unsynced(self.main),
            self.branch,
            closes=self._closes,
            committer=self.committer,
        )

    @property
    def can_sign(self) -> bool:
        """See `SigningStore.can_sign`."""
        return bool(getattr(self.main, "can_sign", False))

    def signed_url(self, path: str, seconds: int) -> str:
        """See `SigningStore.signed_url`."""
        return cast("stores.SigningStore", self.main).signed_url(self._place(path), seconds)

    def list_short(self, directory: str, most: int) -> list[FileInfo] | None:
        """See `PeekingStore.list_short`."""
        if stores.is_peeking(self.main):
            found = self.main.list_short(self._place(directory), most)
            return None if found is None else [self._shown(info) for info in found]
        return list(self.list_from(directory, ""))

    def list_level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """See `LevelStore.list_level`."""
        if isinstance(self.main, stores.LevelStore):
            files, directories = self.main.list_level(self._place(directory))
            return [self._shown(info) for info in files], [
                self._shown(FileInfo(path, 0, 0)).path for path in directories
            ]
        prefix = f"{directory}/" if directory else ""
        files, directories = [], []
        for info in self.list_all(directory):
            head, slash, _ = info.path.removeprefix(prefix).partition("/")
            if not slash:
                files.append(info)
            elif prefix + head not in directories:
                directories.append(prefix + head)
        return files, directories

    def __repr__(self) -> str:
        return f"BranchStore({self.main!r}, {self.branch.name!r})"

    def _place(self, path: str) -> str:
        """Return the path in the table's store."""
        if not _is_of_branch(path):
            return path
        return self.branch.directory + path.removeprefix(LOG_DIRECTORY)

    def _shown(self, info: FileInfo) -> FileInfo:
        """Return a file with the path that the branch shows."""
        directory = self.branch.directory
        if not info.path.startswith(f"{directory}/"):
            return info
        return replace(info, path=LOG_DIRECTORY + info.path.removeprefix(directory))


def _is_of_branch(path: str) -> bool:
    """Return whether a branch has its own file for a path of the table: only in its log."""
    if path == KEYS_DIRECTORY or path.startswith(f"{KEYS_DIRECTORY}/"):
        return False
    return path == LOG_DIRECTORY or path.startswith(f"{LOG_DIRECTORY}/")
