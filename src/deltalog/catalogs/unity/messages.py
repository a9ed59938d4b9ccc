"""Messages of Unity Catalog's Delta API: conversion between JSON and deltalog's values.

This module handles the API's spelling of names (`kebab-case`, also inside types), and checks the
answers. It sends no requests.

Protocol: UC Delta API (delta.yaml)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import JsonObject, dumps, loads
from deltalog._util.paths import FileInfo
from deltalog.catalogs.locations import LentCredential, check_staged_name
from deltalog.catalogs.protocol import CatalogTable, Name, TableType
from deltalog.errors import DeltaError, MalformedMessageError
from deltalog.log.context import LogTail, MaintenanceOperation, RatifiedCommit
from deltalog.log.names import STAGED_DIRECTORY
from deltalog.protocol.features.clustering import CLUSTERING_DOMAIN
from deltalog.protocol.features.registry import canonical_name
from deltalog.protocol.features.row_ids import ROW_TRACKING_DOMAIN
from deltalog.schema.codec import parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deltalog.protocol.actions import DomainMetadata, Metadata
    from deltalog.protocol.actions import Protocol as ProtocolAction
    from deltalog.schema import StructType

CATALOG_MANAGED: Final = "catalogManaged"
FEATURE_PREFIX: Final = "delta.feature."
# The options that a catalog may set for a table's store. None of them sets the address of a server.
_CREDENTIAL_OPTIONS: Final = {
    "s3.access-key-id": "aws_access_key_id",
    "s3.secret-access-key": "aws_secret_access_key",
    "s3.session-token": "aws_session_token",
    "azure.sas-token": "azure_storage_sas_token",
    "gcs.oauth-token": "google_oauth_token",
}
# The members of types: name in a Delta schema → name in the API.
_TYPE_MEMBERS: Final = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
}
_LOG_MEMBERS: Final = {wire: own for own, wire in _TYPE_MEMBERS.items()}
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTable:
    """The catalog's answer to a request for a table.

    Args:
        name: the parts of the table's name.
        table_id: the table's id, a UUID.
        location: the location that the catalog returned. It is not checked yet.
        table_type: the type of the table in the catalog.
        etag: a string that identifies the state of the catalog's entry.
        properties: the copy of the table's properties in the catalog.
        columns: the schema in the JSON of the API; None if the catalog has no copy.
        tail: the ratified commits, and the latest version.
    """

    name: Name
    table_id: str
    location: str
    table_type: TableType
    etag: str
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: Any = field(default=None, repr=False)
    tail: LogTail = field(default_factory=LogTail)

    @property
    def is_catalog_managed(self) -> bool:
        """Whether the catalog coordinates the commits, according to the properties of the table."""
        return manages_commits(self.properties)

    def described(self) -> CatalogTable:
        """Return the catalog's entry as a `CatalogTable`."""
        return CatalogTable(
            name=self.name,
            location=self.location,
            table_type=self.table_type,
            table_id=self.table_id,
            properties=self.properties,
            columns=schema_of(self.columns),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingAnswer:
    """The catalog's answer to a request for a new managed table."""

    table_id: str
    location: str
    features: tuple[str, ...]
    properties: Mapping[str, str]
    suggested_properties: Mapping[str, str]
    lent: tuple[LentCredential, ...] = field(default=(), repr=False)


def manages_commits(properties: Mapping[str, str]) -> bool:
    """Return whether a table's properties contain the feature of catalog-managed commits."""
    return any(
        canonical_name(key.removeprefix(FEATURE_PREFIX)) == CATALOG_MANAGED
        for key in properties
        if key.startswith(FEATURE_PREFIX)
    )


def parse_loaded(
    node: JsonObject, name: Name, maintenance: frozenset[MaintenanceOperation] = frozenset()
) -> LoadedTable:
    """Parse the answer of `loadTable`, `createTable` or `updateTable`.

    Args:
        node: the answer.
        name: the name of the table.
        maintenance: the operations that clients may run. Used if the answer does not list them.

    Raises:
        MalformedMessageError: a member is missing or invalid, or a version is missing among the
            commits.
        UnsafePathError: the path of a commit's file leads out of its directory.
    """
    found = node.child("metadata", lambda metadata: _loaded(node, metadata, name))
    if found is None:
        return _missing(node, "metadata")
    # Newer servers list the operations that clients may run; unknown operations are ignored.
    allowed = node.texts("allowed-maintenance-operations")
    if allowed is not None:
        maintenance = frozenset(one for one in MaintenanceOperation if one.value in allowed)
    return replace(found, tail=replace(found.tail, allowed=maintenance))


def _loaded(node: JsonObject, metadata: JsonObject, name: Name) -> LoadedTable:
    table_type = metadata.required("table-type", str)
    if table_type not in {one.value for one in TableType}:
        raise MalformedMessageError(f"{metadata.where}.table-type: unknown {table_type[:40]!r}")
    return LoadedTable(
        name=name,
        table_id=_uuid(metadata, "table-uuid"),
        location=metadata.required("location", str),
        table_type=TableType(table_type),
        etag=metadata.required("etag", str),
        properties=metadata.mapping_of_strings("properties") or {},
        columns=metadata.values.get("columns"),
        tail=_tail(node),
    )


def _tail(node: JsonObject) -> LogTail:
    listed = node.values.get("commits") or ()
    if not isinstance(listed, list | tuple):
        raise MalformedMessageError(f"{node.where}.commits: expected a list")
    found = [
        parse_commit(type(node)(one, f"{node.where}.commits[{index}]", node.error))
        for index, one in enumerate(listed)
    ]
    return tail_of(found, node.optional("latest-table-version", int))


def tail_of(commits: Iterable[RatifiedCommit], latest: int | None) -> LogTail:
    """Create the log tail from commits, which may be in any order.

    Raises:
        MalformedMessageError: a version is missing, repeated, or higher than the latest version.
        InvalidInputError: the versions do not form a log tail.
    """
    in_order = tuple(sorted(commits, key=lambda commit: commit.version))
    if latest is not None and latest < 0:
        # The reference server returns -1 if there is no commit yet.
        latest = None
    return LogTail(commits=in_order, latest_version=latest)


def parse_commit(node: JsonObject) -> RatifiedCommit:
    """Parse a ratified commit from the JSON of the Delta API or of the older API."""
    is_older = "file_name" in node.values
    version = node.required("version", int)
    size = node.required("file_size" if is_older else "file-size", int)
    modified = node.required(
        "file_modification_timestamp" if is_older else "file-modification-timestamp", int
    )
    if version < 0 or size < 0:
        raise MalformedMessageError(f"{node.where}: expected a version and a size of 0 or more")
    name = check_staged_name(node.required("file_name" if is_older else "file-name", str), version)
    return RatifiedCommit(
        version=version, file=FileInfo(f"{STAGED_DIRECTORY}/{name}", size, modified)
    )


def parse_credentials(node: JsonObject) -> tuple[LentCredential, ...]:
    """Parse the lent credentials in an answer. Errors never contain a part of them."""
    listed = node.values.get("storage-credentials")
    if not isinstance(listed, list):
        raise MalformedMessageError(f"{node.where}.storage-credentials: expected a list")
    found = [_credential(one) for one in listed]
    return tuple(one for one in found if one is not None)


def _credential(value: object) -> LentCredential | None:
    where = "storage-credentials"
    if not isinstance(value, dict):
        raise MalformedMessageError(f"{where}: expected objects")
    prefix, expires = value.get("prefix"), value.get("expiration-time-ms")
    config = value.get("config") or {}
    if not isinstance(prefix, str) or not isinstance(config, dict):
        raise MalformedMessageError(f"{where}: expected a prefix and a config")
    if expires is not None and type(expires) is not int:
        raise MalformedMessageError(f"{where}.expiration-time-ms: expected a number")
    return lent_credential(prefix, config, expires)


def lent_credential(
    prefix: str, config: Mapping[str, object], expires_ms: int | None
) -> LentCredential | None:
    """Return the credentials in a configuration; None if deltalog does not support their kind.

    Raises:
        MalformedMessageError: a value is not a string.
    """
    options: dict[str, str] = {}
    for wire, option in _CREDENTIAL_OPTIONS.items():
        value = config.get(wire)
        if value is None or value == "":
            continue
        if not isinstance(value, str):
            raise MalformedMessageError(f"{wire}: expected a string")
        options[option] = value
    if not options:
        return None
    return LentCredential(prefix=prefix, options=options, expires_ms=expires_ms)


def parse_staging(node: JsonObject) -> StagingAnswer:
    """Parse the answer of `createStagingTable`."""
    features = node.child("required-protocol", _features) or ()
    required = node.mapping("required-properties") or {}
    suggested = node.mapping("suggested-properties") or {}
    return StagingAnswer(
        table_id=_uuid(node, "table-id"),
        location=node.required("location", str),
        features=features,
        # A property without a value is omitted, because the writer of the table chooses its value.
        properties={key: text for key, text in required.items() if text is not None},
        suggested_properties={key: text for key, text in suggested.items() if text is not None},
        lent=parse_credentials(node),
    )


def _features(node: JsonObject) -> tuple[str, ...]:
    names = [*(node.texts("reader-features") or ()), *(node.texts("writer-features") or ())]
    return tuple(dict.fromkeys(names))


def _uuid(node: JsonObject, name: str) -> str:
    text = node.required(name, str)
    if _UUID.fullmatch(text) is None:
        raise MalformedMessageError(f"{node.where}.{name}: expected a UUID, found {text[:60]!r}")
    return text


def _missing(node: JsonObject, name: str) -> LoadedTable:
    raise MalformedMessageError(f"{node.where}.{name}: required object is missing")


def schema_of(columns: Any) -> StructType | None:
    """Return the copy of the schema in the catalog; None if it is missing or cannot be parsed.

    The copy is informative: the schema in the table's log is authoritative.
    """
    if not isinstance(columns, dict) or not columns.get("fields"):
        return None
    try:
        return parse_schema(dumps(_renamed(columns, _LOG_MEMBERS)).decode())
    except (DeltaError, RecursionError):
        return None


def columns_of(metadata: Metadata) -> Any:
    """Return the schema of a table in the JSON of the API."""
    return _renamed(loads(metadata.schema_string, "schemaString"), _TYPE_MEMBERS)


def _renamed(tree: Any, names: Mapping[str, str]) -> Any:
    """Rename the members of a type, but not the members of the metadata of fields."""
    if isinstance(tree, list):
        return [_renamed(one, names) for one in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        names.get(key, key): value if key == "metadata" else _renamed(value, names)
        for key, value in tree.items()
    }


def protocol_to_json(protocol: ProtocolAction) -> dict[str, Any]:
    """Return a protocol action in the JSON of the API."""
    found: dict[str, Any] = {
        "min-reader-version": protocol.min_reader_version,
        "min-writer-version": protocol.min_writer_version,
    }
    if protocol.reader_features is not None:
        found["reader-features"] = list(protocol.reader_features)
    if protocol.writer_features is not None:
        found["writer-features"] = list(protocol.writer_features)
    return found


def domains_to_json(domains: Iterable[DomainMetadata]) -> dict[str, Any]:
    """Return the domains that the API supports, in its JSON: clustering and row tracking."""
    found: dict[str, Any] = {}
    for domain in domains:
        if domain.removed or domain.domain not in _DOMAIN_MEMBERS:
            continue
        held = loads(domain.text, domain.domain)
        member = _DOMAIN_MEMBERS[domain.domain]
        if isinstance(held, dict) and held.get(member) is not None:
            found[domain.domain] = {member: held[member]}
    return found


def removed_domains(domains: Iterable[DomainMetadata]) -> list[str]:
    """Return the names of the removed domains that the API supports."""
    return sorted(
        domain.domain for domain in domains if domain.removed and domain.domain in _DOMAIN_MEMBERS
    )


_DOMAIN_MEMBERS: Final = {
    CLUSTERING_DOMAIN: "clusteringColumns",
    ROW_TRACKING_DOMAIN: "rowIdHighWaterMark",
}
