"""Whether deltalog can read or write a table, and if not, why.

This module checks protocol, features, types and format, before any data is read. "Readers and
writers must not ignore table features when they are present."

Protocol: Protocol Evolution, Table Features, Requirements for Readers
"""

from __future__ import annotations

import functools
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Protocol, TypedDict

from deltalog import errors
from deltalog._util.escaping import name_key
from deltalog._util.json import loads
from deltalog.errors import AppendOnlyError, InvalidInputError
from deltalog.protocol.actions.model import Protocol as ProtocolAction
from deltalog.protocol.features.protocol_change import (
    READER_FEATURES_VERSION,
    WRITER_FEATURES_VERSION,
    supported_features,
)
from deltalog.protocol.features.registry import (
    PREVIEWS,
    Kind,
    Support,
    canonical_name,
    find_feature,
    is_supported,
)
from deltalog.protocol.features.schema_needs import (
    has_types_of,
    has_variant,
)
from deltalog.schema.columns import walk, walk_types
from deltalog.schema.evolve import check_readable_changes
from deltalog.schema.metadata_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from deltalog.schema.primitives import PRIMITIVES
from deltalog.schema.types import PrimitiveType, StructType, UnknownType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from deltalog.protocol.actions.model import Metadata
    from deltalog.protocol.actions.properties import TableProperties

DELTA_SPARK: Final = "Delta Spark 4.4"
INVARIANTS_IN_USE: Final = "invariants in use"
MAPPED_BY_VERSION: Final = "columnMapping by version 2"
"""Column mapping where the reader version implies it: not all readers of version 2 know it."""
_CATALOG_MANAGED: Final = "catalogManaged"
_TYPE_FEATURES: Final[Mapping[str, Callable[[StructType], bool]]] = {
    **{
        row.feature: partial(has_types_of, feature=row.feature)
        for row in PRIMITIVES.values()
        if row.feature
    },
    "variantType": has_variant,
}
"""Feature → a function that returns whether a schema has a column of a type that requires it."""


class _Where(TypedDict):
    """The arguments that all errors of a check have in common."""

    table: str
    version: int | None
    operation: str


class TableFacts(Protocol):
    """The attributes of a table that the checks use; see `configuration.TableConfiguration`."""

    @property
    def protocol(self) -> ProtocolAction:
        """The protocol action."""

    @property
    def metadata(self) -> Metadata:
        """The metadata action."""

    @property
    def schema(self) -> StructType:
        """The logical schema."""


def check_protocol(protocol: ProtocolAction) -> None:
    """Raise for a protocol that contradicts itself.

    Raises:
        InvalidProtocolError: versions and feature lists do not match.

    Protocol: Table Features
    """
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader < 1 or writer < 1:
        raise _invalid(protocol, "expected versions of 1 or more")
    # The protocol: "Creating a table with a Reader Version 3 and Writer Version less than 7 is not
    # allowed."
    if reader == READER_FEATURES_VERSION and writer < WRITER_FEATURES_VERSION:
        raise _invalid(protocol, "reader version 3 needs writer version 7")
    lists = (
        ("readerFeatures", protocol.reader_features, reader, READER_FEATURES_VERSION),
        ("writerFeatures", protocol.writer_features, writer, WRITER_FEATURES_VERSION),
    )
    for name, features, version, needed in lists:
        if version == needed and features is None:
            raise _invalid(protocol, f"version {version} needs {name}")
        if version < needed and features:
            raise _invalid(protocol, f"{name} needs version {needed}")


