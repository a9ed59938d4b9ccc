"""Converting actions from and to JSON objects, which are the lines of a commit.

This module defines the camelCase names of members, and the required members of each action. It
accepts all historical forms of actions: of the first protocol, of drafts, and of today
(requirements B1, B3). The same functions parse rows of a checkpoint, as dicts. Unknown actions and
members are skipped: "Clients must ignore such unrecognized fields".

Protocol: Actions
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa

from deltalog._util.json import JsonObject, dumps
from deltalog._util.kernels import FALSE, Array, compute, pc
from deltalog._util.paths import decode_path, encode_path
from deltalog.errors import (
    InternalError,
    InvalidInputError,
    InvalidMetadataError,
    InvalidProtocolError,
    MalformedLogError,
    UnsupportedFeatureError,
)
from deltalog.protocol.actions import model
from deltalog.protocol.actions.model import DeletionVectorDescriptor


def action_from_json(values: Mapping[str, Any], where: str = "action") -> model.Action | None:
    """Return the action of one line, or None if its kind is unknown.

    Args:
        values: the object of the line, or a row of a checkpoint, in which one member is not null.
        where: position such as `version 12, line 3`, for errors.

    Raises:
        MalformedLogError: a required member is missing, or a member has a wrong type.
    """
    for kind, value in values.items():
        if value is not None and (parse := _PARSERS.get(kind)) is not None:
            return parse(JsonObject(value, f"{where}: {kind}", ERRORS.get(kind, MalformedLogError)))
    return None


def actions_from_json(
    objects: Iterable[Mapping[str, Any]], where: str = "commit"
) -> list[model.Action]:
    """Return the known actions of a commit's lines, in order."""
    found = (
        action_from_json(values, f"{where}, line {number}")
        for number, values in enumerate(objects, 1)
    )
    return [action for action in found if action is not None]


def action_to_json(action: model.Action) -> dict[str, Any]:
    """Return the JSON object of an action, without members that are None."""
    kind, encode = _ENCODERS[type(action)]
    return {kind: encode(action)}


def encode_actions(actions: Iterable[model.Action]) -> bytes:
    """Return the bytes of a commit: one action per line, each with a line end."""
    return b"".join(dumps(action_to_json(action)) + b"\n" for action in actions)


def protocol_from_json(node: JsonObject) -> model.Protocol:
    """Protocol: Protocol Evolution."""
    # The protocol's examples contain `readerVersion` and `writerVersion` (requirement B-05).
    reader = node.optional("minReaderVersion", int)
    writer = node.optional("minWriterVersion", int)
    reader = node.required("readerVersion", int) if reader is None else reader
    writer = node.required("writerVersion", int) if writer is None else writer
    reader_features = node.texts("readerFeatures")
    writer_features = node.texts("writerFeatures")
    return model.Protocol(
        min_reader_version=reader,
        min_writer_version=writer,
        # Ignore empty lists of features, which some writers write although the protocol versions
        # are too low for table features.
        reader_features=(reader_features or None) if reader < 3 else reader_features,
        writer_features=(writer_features or None) if writer < 7 else writer_features,
    )


def metadata_from_json(node: JsonObject) -> model.Metadata:
    """Protocol: Change Metadata."""
    return model.Metadata(
        id=node.optional("id", str) or "",
        schema_string=node.required("schemaString", str),
        partition_columns=node.texts("partitionColumns") or (),
        configuration=node.mapping_of_strings("configuration") or {},
        format=node.child("format", _format_from_json) or model.Format(),
        name=node.optional("name", str),
        description=node.optional("description", str),
        created_time_ms=node.optional("createdTime", int),
    )


def _format_from_json(node: JsonObject) -> model.Format:
    return model.Format(
        provider=node.optional("provider", str) or "parquet",
        options=node.mapping_of_strings("options") or {},
    )


def add_from_json(node: JsonObject) -> model.AddFile:
    """Protocol: Add File and Remove File."""
    # The protocol: "The path is a URI …, which needs to be decoded to get the data file path."
    return model.AddFile(
        path=decode_path(node.required("path", str)),
        partition_values=node.mapping("partitionValues") or {},
        size_bytes=node.required("size", int),
        modification_time_ms=node.optional("modificationTime", int) or 0,
        clustering_provider=node.optional("clusteringProvider", str),
        **_file_members(node),
    )


