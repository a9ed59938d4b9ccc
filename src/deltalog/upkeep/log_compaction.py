"""Log compaction: the reconciled actions of a range of commits, in one file beside them.

Protocol: Log Compaction Files
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import dumps, iter_objects
from deltalog.errors import AlreadyExistsError, InvalidInputError
from deltalog.features.support import check_writable
from deltalog.log.listing import list_log
from deltalog.log.names import commit_path, compaction_name, log_path
from deltalog.log.reader import VERSION_COLUMN, read_commits, read_in_batches
from deltalog.replay import Survivors, file_keys, reconcile

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from deltalog.log.names import LogFile
    from deltalog.snapshot import Snapshot
    from deltalog.storage.store import Store

# The key of each kind of action; of actions with equal keys, the newest is kept.
_NAMES: Final = {
    "protocol": "",
    "metaData": "",
    "rowIdHighWaterMark": "",
    "txn": "appId",
    "domainMetadata": "domain",
}


def compact_logs(snapshot: Snapshot, start: int, end: int) -> str:
    """Write the reconciled actions of the commits `start` to `end` as one file; keep the commits.

    Tombstones and removed domains are kept, since they cancel older actions. The file has no
    provenance and no change files: history and the change feed read the commits.

    Args:
        snapshot: of the table, at `end` or later.
        start: the first version.
        end: the last version, inclusive.

    Returns:
        The path of the file, relative to the table's root.

    Raises:
        InvalidInputError: there is no such range of published commits.
        DeltaProtocolError: the table needs a feature that deltalog cannot write.

    Protocol: Log Compaction Files
    Cost: each commit is read twice; the reconciled actions are in memory as text.
    """
    store = snapshot.store
    check_writable(
        snapshot.configuration,
        table=store.root,
        version=snapshot.version,
        operation="compact the log of",
        has_log_tail=snapshot.log_tail is not None,
    )
    if not 0 <= start < end <= snapshot.version:
        raise InvalidInputError(
            f"cannot compact commits {start} to {end} of {store.root}: expected two versions or "
            f"more, up to {snapshot.version}"
        )
    path = log_path(compaction_name(start, end))
    data = _compacted(store, _commits(store, start, end))
    with contextlib.suppress(AlreadyExistsError):  # another writer's file is equivalent
        store.put_if_absent(path, data)
    return path


def _commits(store: Store, start: int, end: int) -> list[LogFile]:
    listing = list_log(store, from_version=start)
    commits = [file for version, file in listing.commits.items() if version <= end]
    if len(commits) != end - start + 1 or any(
        file.info.path != commit_path(file.version) for file in commits
    ):
        raise InvalidInputError(
            f"cannot compact commits {start} to {end} of {store.root}: some of them are not there"
        )
    return commits


def _compacted(store: Store, commits: Sequence[LogFile]) -> bytes:
    live = _survivors(store, commits)
    wanted = {"add": set(live.adds.to_pylist()), "remove": set(live.removes.to_pylist())}
    seen = {"add": 0, "remove": 0}
    small: dict[tuple[str, Any], bytes] = {}
    files: list[bytes] = []
    for batch in read_in_batches(store, commits):
        for file, data in batch:
            for values in iter_objects(data, f"version {file.version}"):
                for kind, value in values.items():
                    if value is None:
                        continue
                    if kind in seen:
                        if seen[kind] in wanted[kind]:
                            files.append(dumps({kind: value}))
                        seen[kind] += 1
                    elif (name := _NAMES.get(kind)) is not None:
                        small[kind, value.get(name)] = dumps({kind: value})
    # An empty file would be taken for one whose writer was cut off.
    return b"".join(line + b"\n" for line in (*small.values(), *files)) or b"\n"


def _survivors(store: Store, commits: Sequence[LogFile]) -> Survivors:
    table = read_commits(store, commits)

    def keys(files: pa.Table) -> Any:
        paths: Any = files.column("path")
        return file_keys(paths, files.column("deletionVector"), store.root)

    return reconcile(
        keys(table.adds),
        table.adds.column(VERSION_COLUMN),
        keys(table.removes),
        table.removes.column(VERSION_COLUMN),
    )