def check_readable(
    configuration: TableFacts,
    *,
    table: str,
    version: int | None = None,
    operation: str = "read",
    has_log_tail: bool = False,
) -> None:
    """Raise for a table that deltalog cannot read correctly, before any data is read.

    Args:
        configuration: configuration of the version.
        table: location of the table, for the message.
        version: number of the version, for the message.
        operation: the attempted operation, such as `read`.
        has_log_tail: whether a catalog provided the log tail.

    Raises:
        UnsupportedProtocolError: the reader version is too high.
        InvalidProtocolError: the protocol contradicts itself.
        CatalogManagedError: the table needs a catalog's log tail.
        UnsupportedFeatureError: a reader feature, or the format of data files, is not supported.
        UnsupportedTypeError: a column has an unknown type, or an unsupported type change.
        InvalidMetadataError: the schema is malformed.

    Protocol: Reader Version Requirements
    """
    protocol = configuration.protocol
    if protocol.min_reader_version > READER_FEATURES_VERSION:
        raise errors.UnsupportedProtocolError(
            f"cannot {operation} {table}{_at(version)}: it needs reader version "
            f"{protocol.min_reader_version}, deltalog supports versions up to "
            f"{READER_FEATURES_VERSION}; use a newer deltalog"
        )
    check_protocol(protocol)
    where: _Where = {"table": table, "version": version, "operation": operation}
    blockers = reader_blockers(protocol, has_log_tail=has_log_tail)
    if blockers and all(canonical_name(name) == _CATALOG_MANAGED for name in blockers):
        hint = "a catalog decides which commits are valid: pass its log tail"
        raise errors.CatalogManagedError(**where, features=blockers, hint=hint)
    if blockers:
        raise errors.UnsupportedFeatureError(
            **where, features=blockers, hint=_engines_hint(blockers)
        )
    provider = configuration.metadata.format.provider
    if provider.lower() != "parquet":
        hint = "only Parquet files can be read"
        raise errors.UnsupportedFeatureError(**where, features=[f"format {provider}"], hint=hint)
    check_types(configuration.schema, **where)
    if "typeWidening" in supported_features(protocol):
        check_readable_changes(configuration.schema)


def check_deletion_vectors(
    configuration: TableFacts, *, table: str, version: int | None = None
) -> None:
    """Raise for a deletion vector in the log of a table without the table feature.

    Raises:
        MalformedLogError: the protocol does not have the feature.

    Protocol: Deletion Vectors
    """
    if "deletionVectors" not in supported_features(configuration.protocol):
        raise errors.MalformedLogError(
            f"cannot read {table}{_at(version)}: a file has a deletion vector, and the protocol "
            "does not have the table feature deletionVectors"
        )


def check_types(
    schema: StructType, *, table: str, version: int | None = None, operation: str = "read"
) -> None:
    """Raise for columns of unknown types.

    Raises:
        UnsupportedTypeError: the message contains the columns and their types.
    """
    unknown: list[str] = []
    previews: dict[str, str] = {}
    for path, field in walk(schema):
        for _, found in walk_types(field.type):
            if isinstance(found, UnknownType):
                unknown.append(f"{'.'.join(path)} ({found})")
            elif isinstance(found, PrimitiveType) and found.primitive.is_declared:
                previews[f"{'.'.join(path)} ({found})"] = found.primitive.feature
    if unknown:
        raise errors.UnsupportedTypeError(
            f"cannot {operation} {table}{_at(version)}: unknown type of column "
            f"{', '.join(dict.fromkeys(unknown))}; use a newer deltalog"
        )
    for column, feature in previews.items():
        if not is_supported(feature, Support.PREVIEW):
            raise errors.UnsupportedTypeError(
                f"cannot {operation} {table}{_at(version)}: the type of column {column} is a "
                f"preview: deltalog.enable_preview({feature!r})"
            )