def remove_from_json(node: JsonObject) -> model.RemoveFile:
    """Protocol: Add File and Remove File."""
    return model.RemoveFile(
        path=decode_path(node.required("path", str)),
        deletion_timestamp_ms=node.optional("deletionTimestamp", int),
        extended_file_metadata=node.optional("extendedFileMetadata", bool),
        partition_values=node.mapping("partitionValues"),
        size_bytes=node.optional("size", int),
        **_file_members(node),
    )


def _file_members(node: JsonObject) -> dict[str, Any]:
    # The first version of the protocol had no `dataChange`. The default is true.
    data_change = node.optional("dataChange", bool)
    return {
        "data_change": True if data_change is None else data_change,
        "stats": node.optional("stats", str),
        "tags": node.mapping("tags"),
        "deletion_vector": node.child("deletionVector", descriptor_from_json),
        "base_row_id": node.optional("baseRowId", int),
        "default_row_commit_version": node.optional("defaultRowCommitVersion", int),
    }


def cdc_from_json(node: JsonObject) -> model.AddCDCFile:
    """Protocol: Add CDC File."""
    return model.AddCDCFile(
        path=decode_path(node.required("path", str)),
        partition_values=node.mapping("partitionValues") or {},
        size_bytes=node.required("size", int),
        data_change=node.optional("dataChange", bool) or False,
        tags=node.mapping("tags"),
    )


def txn_from_json(node: JsonObject) -> model.SetTransaction:
    """Protocol: Transaction Identifiers."""
    return model.SetTransaction(
        app_id=node.required("appId", str),
        version=node.required("version", int),
        last_updated_ms=node.optional("lastUpdated", int),
    )


def domain_from_json(node: JsonObject) -> model.DomainMetadata:
    """Parse a domain, whose configuration is a string, or a map in the draft (requirement B-79).

    Protocol: Domain Metadata
    """
    configuration: str | Mapping[str, str] | None
    if isinstance(node.values.get("configuration"), dict | list):
        configuration = node.mapping_of_strings("configuration")
    else:
        configuration = node.optional("configuration", str)
    return model.DomainMetadata(
        domain=node.required("domain", str),
        configuration="" if configuration is None else configuration,
        removed=node.optional("removed", bool) or False,
    )


def high_water_mark_from_json(node: JsonObject) -> model.RowIdHighWaterMark:
    """Protocol: Row IDs (draft)."""
    return model.RowIdHighWaterMark(
        high_water_mark=node.required("highWaterMark", int),
        preserved_row_ids=node.required("preservedRowIds", bool),
    )


def commit_info_from_json(node: JsonObject) -> model.CommitInfo:
    """Protocol: Commit Provenance Information."""
    return model.CommitInfo(values=node.values)


def checkpoint_metadata_from_json(node: JsonObject) -> model.CheckpointMetadata:
    """Protocol: Checkpoint Metadata."""
    return model.CheckpointMetadata(
        version=node.required("version", int), tags=node.mapping("tags")
    )


def sidecar_from_json(node: JsonObject) -> model.Sidecar:
    """Protocol: Sidecar File Information."""
    return model.Sidecar(
        path=decode_path(node.required("path", str)),
        size_bytes=node.required("sizeInBytes", int),
        modification_time_ms=node.optional("modificationTime", int) or 0,
        tags=node.mapping("tags"),
    )


_PARSERS: Final[Mapping[str, Callable[[JsonObject], model.Action]]] = {
    "add": add_from_json,
    "remove": remove_from_json,
    "cdc": cdc_from_json,
    "metaData": metadata_from_json,
    "protocol": protocol_from_json,
    "txn": txn_from_json,
    "domainMetadata": domain_from_json,
    "commitInfo": commit_info_from_json,
    "rowIdHighWaterMark": high_water_mark_from_json,
    "checkpointMetadata": checkpoint_metadata_from_json,
    "sidecar": sidecar_from_json,
}

