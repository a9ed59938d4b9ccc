"""Commits to tables whose commits a Unity Catalog coordinates.

A commit is written to a file with a unique name (staged), and proposed to the catalog. If the
catalog ratifies the commit, the commit is published as `N.json`, together with all earlier commits
that are not published yet. Then the catalog may delete its records of the published commits. This
module decides what an answer of the catalog means for a commit. If an answer does not determine
the outcome, `transaction.commit_loop` reads the commit back.

Protocol: Catalog-managed tables (staged commits, publishing)
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from deltalog._util.clock import now_ms
from deltalog._util.kernels import compute
from deltalog._util.paths import FileInfo
from deltalog.catalogs.protocol import Name, StagedTable, read_commit, shown_name
from deltalog.catalogs.unity.api import METRICS, UnityApi
from deltalog.catalogs.unity.client import TOO_MANY_COMMITS
from deltalog.catalogs.unity.messages import (
    FEATURE_PREFIX,
    columns_of,
    domains_to_json,
    protocol_to_json,
    removed_domains,
)
from deltalog.errors import (
    AlreadyExistsError,
    CatalogError,
    CommitOutcomeUnknownError,
    DeltaError,
    InvalidInputError,
    MalformedLogError,
    ObjectNotFoundError,
    TableNotFoundError,
)
from deltalog.log.context import LogTail, RatifiedCommit, utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.features.iceberg_compat import enabled_versions
from deltalog.storage.http.client import start
from deltalog.transaction.committer import FileSystemCommitter, publish_commit, stage_commit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from deltalog.catalogs.unity.messages import LoadedTable
    from deltalog.protocol.actions import Metadata
    from deltalog.storage.store import Store
    from deltalog.transaction.conflicts import WinningCommit

logger: logging.Logger = logging.getLogger(__name__)

_OTHER_TABLE: Final = "UpdateRequirementConflictException"
_BUSY: Final = "TooManyRequestsException"
_PUBLICATIONS: Final = 3
_OF_TABLES: Final = "delta."


class Coordinator(Protocol):
    """The part of a catalog that coordinates the commits of one table. It can be pickled."""

    @property
    def name(self) -> Name:
        """The name of the table."""
        ...

    def tail(self) -> LogTail:
        """Return the latest commits of the table."""
        ...

    def propose(
        self,
        ratified: RatifiedCommit,
        commit: WinningCommit,
        before: Metadata | None,
        uniform: Mapping[str, Any] | None = None,
    ) -> LogTail | None:
        """Propose a staged commit; return the latest commits if the answer has them, or None."""
        ...

    def tell_published(self, version: int) -> None:
        """Report the last published version to the catalog."""
        ...

    def report(self, commit: WinningCommit) -> None:
        """Report the numbers of files and rows of a commit, if the catalog requests reports."""
        ...


@dataclass(frozen=True, slots=True)
class DeltaCoordinator:
    """Coordinates the commits of a table through the Delta API.

    Args:
        api: the catalog's API.
        name: the name of the table, which has three parts.
        table_id: the id that the table must have. Another table may have taken its name.
        reports: whether the numbers of files and rows of commits are reported.
    """

    api: UnityApi
    name: Name
    table_id: str
    reports: bool = True

    def tail(self) -> LogTail:
        """Return the latest commits of the table; see `Coordinator.tail`."""
        return self.checked(self.api.load(self.name)).tail

    def propose(
        self,
        ratified: RatifiedCommit,
        commit: WinningCommit,
        before: Metadata | None,
        uniform: Mapping[str, Any] | None = None,
    ) -> LogTail:
        """Propose a staged commit; see `Coordinator.propose`."""
        updates = [add_commit(commit, ratified, uniform), *updates_of(commit, before)]
        what = f"commit version {ratified.version} to"
        return self.api.update(self.name, self.table_id, updates, what=what).tail

    def tell_published(self, version: int) -> None:
        """Report the last published version; see `Coordinator.tell_published`."""
        self.api.update(self.name, self.table_id, [set_published(version)])

    def report(self, commit: WinningCommit) -> None:
        """Report a commit; see `Coordinator.report`. Returns before the catalog answers."""
        if not self.reports or METRICS not in self.api.endpoints(self.name[0]):
            return
        question = self.api.report(self.name, self.table_id, counts_of(commit))
        start(self.api.client.sent(question)).add_done_callback(_note_failure)

    def checked(self, loaded: LoadedTable) -> LoadedTable:
        """Return an answer if it concerns this table.

        Raises:
            TableNotFoundError: this table was dropped, and another table has its name.
        """
        if loaded.table_id != self.table_id:
            raise TableNotFoundError(
                f"there is no table {shown_name(self.name)} with the id {self.table_id} any more: "
                "it was dropped, and another table has its name"
            )
        return loaded


@dataclass(frozen=True, slots=True)
class UnityCommitter:
    """Committer that commits through a Unity Catalog, and publishes the ratified commits.

    Args:
        coordinator: the part of the catalog that coordinates the commits.
        shows_iceberg: whether the Iceberg metadata of the table is reported to the catalog. It is
            the metadata of the previous version, because it is written after a commit is ratified.
    """

    coordinator: Coordinator
    shows_iceberg: bool = False

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """Propose and publish a commit; see `Committer.commit`."""
        commit = read_commit(version, data)
        metadata = commit.metadata
        asks = metadata is not None and shows_iceberg(metadata.configuration)
        uniform = self._uniform(store, commit) if self.shows_iceberg or asks else None
        file = stage_commit(store, version, data, self.coordinator.tail)
        before = self._metadata_before(store, commit)
        ratified = RatifiedCommit(version=version, file=file)
        tail = self._proposed(store, ratified, commit, before, uniform)
        try:
            is_published = self._publish(store, tail, {version: data})
        except MalformedLogError as error:  # the commit is ratified, so its files are still needed
            raise CommitOutcomeUnknownError(str(error), version=version) from error
        self._report(commit)
        return FileInfo(commit_path(version), len(data), file.modified_ms) if is_published else file

    def _report(self, commit: WinningCommit) -> None:
        try:
            self.coordinator.report(commit)
        except Exception:  # the commit has succeeded, even if its report fails
            logger.exception("version %d was not reported, but it is committed", commit.version)

    def log_tail(self, _store: Store) -> LogTail:
        """Return the latest commits; see `Committer.log_tail`."""
        return self.coordinator.tail()

    def publish(self, store: Store) -> int | None:
        """Publish all ratified, unpublished commits; return the last version, or None."""
        tail = self.coordinator.tail()
        self._publish(store, tail, {})
        return tail.last_version

    def _metadata_before(self, store: Store, commit: WinningCommit) -> Metadata | None:
        """Return the metadata that a commit replaces, or None. Cost: opening a version."""
        if commit.metadata is None:
            return None
        return self._version_before(store, commit).metadata

    def _uniform(self, store: Store, commit: WinningCommit) -> dict[str, Any] | None:
        """Return the Iceberg metadata to report. None: the catalog may then refuse the commit."""
        try:
            return uniform_of(self._version_before(store, commit), is_asked=True)
        except DeltaError as error:
            logger.warning("the Iceberg metadata is not reported to the catalog: %s", error)
            return None

    def _version_before(self, store: Store, commit: WinningCommit) -> Snapshot:
        context = utc_context(store).with_log_tail(self.coordinator.tail())
        return load_snapshot(context, version=commit.version - 1)

    def _proposed(
        self,
        store: Store,
        ratified: RatifiedCommit,
        commit: WinningCommit,
        before: Metadata | None,
        uniform: Mapping[str, Any] | None,
    ) -> LogTail:
        for _ in range(_PUBLICATIONS):
            try:
                found = self.coordinator.propose(ratified, commit, before, uniform)
            except CatalogError as error:
                if _is_full(error):
                    last = error
                    self._publish(store, self.coordinator.tail(), {})
                    continue
                meaning = self._meaning(error, ratified.version)
                if meaning is None:
                    raise
                raise meaning from error
            tail = found if found is not None else LogTail(commits=(ratified,))
            return tail if tail.commits else LogTail(commits=(ratified,))
        raise last

    def _meaning(self, error: CatalogError, version: int) -> DeltaError | None:
        """Return the error that a refused proposal means for the commit; None for others."""
        shown = shown_name(self.coordinator.name)
        if error.status == 404 or error.error_code == _OTHER_TABLE:
            return TableNotFoundError(
                f"cannot commit version {version} of {shown}: the catalog has no such table any "
                "more; nothing was committed"
            )
        if error.status == 409:
            # If an earlier answer was lost, this commit itself may be the ratified one. The caller
            # checks this.
            return AlreadyExistsError(f"version {version} of {shown} is ratified already")
        return None

    def _publish(self, store: Store, tail: LogTail, known: dict[int, bytes]) -> bool:
        """Copy ratified commits to their final names, in order; return whether all were copied.

        After a failure, the commits are still valid, and the next writer publishes them.

        Raises:
            MalformedLogError: a version is already published with another content. The catalog must
                then not delete its record of the ratified commit.
        """
        try:
            for commit in tail.commits:
                _publish_one(store, commit, known.get(commit.version))
            if tail.commits:
                self.coordinator.tell_published(tail.commits[-1].version)
        except MalformedLogError:
            raise
        except DeltaError as error:
            logger.warning(
                "cannot publish the commits of %s: %s; they remain valid", store.root, error
            )
            return False
        return True


@dataclass(frozen=True, slots=True)
class StagedCommitter:
    """Committer of version 0 of a table that is not registered in its catalog yet."""

    shown: str

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """Commit version 0; see `Committer.commit`."""
        if version > 0:
            raise InvalidInputError(
                f"cannot commit version {version} of {self.shown}: the table is not registered yet"
            )
        return FileSystemCommitter().commit(store, 0, data)

    def log_tail(self, _store: Store) -> LogTail:
        """Return an empty log tail, because no commit is ratified yet."""
        return LogTail()


@dataclass(frozen=True, slots=True)
class UnityTeller:
    """Reports the changes of a table to a catalog that does not coordinate its commits.

    Args:
        api: the API of the catalog.
        name: the name of the table, which has three parts.
        table_id: the id that the table must have. Another table may have taken its name.
    """

    api: UnityApi
    name: Name
    table_id: str

    def tell(self, store: Store, commit: WinningCommit) -> None:
        """Send the changes of a commit; see `Teller.tell`."""
        before = None
        if commit.metadata is not None:
            before = load_snapshot(utc_context(store), version=commit.version - 1).metadata
        updates = updates_of(commit, before)
        if updates:
            time_ms = _time_of(commit)
            self.api.update(self.name, self.table_id, [*updates, _state(commit.version, time_ms)])

    def synchronize(self, snapshot: Snapshot) -> None:
        """Send all differences between the table and the entry in the catalog."""
        loaded = self.api.load(self.name)
        metadata = snapshot.metadata
        # The catalog's entry may have properties that the table lacks. Remove only those that can
        # be properties of a table.
        known = {
            key: text
            for key, text in loaded.properties.items()
            if key in metadata.configuration or key.startswith(_OF_TABLES)
        }
        nothing = replace(metadata, schema_string="", description=None, configuration=known)
        updates = [
            *metadata_updates(nothing, metadata),
            {"action": "set-protocol", "protocol": protocol_to_json(snapshot.protocol)},
            _state(snapshot.version, snapshot.commit_timestamp_ms),
        ]
        self.api.update(self.name, self.table_id, updates, etag=loaded.etag)


def _state(version: int, time_ms: int) -> dict[str, Any]:
    return {
        "action": "update-metadata-snapshot-version",
        "last-commit-version": version,
        "last-commit-timestamp-ms": time_ms,
    }


def _time_of(commit: WinningCommit) -> int:
    found = commit.info.get("inCommitTimestamp", commit.info.get("timestamp"))
    return found if type(found) is int else now_ms()


def _is_full(error: CatalogError) -> bool:
    """Return whether the catalog accepts no further commit until commits are published.

    In the older API, the status 429 always means this for a commit.
    """
    return error.error_code == TOO_MANY_COMMITS or (
        error.status == 429 and error.error_code != _BUSY
    )


def _publish_one(store: Store, commit: RatifiedCommit, data: bytes | None) -> None:
    path = commit_path(commit.version)
    if commit.file.path == path:
        return
    try:
        found = store.read(commit.file.path) if data is None else data
    except ObjectNotFoundError:
        store.stat(path)  # raises an error, unless another client has published the commit
        return
    publish_commit(store, commit.version, found)


def _note_failure(done: Future[bytes]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        logger.debug("a commit was not reported: %s", error)


# --- the content of a commit as updates of the Delta API


# Properties that the catalog itself derives. The API states that clients must not send them.
_DERIVED: Final = frozenset(
    {
        "delta.minReaderVersion",
        "delta.minWriterVersion",
        "delta.clusteringColumns",
        "delta.rowTracking.rowIdHighWaterMark",
        "delta.lastUpdateVersion",
        "delta.lastCommitTimestamp",
    }
)
TIMESTAMP: Final = "inCommitTimestamp"


def add_commit(
    commit: WinningCommit, ratified: RatifiedCommit, uniform: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the update that proposes a staged commit.

    Args:
        commit: the content of the commit.
        ratified: the file of the staged commit.
        uniform: the Iceberg metadata of the table; see `uniform_of`.

    Raises:
        InvalidInputError: the commit has no in-commit timestamp, which catalogs require.
    """
    time_ms = commit.info.get(TIMESTAMP)
    if type(time_ms) is not int:
        raise InvalidInputError(
            f"cannot propose version {ratified.version} to its catalog: the commit has no "
            "in-commit timestamp"
        )
    return {
        **({} if uniform is None else {"uniform": uniform}),
        "action": "add-commit",
        "commit": {
            "version": ratified.version,
            "timestamp": time_ms,
            "file-name": ratified.file.name,
            "file-size": ratified.file.size_bytes,
            "file-modification-timestamp": ratified.file.modified_ms,
        },
    }