def check_column_types(configuration: TableFacts, *, table: str, operation: str = "write") -> None:
    """Raise for a write of types that require a table feature which the protocol does not have.

    Such a table can be read, but engines without the feature would misread new files.

    Raises:
        InvalidProtocolError: the message contains the features.

    Protocol: Timestamp without timezone (TimestampNtz), Variant Data Type
    """
    supported = supported_features(configuration.protocol)
    missing = [
        name
        for name, stands_in in _TYPE_FEATURES.items()
        if name not in supported and stands_in(configuration.schema)
    ]
    if missing:
        named = ", ".join(missing)
        raise errors.InvalidProtocolError(
            f"cannot {operation} {table}: its schema has a type that needs the table feature "
            f"{named}, which its protocol lacks; add it with "
            f"alter.add_feature({missing[0]!r}, allow_protocol_versions_increase=True)"
        )


def check_writable(
    configuration: TableFacts,
    *,
    table: str,
    version: int | None = None,
    operation: str = "write",
    has_log_tail: bool = False,
) -> None:
    """Raise for a table that deltalog cannot write correctly.

    "Because writers have to read the table (or only the Delta log) before write, they must
    implement and respect all reader features as well."

    Raises:
        UnsupportedProtocolError: a version is too high.
        UnsupportedFeatureError: a feature is not supported for writing.
        DeltaProtocolError: see `check_readable`.

    Protocol: Writer Version Requirements
    """
    where: _Where = {"table": table, "version": version, "operation": operation}
    check_readable(configuration, **where, has_log_tail=has_log_tail)
    protocol = configuration.protocol
    if protocol.min_writer_version > WRITER_FEATURES_VERSION:
        raise errors.UnsupportedProtocolError(
            f"cannot {operation} {table}{_at(version)}: it needs writer version "
            f"{protocol.min_writer_version}, deltalog supports versions up to "
            f"{WRITER_FEATURES_VERSION}; use a newer deltalog"
        )
    blockers = writer_blockers(protocol)
    if blockers:
        hint = _engines_hint(blockers, writing=True)
        raise errors.UnsupportedFeatureError(**where, features=blockers, hint=hint)


def reader_blockers(protocol: ProtocolAction, *, has_log_tail: bool = False) -> tuple[str, ...]:
    """Return the features for which deltalog refuses to read, as spelled in the protocol."""
    blockers: list[str] = []
    for name in protocol.reader_features or ():
        feature = find_feature(name)
        is_known = feature is not None and is_supported(feature.name, feature.read)
        if not is_known or (canonical_name(name) == _CATALOG_MANAGED and not has_log_tail):
            blockers.append(name)
    return tuple(blockers)


def writer_blockers(protocol: ProtocolAction) -> tuple[str, ...]:
    """Return the features for which deltalog refuses to write, as spelled in the protocol."""
    spelled = supported_features(protocol).values()
    found = [(name, find_feature(name)) for name in spelled]
    return tuple(
        name
        for name, feature in found
        if feature is None or not is_supported(feature.name, feature.write)
    )


def engine_answers(*, writing: bool = False) -> Mapping[str, Mapping[str, str]]:
    """Return what became of reading (or writing) by other engines: engine → case → outcome.

    The outcomes are `right`, `refuses` and `wrong`. `make interop` asks the engines. A case is a
    table feature, `none`, a type, or `MAPPED_BY_VERSION`.
    """
    return _engine_answers()["write" if writing else "read"]


@functools.cache
def _engine_answers() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    data = (files(__package__) / "engines.json").read_bytes()
    found: Mapping[str, Mapping[str, Mapping[str, str]]] = loads(data, "engines.json")
    return found


def asked_features(
    protocol: ProtocolAction, *, is_mapped: bool = True, has_invariants: bool = False
) -> tuple[str, ...]:
    """Return the features of a table, by the names under which engines were asked.

    Args:
        protocol: protocol of the table.
        is_mapped: whether the table uses column mapping. Tables of reader version 2 that do not are
            read by names.
        has_invariants: whether a column has an invariant. Almost all protocols have the feature.
    """
    names = tuple(supported_features(protocol))
    if protocol.min_reader_version < READER_FEATURES_VERSION and "columnMapping" in names:
        others = tuple(name for name in names if name != "columnMapping")
        names = (*others, MAPPED_BY_VERSION) if is_mapped else others
    return (*names, INVARIANTS_IN_USE) if has_invariants else names


