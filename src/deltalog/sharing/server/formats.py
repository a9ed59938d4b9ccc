"""The response format of an answer, and the two lines with which every answer starts.

This module chooses the format: `parquet` supports only plain files, `delta` supports the features
that the client lists. Two kinds of features are neither required of a client nor sent: features of
checkpoints, and features that a table lists but does not use.

Protocol: Delta Sharing Capabilities Header, Protocol, Metadata (both formats)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import dumps, loads
from deltalog.protocol.actions.model import Metadata, Protocol
from deltalog.protocol.column_mapping import Mode
from deltalog.protocol.features import canonical_name, check_readable, find_feature
from deltalog.protocol.features.schema_needs import (
    has_types_of,
    has_variant,
)
from deltalog.sharing.server.faults import unsupported
from deltalog.sharing.wire.lines import (
    DeltaMetadata,
    DeltaProtocol,
    ParquetMetadata,
    ParquetProtocol,
)
from deltalog.sharing.wire.requests import DELTA, PARQUET, Capabilities, encode_capabilities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.sharing.wire.lines import Line

_COMMIT_PROPERTIES: Final = frozenset(
    {
        "delta.enableInCommitTimestamps",
        "delta.inCommitTimestampEnablementVersion",
        "delta.inCommitTimestampEnablementTimestamp",
    }
)
_CHECKPOINT_ONLY: Final = frozenset({"v2Checkpoint", "vacuumProtocolCheck"})


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """The response format of an answer.

    Args:
        name: `parquet` or `delta`.
        protocol: the protocol that the format `delta` sends.
        ends: whether the last line is an `endStreamAction`.
    """

    name: str
    protocol: Protocol
    ends: bool = False

    @property
    def is_delta(self) -> bool:
        """Whether the lines wrap actions of the Delta log."""
        return self.name == DELTA

    @property
    def header(self) -> str:
        """Return the answer's header `delta-sharing-capabilities` (SHARE-CAP-08, SHARE-CAP-10)."""
        return encode_capabilities(
            Capabilities(response_formats=(self.name,), include_end_stream_action=self.ends)
        )


def choose_format(capabilities: Capabilities, snapshot: Snapshot) -> ResponseFormat:
    """Return the format for the files of one version.

    Raises:
        Fault: 400 if the client cannot read this version in any format that it accepts.
    """
    return _choose(capabilities, snapshot.protocol, needed_features(snapshot))


def choose_view_format(
    capabilities: Capabilities, configuration: TableConfiguration
) -> ResponseFormat:
    """Return the format for the files of a view; clients need every feature that it lists.

    Raises:
        Fault: 400 if the client cannot read the view in any format that it accepts.
    """
    protocol = configuration.protocol
    needed = {canonical_name(name): name for name in protocol.reader_features or ()}
    return _choose(capabilities, protocol, needed)


def choose_range_format(
    capabilities: Capabilities, first: Snapshot, last: Snapshot
) -> ResponseFormat:
    """Return the format for the changes of a range of versions.

    All listed features are needed: an earlier version may use a feature that the last one does not
    use.

    Raises:
        Fault: 400 if the client cannot read the range in any format that it accepts.
    """
    needed = needed_features(first, whole_history=True)
    needed |= needed_features(last, whole_history=True)
    return _choose(capabilities, last.protocol, needed)


def _choose(
    capabilities: Capabilities, protocol: Protocol, needed: Mapping[str, str]
) -> ResponseFormat:
    formats = [name for name in capabilities.formats if name in {PARQUET, DELTA}]
    ends = capabilities.include_end_stream_action
    if not formats:
        raise unsupported(
            f"none of the requested response formats is known; expected {PARQUET} or {DELTA}"
        )
    # The protocol: "The server may choose to respond in parquet format if the table does not have
    # any advanced features" (SHARE-CAP-04).
    if PARQUET in formats and not needed:
        return ResponseFormat(PARQUET, protocol, ends)
    # The protocol: "If there's only one responseFormat specified, the server must respect [it]".
    if DELTA not in formats:
        raise unsupported(
            "the table has features that the response format parquet does not have: "
            f"{', '.join(sorted(needed))}; ask with responseformat=delta and these readerfeatures"
        )
    missing = [
        spelled
        for name, spelled in needed.items()
        if not _accepted_names(name, spelled) & capabilities.reader_features
    ]
    if missing:
        raise unsupported(
            "Unsupported Delta Table Properties: the table needs the reader features "
            f"{', '.join(sorted(missing))}; name them as readerfeatures"
        )
    return ResponseFormat(DELTA, _without_unused(protocol, needed), ends)