def set_published(version: int) -> dict[str, Any]:
    """Return the update that reports the last published version."""
    return {"action": "set-latest-backfilled-version", "latest-published-version": version}


def updates_of(commit: WinningCommit, before: Metadata | None) -> list[dict[str, Any]]:
    """Return the updates for those changes of a commit that do not concern rows.

    Args:
        commit: the content of the commit.
        before: the metadata of the previous version; None if the commit does not change the
            metadata.
    """
    updates: list[dict[str, Any]] = []
    if commit.metadata is not None and before is not None:
        updates += metadata_updates(before, commit.metadata)
    if commit.protocol is not None:
        protocol = protocol_to_json(commit.protocol)
        updates.append({"action": "set-protocol", "protocol": protocol})
    domains = commit.domains.values()
    if sent := domains_to_json(domains):
        updates.append({"action": "set-domain-metadata", "updates": sent})
    if removed := removed_domains(domains):
        updates.append({"action": "remove-domain-metadata", "domains": removed})
    return updates


def metadata_updates(before: Metadata, after: Metadata) -> list[dict[str, Any]]:
    """Return the updates for the differences between the old and the new metadata of a table."""
    updates: list[dict[str, Any]] = []
    if before.schema_string != after.schema_string:
        updates.append({"action": "set-columns", "columns": columns_of(after)})
    if before.partition_columns != after.partition_columns:
        columns = list(after.partition_columns)
        updates.append({"action": "set-partition-columns", "partition-columns": columns})
    if before.description != after.description:
        updates.append({"action": "set-table-comment", "comment": after.description or ""})
    return updates + property_updates(before.configuration, after.configuration)