def engines_for(features: tuple[str, ...], *, writing: bool = False) -> tuple[str, ...]:
    """Return the other engines that read (or write) a table with these features correctly."""
    return tuple(
        engine
        for engine, answers in engine_answers(writing=writing).items()
        if all(answers.get(canonical_name(name)) == "right" for name in features)
    )


def engines_misled(features: tuple[str, ...], *, writing: bool = False) -> tuple[str, ...]:
    """Return the engines that read (or write) wrong rows of a table, and do not refuse it."""
    found = []
    for engine, answers in engine_answers(writing=writing).items():
        outcomes = {answers.get(canonical_name(name), "refuses") for name in features}
        if "wrong" in outcomes and "refuses" not in outcomes:
            found.append(engine)
    return tuple(found)


def engines_refusing(features: tuple[str, ...], *, writing: bool = False) -> tuple[str, ...]:
    """Return the engines that neither read (or write) such a table, nor are misled by it."""
    others = {
        *engines_for(features, writing=writing),
        *engines_misled(features, writing=writing),
    }
    return tuple(one for one in engine_answers(writing=writing) if one not in others)


def shown_engines(engines: Sequence[str]) -> str:
    """Format engine names, such as `deltalake 1.6 (QueryBuilder, scan)`.

    An engine all of whose ways to read are given appears without them. DuckDB reads Delta tables
    with its delta extension, whose releases belong to a release of DuckDB.
    """
    ways: dict[str, list[str]] = {}
    for engine in engines:
        name, _, way = engine.partition(": ")
        ways.setdefault(name, []).append(way)
    known: dict[str, int] = {}
    for engine in engine_answers():
        name = engine.partition(": ")[0]
        known[name] = known.get(name, 0) + 1
    shown = [
        _DISPLAYED.get(name, name)
        if len(found) == known.get(name, 1) or not found[0]
        else f"{name} ({', '.join(found)})"
        for name, found in ways.items()
    ]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


_DISPLAYED: Final = {"DuckDB 1.5": "DuckDB's delta extension (of DuckDB 1.5.5)"}
"""Engine in `engines.json` → its name in messages."""


def mapping_consequences() -> str:
    """Return who cannot read or write a table with column mapping, as the end of a sentence."""
    names = ("columnMapping",)
    parts = [f"{shown_engines(engines_refusing(names))} cannot read it"]
    if misled := engines_misled(names, writing=True):
        parts.append(f"{shown_engines(misled)} would write wrong rows")
    return "then " + ", and ".join(parts)


def misplaced_reader_features(protocol: ProtocolAction) -> tuple[str, ...]:
    """Return reader features that the protocol has in only one of its two lists.

    "Reader features should be added to both `readerFeatures` and `writerFeatures` simultaneously."
    deltalog reads such tables, never writes such a protocol, and `doctor` reports it.
    """
    reader, writer = set(protocol.reader_features or ()), set(protocol.writer_features or ())
    if protocol.min_reader_version < READER_FEATURES_VERSION:
        return ()
    found = [name for name in sorted(writer - reader) if _is_reader_feature(name)]
    return (*sorted(reader - writer), *found)


def _is_reader_feature(name: str) -> bool:
    feature = find_feature(name)
    return feature is not None and feature.kind is Kind.READER_WRITER


def _engines_hint(blockers: tuple[str, ...], *, writing: bool = False) -> str:
    previews = [one for name in blockers if (one := canonical_name(name)) in PREVIEWS]
    if previews and len(previews) == len(blockers):
        return f"it is a preview: deltalog.enable_preview({', '.join(map(repr, previews))})"
    engines = engines_for(blockers, writing=writing)
    if not engines:
        return "use an engine that supports it, or a newer deltalog"
    action = "write" if writing else "read"
    return f"{shown_engines(engines)} can {action} it; or use a newer deltalog"