ERRORS: Final[Mapping[str, type[MalformedLogError]]] = {
    "metaData": InvalidMetadataError,
    "protocol": InvalidProtocolError,
}
"""The error to raise for a malformed action, by kind. For other kinds, it is MalformedLogError."""


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _protocol(action: model.Protocol) -> dict[str, Any]:
    return _present(
        minReaderVersion=action.min_reader_version,
        minWriterVersion=action.min_writer_version,
        readerFeatures=_listed(action.reader_features),
        writerFeatures=_listed(action.writer_features),
    )


def _listed(values: tuple[str, ...] | None) -> list[str] | None:
    return None if values is None else list(values)


def _metadata(action: model.Metadata) -> dict[str, Any]:
    return _present(
        id=action.id,
        name=action.name,
        description=action.description,
        format={"provider": action.format.provider, "options": dict(action.format.options)},
        schemaString=action.schema_string,
        partitionColumns=list(action.partition_columns),
        configuration=dict(action.configuration),
        createdTime=action.created_time_ms,
    )


def deletion_vector_to_json(vector: model.DeletionVectorDescriptor | None) -> dict[str, Any] | None:
    """Return the JSON object of a descriptor, or None for None."""
    if vector is None:
        return None
    return _present(
        storageType=vector.storage_type,
        pathOrInlineDv=vector.path_or_inline_dv,
        offset=vector.offset,
        sizeInBytes=vector.size_bytes,
        cardinality=vector.cardinality,
        maxRowIndex=vector.max_row_index,
    )


def _mapping(values: Mapping[str, str | None] | None) -> dict[str, str | None] | None:
    return None if values is None else dict(values)


def _add(action: model.AddFile) -> dict[str, Any]:
    return _present(
        path=encode_path(action.path),
        partitionValues=dict(action.partition_values),
        size=action.size_bytes,
        modificationTime=action.modification_time_ms,
        dataChange=action.data_change,
        stats=action.stats,
        tags=_mapping(action.tags),
        deletionVector=deletion_vector_to_json(action.deletion_vector),
        baseRowId=action.base_row_id,
        defaultRowCommitVersion=action.default_row_commit_version,
        clusteringProvider=action.clustering_provider,
    )


def _remove(action: model.RemoveFile) -> dict[str, Any]:
    return _present(
        path=encode_path(action.path),
        deletionTimestamp=action.deletion_timestamp_ms,
        dataChange=action.data_change,
        extendedFileMetadata=action.extended_file_metadata,
        partitionValues=_mapping(action.partition_values),
        size=action.size_bytes,
        stats=action.stats,
        tags=_mapping(action.tags),
        deletionVector=deletion_vector_to_json(action.deletion_vector),
        baseRowId=action.base_row_id,
        defaultRowCommitVersion=action.default_row_commit_version,
    )


def _cdc(action: model.AddCDCFile) -> dict[str, Any]:
    return _present(
        path=encode_path(action.path),
        partitionValues=dict(action.partition_values),
        size=action.size_bytes,
        dataChange=action.data_change,
        tags=_mapping(action.tags),
    )


def _txn(action: model.SetTransaction) -> dict[str, Any]:
    return _present(appId=action.app_id, version=action.version, lastUpdated=action.last_updated_ms)


def _domain(action: model.DomainMetadata) -> dict[str, Any]:
    text = action.configuration
    return {
        "domain": action.domain,
        "configuration": text if isinstance(text, str) else dict(text),
        "removed": action.removed,
    }


def _high_water_mark(action: model.RowIdHighWaterMark) -> dict[str, Any]:
    return {"highWaterMark": action.high_water_mark, "preservedRowIds": action.preserved_row_ids}


def _sidecar(action: model.Sidecar) -> dict[str, Any]:
    return _present(
        path=encode_path(action.path),
        sizeInBytes=action.size_bytes,
        modificationTime=action.modification_time_ms,
        tags=_mapping(action.tags),
    )


