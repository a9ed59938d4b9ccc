"""The version checksum (`.crc`): a summary of one version beside its commit.

Owns the file's form. A checksum is not part of the table's state: readers work without it, and the
log wins where the two disagree. `upkeep.checksum` computes each from the one before.

Protocol: Version Checksum File
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deltalog._json import JsonObject, dumps, loads
from deltalog.actions import codec
from deltalog.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction
from deltalog.errors import MalformedLogError


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChecksum:
    """The summary of a version. None is a value that the writer did not record.

    Args:
        table_size_bytes: of all live files.
        num_files: number of live files.
        protocol: of the version.
        metadata: of the version.
        txn_id: the writer's id of the commit attempt.
        in_commit_timestamp_ms: of the commit.
        set_transactions: of all applications.
        domain_metadata: without removed domains.
        num_deleted_records: rows deleted by deletion vectors.
        num_deletion_vectors: number of files that have one.
        file_size_histogram: as stored.
        deleted_record_counts: number of files by number of deleted rows, for each bin.
    """

    table_size_bytes: int
    num_files: int
    protocol: Protocol
    metadata: Metadata
    txn_id: str | None = None
    in_commit_timestamp_ms: int | None = None
    set_transactions: tuple[SetTransaction, ...] | None = None
    domain_metadata: tuple[DomainMetadata, ...] | None = None
    num_deleted_records: int | None = None
    num_deletion_vectors: int | None = None
    file_size_histogram: dict[str, Any] | None = None
    deleted_record_counts: tuple[int, ...] | None = None


def parse_checksum(data: bytes, where: str = "checksum") -> VersionChecksum | None:
    """The checksum in `data`, or None if a required member is wrong or missing."""
    try:
        node = JsonObject(loads(data, where), where)
        protocol = node.child("protocol", codec.protocol_from_json)
        metadata = node.child("metadata", codec.metadata_from_json)
        if protocol is None or metadata is None:
            return None
        # Older versions of Delta Spark write histogramOpt (ledger B-19).
        histogram = node.values.get("fileSizeHistogram", node.values.get("histogramOpt"))
        return VersionChecksum(
            table_size_bytes=node.required("tableSizeBytes", int),
            num_files=node.required("numFiles", int),
            protocol=protocol,
            metadata=metadata,
            txn_id=node.optional("txnId", str),
            in_commit_timestamp_ms=node.optional("inCommitTimestampOpt", int),
            set_transactions=_listed(node, "setTransactions", codec.txn_from_json),
            domain_metadata=_listed(node, "domainMetadata", codec.domain_from_json),
            num_deleted_records=node.optional("numDeletedRecordsOpt", int),
            num_deletion_vectors=node.optional("numDeletionVectorsOpt", int),
            file_size_histogram=histogram if isinstance(histogram, dict) else None,
            deleted_record_counts=node.child("deletedRecordCountsHistogramOpt", _counts),
        )
    except MalformedLogError:
        return None


def encode_checksum(checksum: VersionChecksum) -> bytes:
    """The file's content; values that are None are omitted.

    Protocol: Version Checksum Schema
    """
    members: dict[str, Any] = {
        "txnId": checksum.txn_id,
        "tableSizeBytes": checksum.table_size_bytes,
        "numFiles": checksum.num_files,
        "numDeletedRecordsOpt": checksum.num_deleted_records,
        "numDeletionVectorsOpt": checksum.num_deletion_vectors,
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": checksum.in_commit_timestamp_ms,
        "setTransactions": _objects(checksum.set_transactions),
        "domainMetadata": _objects(checksum.domain_metadata),
        "metadata": codec.action_to_json(checksum.metadata)["metaData"],
        "protocol": codec.action_to_json(checksum.protocol)["protocol"],
        "fileSizeHistogram": checksum.file_size_histogram,
    }
    if checksum.deleted_record_counts is not None:
        counts = {"deletedRecordCounts": list(checksum.deleted_record_counts)}
        members["deletedRecordCountsHistogramOpt"] = counts
    return dumps({name: value for name, value in members.items() if value is not None})


def _objects(actions: tuple[SetTransaction, ...] | tuple[DomainMetadata, ...] | None) -> Any:
    if actions is None:
        return None
    return [value for action in actions for value in codec.action_to_json(action).values()]


def _counts(node: JsonObject) -> tuple[int, ...] | None:
    values = node.values.get("deletedRecordCounts")
    if isinstance(values, list) and all(type(value) is int for value in values):
        return tuple(values)
    return None


def _listed(node: JsonObject, name: str, parse: Any) -> Any:
    values = node.values.get(name)
    if values is None:
        return None
    if not isinstance(values, list):
        raise MalformedLogError(f"{node.where}.{name}: expected a list")
    return tuple(parse(JsonObject(value, f"{node.where}.{name}")) for value in values)
