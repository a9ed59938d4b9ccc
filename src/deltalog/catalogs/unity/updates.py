"""What a commit changes in a catalog's entry of a table, as updates of the Delta API.

Owns which properties are the catalog's own, and the counts that are reported of a commit.

Protocol: UC Delta API (updateTable, createTable, reportMetrics)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog.catalogs.unity.messages import (
    FEATURE_PREFIX,
    columns_of,
    domains_to_json,
    protocol_to_json,
    removed_domains,
)
from deltalog.catalogs.unity.uniform import uniform_of
from deltalog.errors import InvalidInputError
from deltalog.kernels import compute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.actions import Metadata
    from deltalog.catalog import RatifiedCommit
    from deltalog.catalogs.protocol import StagedTable
    from deltalog.snapshot import Snapshot
    from deltalog.transaction.winners import WinningCommit

# The catalog derives them itself; "clients must not send [them]".
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
    """The proposal of a staged commit.

    Args:
        commit: that is proposed.
        ratified: its file.
        uniform: what the catalog is told of the table's Iceberg metadata; see `uniform_of`.

    Raises:
        InvalidInputError: it has no in-commit timestamp, which catalogs require.
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
    """Tell up to which version commits stand in the log under their final names."""
    return {"action": "set-latest-backfilled-version", "latest-published-version": version}


def updates_of(commit: WinningCommit, before: Metadata | None) -> list[dict[str, Any]]:
    """What a commit changes besides rows.

    Args:
        commit: with the new metadata, protocol and domains.
        before: the metadata of the version below it; None if the commit does not change it.
    """
    updates: list[dict[str, Any]] = []
    if commit.metadata is not None and before is not None:
        updates += metadata_updates(before, commit.metadata)
    if commit.protocol is not None:
        protocol = protocol_to_json(commit.protocol)
        updates.append({"action": "set-protocol", "protocol": protocol})
    domains = commit.domains.values()
    if told := domains_to_json(domains):
        updates.append({"action": "set-domain-metadata", "updates": told})
    if removed := removed_domains(domains):
        updates.append({"action": "remove-domain-metadata", "domains": removed})
    return updates


def metadata_updates(before: Metadata, after: Metadata) -> list[dict[str, Any]]:
    """What differs between two metadata actions of a table."""
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
    """The properties that are set and removed between two states."""
    old, new = own_properties(before), own_properties(after)
    updates: list[dict[str, Any]] = []
    if changed := {key: text for key, text in new.items() if old.get(key) != text}:
        updates.append({"action": "set-properties", "updates": changed})
    if removed := sorted(old.keys() - new.keys()):
        updates.append({"action": "remove-properties", "removals": removed})
    return updates


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table without those that its catalog derives."""
    return {
        key: text
        for key, text in properties.items()
        if key not in _DERIVED and not key.startswith(FEATURE_PREFIX)
    }


def creation(staged: StagedTable, snapshot: Snapshot, time_ms: int) -> dict[str, Any]:
    """What `createTable` is told of a staged table, besides its name.

    Args:
        staged: the table.
        snapshot: its version 0.
        time_ms: of that version.
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
    """What is reported of a commit: its files, and its rows where the history has them."""
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