_ENCODERS: Final[Mapping[type[model.Action], tuple[str, Callable[[Any], dict[str, Any]]]]] = {
    model.AddFile: ("add", _add),
    model.RemoveFile: ("remove", _remove),
    model.AddCDCFile: ("cdc", _cdc),
    model.Metadata: ("metaData", _metadata),
    model.Protocol: ("protocol", _protocol),
    model.SetTransaction: ("txn", _txn),
    model.DomainMetadata: ("domainMetadata", _domain),
    model.CommitInfo: ("commitInfo", lambda action: dict(action.values)),
    model.RowIdHighWaterMark: ("rowIdHighWaterMark", _high_water_mark),
    model.CheckpointMetadata: (
        "checkpointMetadata",
        lambda action: _present(version=action.version, tags=_mapping(action.tags)),
    ),
    model.Sidecar: ("sidecar", _sidecar),
}


# --- Checking the members of deletion vector descriptors


STORAGE_TYPES: Final = ("u", "i", "p")
REQUIRED: Final = ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality")
_NUMBERS: Final = {"offset": 31, "sizeInBytes": 31, "cardinality": 63}
"""The members that must not be negative → the maximum number of bits of their values."""
_TYPES: Final = {
    **dict.fromkeys(REQUIRED[:2], (str,)),
    **dict.fromkeys(REQUIRED[2:], (int,)),
    **dict.fromkeys(("offset", "maxRowIndex"), (int, type(None))),
}


def descriptor_from_json(node: JsonObject) -> DeletionVectorDescriptor:
    """Return the descriptor in a JSON object, after checking its members.

    Raises:
        MalformedLogError: a member is missing, has a wrong type, or has an invalid value;
            the message contains its name.
        UnsupportedFeatureError: the storage type belongs to an unsupported table feature.
    """
    kind = node.required("storageType", str)
    check_storage_type(kind)
    if kind not in STORAGE_TYPES:
        raise node.error(f"{node.where}.storageType: expected 'u', 'i' or 'p', found {kind!r}")
    text = node.required("pathOrInlineDv", str)
    if not text:
        raise node.error(f"{node.where}.pathOrInlineDv: expected a string, found an empty one")
    for name, bits in _NUMBERS.items():
        found = node.optional(name, int)
        if found is not None and not 0 <= found < 2**bits:
            raise node.error(f"{node.where}.{name}: expected 0 to 2^{bits} - 1, found {found}")
    return DeletionVectorDescriptor(
        storage_type=kind,
        path_or_inline_dv=text,
        offset=node.optional("offset", int),
        size_bytes=node.required("sizeInBytes", int),
        cardinality=node.required("cardinality", int),
        max_row_index=node.optional("maxRowIndex", int),
    )


def check_storage_type(storage_type: str) -> None:
    """Raise for a storage type that belongs to an unsupported table feature.

    Raises:
        UnsupportedFeatureError: the storage type is `r`, which the adaptive metadata RFC proposes.
    """
    if storage_type == "r":
        raise UnsupportedFeatureError(
            table="a table with deletion vectors of storage type 'r'",
            version=None,
            operation="read",
            features=["adaptiveMetadata-preview"],
        )


def have_exact_types(objects: Iterable[dict[str, Any]]) -> bool:
    """Return whether all members have the right JSON type. Arrow would truncate `3.5` to 3."""
    return all(
        type(value.get(name)) in types for value in objects for name, types in _TYPES.items()
    )


def are_sound(vectors: Array) -> bool:
    """Return whether every descriptor of a column has valid values.

    Args:
        vectors: a column of `DELETION_VECTOR_TYPE`, with nulls for files without a vector.

    Cost: a few kernels over the column; nothing if it has no vector.
    """
    if vectors.null_count == len(vectors):
        return True
    return pc.all(_which_are_sound(vectors)).as_py() is not False


def check_column(vectors: Array, where: str) -> None:
    """Raise if a descriptor in a column has an invalid value.

    Args:
        vectors: a column of `DELETION_VECTOR_TYPE`, with nulls for files without a vector.
        where: position of the column, for the message.

    Raises:
        MalformedLogError, UnsupportedFeatureError: see `descriptor_from_json`.
    """
    if are_sound(vectors):
        return
    row = pc.index(_which_are_sound(vectors), FALSE).as_py()
    at = f"{where}, row {row}: deletionVector"
    descriptor_from_json(JsonObject(vectors[row].as_py(), at))
    raise InternalError(f"{at} breaks a rule for columns, but no rule for values")