def _invalid(protocol: ProtocolAction, why: str) -> errors.InvalidProtocolError:
    return errors.InvalidProtocolError(
        f"invalid protocol (reader {protocol.min_reader_version}, writer "
        f"{protocol.min_writer_version}, readerFeatures {_shown(protocol.reader_features)}, "
        f"writerFeatures {_shown(protocol.writer_features)}): {why}"
    )


def _shown(features: tuple[str, ...] | None) -> str:
    return "absent" if features is None else f"[{', '.join(features)}]"


def _at(version: int | None) -> str:
    return "" if version is None else f" at version {version}"


# --- Rules of small features: append-only tables, reserved names, protected history


RESERVED_COLUMNS: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
SYSTEM_PREFIX: Final = "delta."
CHECKPOINT_PROTECTION: Final = "checkpointProtection"


def is_append_only(features: Collection[str], properties: TableProperties) -> bool:
    """Return whether rows must not be changed or deleted; the property requires the feature.

    Args:
        features: current names of the features that the protocol supports.
        properties: properties of the table.
    """
    return "appendOnly" in features and properties.append_only


def check_may_remove(
    features: Collection[str], properties: TableProperties, *, table: str, operation: str
) -> None:
    """Raise for an operation that changes or deletes rows of an append-only table.

    Moving rows to other files (`dataChange = false`) is allowed, so callers do not call this for
    it.

    Raises:
        AppendOnlyError: the table is append-only.
    """
    # The protocol: "New log entries MUST NOT change or remove data from the table."
    if is_append_only(features, properties):
        raise AppendOnlyError(
            f"cannot {operation} {table}: it is append-only; set delta.appendOnly = false first"
        )


def check_change_columns(properties: TableProperties, schema: StructType) -> None:
    """Raise for columns with reserved names, if the change data feed is enabled.

    Raises:
        InvalidInputError: the message contains the columns.
    """
    if not properties.enable_change_data_feed:
        return
    taken = [name for name in schema.names if name_key(name) in RESERVED_COLUMNS]
    if taken:
        raise InvalidInputError(
            f"cannot record changes of a table with the column(s) {', '.join(taken)}: the change "
            "data feed has columns of that name; rename them, or set "
            "delta.enableChangeDataFeed = false"
        )


def is_system_domain(name: str) -> bool:
    """Return whether a table feature controls the domain: its name starts with `delta.`."""
    return name_key(name).startswith(SYSTEM_PREFIX)


def check_user_domain(name: str) -> None:
    """Raise for a domain that users must not set or remove.

    Raises:
        InvalidInputError: the name is empty, or a table feature controls the domain.

    Protocol: Domain Metadata (system-controlled domains)
    """
    if not name:
        raise InvalidInputError("a metadata domain needs a name")
    # The protocol: "Writers must not allow users to modify or delete system-controlled domains."
    if is_system_domain(name):
        raise InvalidInputError(
            f"cannot change the metadata domain {name!r}: domains that start with "
            f"{SYSTEM_PREFIX!r} are controlled by table features"
        )


def protected_before_version(features: Collection[str], properties: TableProperties) -> int:
    """Return the version before which checkpoints and commits are protected; 0 if unprotected.

    When a feature is dropped without deleting history, the writer adds checkpoints that do not need
    the feature. Readers start from these checkpoints and do not read the commits that need the
    feature, so the checkpoints must be preserved. A writer may delete protected history only as a
    whole, or if the writer supports every protocol in the history. A writer must not write a
    checkpoint of a protected version whose protocol it does not support.

    Args:
        features: current names of the features that the protocol supports.
        properties: properties of the table.

    Protocol: Checkpoint Protection
    """
    if CHECKPOINT_PROTECTION not in features:
        return 0
    return properties.require_checkpoint_protection_before_version
