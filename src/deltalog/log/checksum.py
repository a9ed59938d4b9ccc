"""The version checksum (`.crc`): a summary of one version beside its commit.

A checksum is not part of the table's state: readers do not need it, and if it contradicts the log,
the log is right. A writer usually computes a checksum from the checksum of the previous version.

Protocol: Version Checksum File
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.json import JsonObject, dumps, loads
from deltalog._util.kernels import compute
from deltalog.errors import MalformedLogError
from deltalog.protocol.actions import codec
from deltalog.protocol.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChecksum:
    """The summary of a version. None means that the writer did not record the value.

    Args:
        table_size_bytes: total size of all live files.
        num_files: number of live files.
        protocol: the version's protocol.
        metadata: the version's metadata.
        txn_id: id of the transaction that wrote the version.
        in_commit_timestamp_ms: in-commit timestamp of the version.
        set_transactions: the application transactions of all applications.
        domain_metadata: the metadata domains, without removed domains.
        num_deleted_records: number of rows that deletion vectors delete.
        num_deletion_vectors: number of files with a deletion vector.
        file_size_histogram: the histogram of file sizes, as in the file.
        deleted_record_counts: a histogram: for each range of the number of deleted rows, the number
            of files.
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
    """Parse a checksum; return None if a required member is invalid or missing."""
    try:
        node = JsonObject(loads(data, where), where)
        protocol = node.child("protocol", codec.protocol_from_json)
        metadata = node.child("metadata", codec.metadata_from_json)
        if protocol is None or metadata is None:
            return None
        # Older versions of Delta Spark write `histogramOpt` instead (requirement B-19).
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
    """Return the file's content; values that are None are omitted.

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


# --- Histograms of file sizes and of deleted rows


_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_FEW: Final = 1000

# The lower bounds of the bins, as in Delta Spark. The bins are narrow around the usual target file
# sizes.
FILE_SIZE_BOUNDARIES: Final = (
    0,
    *(8 * _KIB << step for step in range(10)),
    *range(8 * _MIB, 40 * _MIB, 4 * _MIB),
    *range(40 * _MIB, 120 * _MIB, 8 * _MIB),
    *range(120 * _MIB, 144 * _MIB, 4 * _MIB),
    *range(144 * _MIB, 576 * _MIB, 16 * _MIB),
    576 * _MIB,
    *range(640 * _MIB, 1024 * _MIB, 64 * _MIB),
    *range(1024 * _MIB, 1408 * _MIB, 64 * _MIB),
    *range(1408 * _MIB, 2048 * _MIB, 128 * _MIB),
    *range(2048 * _MIB, 4096 * _MIB, 256 * _MIB),
    *(4 * _GIB << step for step in range(7)),
)
DELETED_COUNT_BOUNDARIES: Final = (0, *(10**power for power in range(8)), 2**31 - 1)


def histogram(values: pa.ChunkedArray[Any], boundaries: Sequence[int]) -> tuple[list[int], ...]:
    """Return the number and the sum of the values in each bin.

    Args:
        values: integers; NULLs are ignored.
        boundaries: the lower bound of each bin, ascending. The last bin has no upper bound.

    Returns:
        The numbers and the sums.

    Cost: a few vectorised kernels for each bin.
    """
    if len(values) <= _FEW:
        return _histogram_of_few(
            [value for value in values.to_pylist() if value is not None], boundaries
        )
    above: list[tuple[int, int]] = []
    rest: Any = values.drop_null()
    for start in boundaries:  # `rest` contains the values of at least `start`
        rest = rest.filter(compute.greater_equal(rest, start))
        above.append((len(rest), compute.sum(rest).as_py() or 0))
    above.append((0, 0))
    return (
        [here[0] - further[0] for here, further in pairwise(above)],
        [here[1] - further[1] for here, further in pairwise(above)],
    )


def _histogram_of_few(
    values: Sequence[int], boundaries: Sequence[int]
) -> tuple[list[int], list[int]]:
    counts, sums = [0] * len(boundaries), [0] * len(boundaries)
    for value in values:
        place = bisect_right(boundaries, value) - 1
        if place >= 0:
            counts[place] += 1
            sums[place] += value
    return counts, sums