def _which_are_sound(vectors: Array) -> Array:
    kind, text = (compute.struct_field(vectors, name) for name in REQUIRED[:2])
    rules: list[Array] = [
        compute.is_in(kind, value_set=pa.array(STORAGE_TYPES)),
        compute.not_equal(text, ""),
    ]
    for name in _NUMBERS:
        number = compute.struct_field(vectors, name)
        # NULL is valid only for an optional number.
        default = pa.scalar(value=name not in REQUIRED)
        rules.append(compute.fill_null(compute.greater_equal(number, 0), default))
    sound: Array = compute.fill_null(reduce(compute.and_, rules), FALSE)
    return compute.or_(compute.is_null(vectors), sound)


# --- Checking the combination of actions in a commit


def check_commit(actions: Sequence[model.Action]) -> None:
    """Raise if actions of a commit contradict each other.

    An `add` and a `remove` may have the same path if their deletion vectors differ.

    Raises:
        InvalidInputError: actions contradict each other, or a number is out of range.
    """
    _check_counters(actions)
    # The protocol: "A single log entry MUST NOT include more than one action that reconciles with
    # each other."
    for kind in (model.Metadata, model.Protocol, model.CommitInfo, model.RowIdHighWaterMark):
        if sum(isinstance(action, kind) for action in actions) > 1:
            raise InvalidInputError(f"cannot commit more than one {kind.__name__} action")
    adds = [action for action in actions if isinstance(action, model.AddFile)]
    removes = [action for action in actions if isinstance(action, model.RemoveFile)]
    # The protocol: "It is required that there is at most one file action of the same type for any
    # `path` (regardless of `dvId`)."
    _refuse_twice("add actions of path", (add.path for add in adds))
    _refuse_twice("remove actions of path", (remove.path for remove in removes))
    _refuse_twice(
        "actions of transaction",
        (action.app_id for action in actions if isinstance(action, model.SetTransaction)),
    )
    _refuse_twice(
        "actions of domain",
        (action.domain for action in actions if isinstance(action, model.DomainMetadata)),
    )
    both = {_file_key(add) for add in adds} & {_file_key(remove) for remove in removes}
    if both:
        raise InvalidInputError(f"cannot add and remove the same file in one commit: {min(both)!r}")


def _check_counters(actions: Sequence[model.Action]) -> None:
    """Raise for numbers out of range, which would make the table unreadable.

    Raises:
        InvalidInputError: the message contains the number.
    """
    for action in actions:
        _check_widths(type(action).__name__, action)
        vector = getattr(action, "deletion_vector", None)
        if vector is not None:
            _check_widths("deletionVector", vector)


def _check_widths(kind: str, values: object) -> None:
    for name, bits in _WIDTHS.get(type(values), {}).items():
        number = getattr(values, name)
        if number is not None and not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise InvalidInputError(
                f"cannot commit {kind} with {name} {number}: it does not fit {bits} bits"
            )


_WIDTHS: Final[Mapping[type, Mapping[str, int]]] = {
    model.AddFile: {
        "size_bytes": 64,
        "modification_time_ms": 64,
        "base_row_id": 64,
        "default_row_commit_version": 64,
    },
    model.RemoveFile: {
        "size_bytes": 64,
        "deletion_timestamp_ms": 64,
        "base_row_id": 64,
        "default_row_commit_version": 64,
    },
    model.AddCDCFile: {"size_bytes": 64},
    model.SetTransaction: {"version": 64, "last_updated_ms": 64},
    model.RowIdHighWaterMark: {"high_water_mark": 64},
    model.Protocol: {"min_reader_version": 32, "min_writer_version": 32},
    model.DeletionVectorDescriptor: {
        "size_bytes": 32,
        "offset": 32,
        "cardinality": 64,
        "max_row_index": 64,
    },
}


def _file_key(action: model.AddFile | model.RemoveFile) -> tuple[str, str]:
    vector = action.deletion_vector
    return action.path, "" if vector is None else vector.unique_id


def _refuse_twice(what: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInputError(f"cannot commit two {what} {twice[0]!r}")