def needed_features(snapshot: Snapshot, *, whole_history: bool = False) -> dict[str, str]:
    """Return the reader features that a client must support: a mapping from name to spelling.

    Raises:
        DeltaProtocolError: deltalog itself cannot read the table.
    """
    check_readable(snapshot.configuration, table=snapshot.store.root, version=snapshot.version)
    protocol = snapshot.protocol
    listed = {canonical_name(name): name for name in protocol.reader_features or ()}
    if snapshot.configuration.column_mapping_mode is not Mode.NONE:
        # A protocol with reader version 2 does not list its features. Some tables list column
        # mapping only as a writer feature (CM-02).
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
        # The protocol of a table still lists a feature after its property is disabled or its
        # columns are dropped.
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


def _accepted_names(name: str, spelled: str) -> frozenset[str]:
    """Return the names by which a client may list a feature, in lower case (requirement B-95)."""
    feature = find_feature(name)
    aliases = () if feature is None else (feature.name, *feature.aliases)
    return frozenset(one.lower() for one in (name, spelled, *aliases))


def _without_unused(protocol: Protocol, needed: Mapping[str, str]) -> Protocol:
    """Return the protocol without the reader features that the answer does not need."""
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
    """Return the protocol with reader version 1, which every reader supports."""
    if protocol.min_writer_version < 7:
        return replace(protocol, min_reader_version=1)
    return Protocol(min_reader_version=1, min_writer_version=7, writer_features=writer_features)


def head_lines(
    response_format: ResponseFormat,
    configuration: TableConfiguration,
    *,
    protocol_version: int | None = None,
    **metadata: Any,
) -> tuple[Line, Line]:
    """Return the first two lines of an answer.

    Args:
        response_format: response format of the answer.
        configuration: configuration of the table or the view.
        protocol_version: table version of the protocol, if historical protocols were requested.
        metadata: arguments of `metadata_line`.
    """
    protocol: Line = ParquetProtocol()
    if response_format.is_delta:
        protocol = DeltaProtocol(protocol=response_format.protocol, version=protocol_version)
    return protocol, metadata_line(response_format, configuration, **metadata)


def metadata_line(
    response_format: ResponseFormat,
    configuration: TableConfiguration,
    *,
    history_shared: bool,
    version: int | None = None,
    size_bytes: int | None = None,
    num_files: int | None = None,
) -> ParquetMetadata | DeltaMetadata:
    """Return the line with the metadata of a version."""
    metadata = configuration.metadata
    if response_format.is_delta:
        return DeltaMetadata(
            metadata=_for_recipients(metadata),
            version=version,
            size_bytes=size_bytes,
            num_files=num_files,
        )
    has_feed = history_shared and configuration.properties.enable_change_data_feed
    return ParquetMetadata(
        id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        schema_string=schema_without_metadata(metadata.schema_string),
        partition_columns=metadata.partition_columns,
        # As in the reference server, send only this property, and omit the prefix `delta.`
        # (SHARE-META-06).
        configuration={"enableChangeDataFeed": "true"} if has_feed else {},
        version=version,
        size_bytes=size_bytes,
        num_files=num_files,
    )


def _for_recipients(metadata: Metadata) -> Metadata:
    """Return the metadata without storage locations and without in-commit timestamps.

    The official client writes a log of its own from the answer, and fails if the in-commit
    timestamps are missing in that log. Lines of changes contain the commit time anyway.
    """
    kept = without_locations(metadata.configuration)
    for name in _COMMIT_PROPERTIES & kept.keys():
        del kept[name]
    options = without_locations(metadata.format.options)
    return replace(metadata, configuration=kept, format=replace(metadata.format, options=options))


def without_locations(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties or tags except those that contain a storage location (D-77)."""
    return {
        key: value
        for key, value in values.items()
        if value is None or ("://" not in value and not value.startswith("/"))
    }


def schema_without_metadata(schema_string: str) -> str:
    """Return the schema without the metadata of its columns, except comments (SHARE-META-06)."""
    return dumps(_without_metadata(loads(schema_string, "schemaString"))).decode()


def _without_metadata(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_metadata(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: _without_metadata(value) for key, value in node.items() if key != "metadata"}
    if "metadata" in node:
        comment = (node["metadata"] or {}).get("comment")
        found["metadata"] = {} if comment is None else {"comment": comment}
    return found