def property_updates(before: Mapping[str, str], after: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the updates for the properties that were set or removed."""
    old, new = own_properties(before), own_properties(after)
    updates: list[dict[str, Any]] = []
    if changed := {key: text for key, text in new.items() if old.get(key) != text}:
        updates.append({"action": "set-properties", "updates": changed})
    if removed := sorted(old.keys() - new.keys()):
        updates.append({"action": "remove-properties", "removals": removed})
    return updates


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a table, except those that its catalog derives."""
    return {
        key: text
        for key, text in properties.items()
        if key not in _DERIVED and not key.startswith(FEATURE_PREFIX)
    }


def creation(staged: StagedTable, snapshot: Snapshot, time_ms: int) -> dict[str, Any]:
    """Return the body of `createTable` for a staged table, without the name of the table.

    Args:
        staged: the staged table.
        snapshot: version 0 of the table.
        time_ms: the time of version 0, in milliseconds since 1970.
    """
    metadata = snapshot.metadata
    body: dict[str, Any] = {
        "location": staged.location,
        "table-type": staged.table_type.value,
        "columns": columns_of(metadata),
        "partition-columns": list(metadata.partition_columns),
        "protocol": protocol_to_json(snapshot.protocol),
        "properties": own_properties(metadata.configuration),
        "last-commit-timestamp-ms": time_ms,
    }
    if metadata.description:
        body["comment"] = metadata.description
    if domains := domains_to_json(snapshot.domain_metadata.values()):
        body["domain-metadata"] = domains
    if (uniform := uniform_of(snapshot)) is not None:
        body["uniform"] = uniform
    return body


def counts_of(commit: WinningCommit) -> dict[str, int]:
    """Return the numbers to report for a commit: files and bytes; rows if `commitInfo` has them."""
    adds, removes = commit.adds, commit.removes
    counts = {
        "num-files-added": adds.num_rows,
        "num-bytes-added": _total(adds, "size"),
        "num-files-removed": removes.num_rows,
        "num-bytes-removed": _total(removes, "size"),
    }
    metrics = commit.info.get("operationMetrics")
    held = metrics if isinstance(metrics, dict) else {}
    for wire, names in _ROW_METRICS.items():
        found = next((held[name] for name in names if name in held), None)
        if found is not None and str(found).isascii() and str(found).isdecimal():
            counts[wire] = int(found)
    return counts


_ROW_METRICS: Final = {
    "num-rows-inserted": ("numTargetRowsInserted", "numOutputRows"),
    "num-rows-removed": ("numTargetRowsDeleted", "numDeletedRows"),
    "num-rows-updated": ("numTargetRowsUpdated", "numUpdatedRows"),
}


def _total(files: Any, column: str) -> int:
    if column not in files.column_names or files.num_rows == 0:
        return 0
    return int(compute.sum(files.column(column)).as_py() or 0)


# --- the Iceberg metadata of a table (UniForm), in the form that the catalog requires


def shows_iceberg(properties: Mapping[str, str]) -> bool:
    """Return whether a table with these properties has Iceberg metadata."""
    try:
        return "iceberg" in TableProperties(dict(properties)).universal_format_enabled_formats
    except InvalidInputError:  # the catalog may return invalid properties
        return False


def uniform_of(snapshot: Snapshot, *, is_asked: bool = False) -> dict[str, Any] | None:
    """Return the Iceberg metadata of a version for the catalog. It is written first if necessary.

    The result is None for a table without Iceberg metadata.

    Args:
        snapshot: the version of the table.
        is_asked: whether to return Iceberg metadata even if the table's properties do not enable
            it.

    Raises:
        InvalidInputError: PyIceberg is not installed, or the version was not written for Iceberg.

    Cost: two requests if the metadata already exists.
    """
    if not is_asked and not shows_iceberg(snapshot.metadata.configuration):
        return None
    if not enabled_versions(snapshot.configuration.properties):
        raise InvalidInputError(
            f"there is no Iceberg metadata of version {snapshot.version} of {snapshot.store.root} "
            "yet: for a catalog that requires it, first set delta.enableIcebergCompatV3 = true, "
            "and then delta.universalFormat.enabledFormats = iceberg in a second statement"
        )
    try:
        from deltalog.iceberg import sync  # noqa: PLC0415  # needs PyIceberg, which is optional
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            f"cannot report the Iceberg metadata of {snapshot.store.root} to its catalog: "
            f"{error.name} is missing; install deltalog[iceberg]"
        ) from error
    found = sync(snapshot)
    return {
        "iceberg": {
            "metadata-location": found.metadata_location,
            "converted-delta-version": found.version,
            "converted-delta-timestamp": snapshot.commit_timestamp_ms,
        }
    }
