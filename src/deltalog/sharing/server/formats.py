"""Which response format answers, and the two lines that every answer starts with.

Owns which table can be told in which format: the format `parquet` knows plain files only, the
format `delta` whatever features its client names. Features that only concern checkpoints, and ones
that a table lists without using them, keep nobody out: no client of a share sees them.

Protocol: Delta Sharing Capabilities Header, Protocol, Metadata (both formats)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltalog._json import dumps, loads
from deltalog.actions.model import Protocol
from deltalog.column_mapping import Mode
from deltalog.features import canonical_name, check_readable, find_feature
from deltalog.features.schema_traits import has_types_of, has_variant
from deltalog.sharing.server.faults import unsupported
from deltalog.sharing.wire import (
    DELTA,
    PARQUET,
    Capabilities,
    DeltaMetadata,
    DeltaProtocol,
    ParquetMetadata,
    ParquetProtocol,
    encode_capabilities,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from deltalog.actions.model import Metadata
    from deltalog.configuration import TableConfiguration
    from deltalog.snapshot import Snapshot

_OF_COMMITS: Final = frozenset(
    {
        "delta.enableInCommitTimestamps",
        "delta.inCommitTimestampEnablementVersion",
        "delta.inCommitTimestampEnablementTimestamp",
    }
)
_CHECKPOINT_ONLY: Final = frozenset({"v2Checkpoint", "vacuumProtocolCheck"})


@dataclass(frozen=True, slots=True)
class Format:
    """How an answer is written.

    Args:
        name: `parquet` or `delta`.
        protocol: what the format `delta` tells of the protocol.
        ends: whether the last line is an `endStreamAction`.
    """

    name: str
    protocol: Protocol
    ends: bool = False

    @property
    def is_delta(self) -> bool:
        """Whether lines wrap actions of the log."""
        return self.name == DELTA

    @property
    def header(self) -> str:
        """What the answer says of itself (ledger SHARE-CAP-08, SHARE-CAP-10)."""
        return encode_capabilities(
            Capabilities(response_formats=(self.name,), include_end_stream_action=self.ends)
        )


def choose_format(capabilities: Capabilities, snapshot: Snapshot) -> Format:
    """The format that the client takes and one version can be told in.

    Raises:
        Fault: 400: the client cannot read this table, in any format it takes.
    """
    return _chosen(capabilities, snapshot.protocol, needed_features(snapshot))


def choose_format_of_plain(capabilities: Capabilities, configuration: TableConfiguration) -> Format:
    """As `choose_format`, for files that were written for the answer: what is listed is needed."""
    protocol = configuration.protocol
    needed = {canonical_name(name): name for name in protocol.reader_features or ()}
    return _chosen(capabilities, protocol, needed)


def choose_format_of_range(capabilities: Capabilities, first: Snapshot, last: Snapshot) -> Format:
    """As `choose_format`, for the changes from one version to another.

    A feature that is only listed may have been in use in a version between.
    """
    needed = needed_features(first, whole_history=True)
    needed |= needed_features(last, whole_history=True)
    return _chosen(capabilities, last.protocol, needed)


def _chosen(capabilities: Capabilities, protocol: Protocol, needed: Mapping[str, str]) -> Format:
    formats = [name for name in capabilities.formats if name in {PARQUET, DELTA}]
    ends = capabilities.include_end_stream_action
    if not formats:
        raise unsupported(
            f"no response format that was asked for is known; expected {PARQUET} or {DELTA}"
        )
    # With a choice the older format is used wherever it can tell the table (SHARE-CAP-04).
    if PARQUET in formats and not needed:
        return Format(PARQUET, protocol, ends)
    if DELTA not in formats:
        raise unsupported(
            "the table has features that the response format parquet cannot tell: "
            f"{', '.join(sorted(needed))}; ask with responseformat=delta and these readerfeatures"
        )
    missing = [
        spelled
        for name, spelled in needed.items()
        if not _names_of(name, spelled) & capabilities.reader_features
    ]
    if missing:
        raise unsupported(
            f"Unsupported Delta Table Properties: the table needs the reader features "
            f"{', '.join(sorted(missing))}; name them as readerfeatures"
        )
    return Format(DELTA, told_protocol(protocol, needed), ends)


def needed_features(snapshot: Snapshot, *, whole_history: bool = False) -> dict[str, str]:
    """The reader features without which this version is read wrongly: name → spelling.

    Raises:
        DeltaProtocolError: deltalog itself cannot read the table.
    """
    check_readable(snapshot.configuration, table=snapshot.store.root, version=snapshot.version)
    protocol = snapshot.protocol
    listed = {canonical_name(name): name for name in protocol.reader_features or ()}
    if snapshot.configuration.column_mapping_mode is not Mode.NONE:
        # Of reader version 2, or of tables that have it in the writers' list alone (CM-02).
        listed.setdefault("columnMapping", "columnMapping")
    return {
        name: spelled
        for name, spelled in listed.items()
        if name not in _CHECKPOINT_ONLY
        and ((whole_history and name == "deletionVectors") or _is_used(name, snapshot))
    }


def _is_used(name: str, snapshot: Snapshot) -> bool:
    configuration = snapshot.configuration
    match name:
        case "columnMapping":
            return configuration.column_mapping_mode is not Mode.NONE
        case "timestampNtz":
            return has_types_of(configuration.schema, "timestampNtz")
        case "variantType" | "variantShredding":
            return has_variant(configuration.schema)
        case "deletionVectors":
            return configuration.properties.enable_deletion_vectors or _has_vectors(snapshot)
        case "typeWidening":
            text = snapshot.metadata.schema_string
            return configuration.properties.enable_type_widening or "delta.typeChanges" in text
        case _:
            return True


def _has_vectors(snapshot: Snapshot) -> bool:
    column = snapshot.files(["deletionVector"]).column("deletionVector")
    return bool(column.null_count < len(column))


def _names_of(name: str, spelled: str) -> frozenset[str]:
    """How a client may call a feature, in lower case (ledger B-95)."""
    feature = find_feature(name)
    aliases = () if feature is None else (feature.name, *feature.aliases)
    return frozenset(one.lower() for one in (name, spelled, *aliases))


def told_protocol(protocol: Protocol, needed: Mapping[str, str]) -> Protocol:
    """The protocol without the reader features that are not needed to read the answer."""
    if protocol.min_reader_version < 3:
        return protocol if needed or protocol.min_reader_version == 1 else _lowered(protocol, ())
    listed = {canonical_name(name) for name in protocol.reader_features or ()}
    kept = [name for name in protocol.reader_features or () if canonical_name(name) in needed]
    kept += [spelled for name, spelled in needed.items() if name not in listed]
    dropped = set(protocol.reader_features or ()) - set(kept)
    writer = tuple(name for name in protocol.writer_features or () if name not in dropped)
    if not kept:
        return _lowered(protocol, writer)
    return replace(protocol, reader_features=tuple(kept), writer_features=writer)


def _lowered(protocol: Protocol, writer_features: tuple[str, ...]) -> Protocol:
    """A protocol that any reader understands."""
    if protocol.min_writer_version < 7:
        return replace(protocol, min_reader_version=1)
    return Protocol(min_reader_version=1, min_writer_version=7, writer_features=writer_features)


def protocol_line(form: Format, version: int | None = None) -> ParquetProtocol | DeltaProtocol:
    """The first line of an answer."""
    if form.is_delta:
        return DeltaProtocol(protocol=form.protocol, version=version)
    return ParquetProtocol()


def metadata_line(
    form: Format,
    configuration: TableConfiguration,
    *,
    version: int | None = None,
    size_bytes: int | None = None,
    num_files: int | None = None,
    history_shared: bool = False,
) -> ParquetMetadata | DeltaMetadata:
    """The second line of an answer."""
    metadata = configuration.metadata
    if form.is_delta:
        return DeltaMetadata(
            metadata=_for_others(metadata),
            version=version,
            size_bytes=size_bytes,
            num_files=num_files,
        )
    has_feed = history_shared and configuration.properties.enable_change_data_feed
    return ParquetMetadata(
        id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        schema_string=bare_schema(metadata.schema_string),
        partition_columns=metadata.partition_columns,
        # The client's word for it, without the table's other properties (SHARE-META-06).
        configuration={"enableChangeDataFeed": "true"} if has_feed else {},
        version=version,
        size_bytes=size_bytes,
        num_files=num_files,
    )


def _for_others(metadata: Metadata) -> Metadata:
    """The metadata without properties that tell where something is stored (D-77).

    Nor that commits carry their own times: a client that makes a log of its own of the answer has
    no such commits, and the official one fails on that. Each line tells the time anyway.
    """
    kept = {
        key: value
        for key, value in metadata.configuration.items()
        if "://" not in value and not value.startswith("/") and key not in _OF_COMMITS
    }
    options = {key: value for key, value in metadata.format.options.items() if "://" not in value}
    return replace(
        metadata,
        configuration=kept,
        format=replace(metadata.format, options=options),
    )


def bare_schema(schema_string: str) -> str:
    """The schema without its columns' metadata, but for comments (SHARE-META-06)."""
    return dumps(_bare(loads(schema_string, "schemaString"))).decode()


def _bare(node: Any) -> Any:
    if isinstance(node, list):
        return [_bare(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: _bare(value) for key, value in node.items() if key != "metadata"}
    if "metadata" in node:
        comment = (node["metadata"] or {}).get("comment")
        found["metadata"] = {} if comment is None else {"comment": comment}
    return found
