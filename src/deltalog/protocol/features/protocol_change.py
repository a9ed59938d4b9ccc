"""Changes of a protocol: adding and dropping features, merging protocols, and the weakest form.

Older protocol versions imply features; reader version 3 and writer version 7 list them. This module
converts a protocol to a set of features, changes the set, and returns the weakest protocol with
these features, as Delta Spark 4.0 does (requirement B-08).

Protocol: Table Features, Protocol Evolution
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog._util.escaping import name_key
from deltalog._util.similar_names import similar_to
from deltalog.errors import InvalidInputError
from deltalog.protocol.actions.model import Protocol
from deltalog.protocol.actions.properties import (
    FEATURE_PREFIX,
    IGNORE_PROTOCOL_DEFAULTS,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
)
from deltalog.protocol.features.registry import (
    FEATURES,
    Kind,
    canonical_name,
    find_feature,
    requested_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deltalog.protocol.actions.properties import TableProperties
    from deltalog.schema.types import StructType

READER_FEATURES_VERSION: Final = 3
WRITER_FEATURES_VERSION: Final = 7
_MAPPING_VERSION: Final = 2  # that of readers, which implies column mapping
NEW_TABLE: Final = Protocol(min_reader_version=1, min_writer_version=2)


def implied_features(reader_version: int, writer_version: int) -> frozenset[str]:
    """Return the features that protocol versions without feature lists imply.

    Protocol: Reader Version Requirements, Writer Version Requirements
    """
    if writer_version >= WRITER_FEATURES_VERSION:
        return frozenset()
    return frozenset(
        feature.name
        for feature in FEATURES.values()
        if feature.legacy is not None
        and feature.legacy[0] <= reader_version
        and feature.legacy[1] <= writer_version
    )


def supported_features(protocol: Protocol) -> dict[str, str]:
    """Return all features that a protocol implies or lists: current name → name in the protocol."""
    implied = implied_features(protocol.min_reader_version, protocol.min_writer_version)
    listed = (*(protocol.reader_features or ()), *(protocol.writer_features or ()))
    return {name: name for name in sorted(implied)} | {
        canonical_name(name): name for name in listed
    }


def normalise(protocol: Protocol) -> Protocol:
    """Return the weakest protocol with the same features.

    (2,3) becomes (1,3), and (3,7,[],[rowTracking]) becomes (1,7,[rowTracking]). Unknown features
    remain in their lists.
    """
    return _weakest(_with_kinds(protocol), protocol)


def merge(first: Protocol, *others: Protocol) -> Protocol:
    """Return the weakest protocol with the features of all protocols."""
    features: dict[str, Kind] = {}
    for protocol in (first, *others):
        known = {canonical_name(name) for name in features}
        features |= {
            name: kind
            for name, kind in _with_kinds(protocol).items()
            if canonical_name(name) not in known
        }
    return _weakest(features, first, *others)


def with_features(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """Return the protocol with more features, and with the features that they require.

    Raises:
        InvalidInputError: a name is unknown.
    """
    features = _with_kinds(protocol)
    present = {canonical_name(name) for name in features}
    for name in names:
        for needed in _closure(_requested(name)):
            if canonical_name(needed) not in present:
                present.add(canonical_name(needed))
                features[needed] = FEATURES[canonical_name(needed)].kind
    return _weakest(features, protocol)


def without_feature(protocol: Protocol, name: str) -> Protocol:
    """Return the protocol without a feature. The caller must have removed all uses of it before.

    Raises:
        InvalidInputError: the protocol does not have the feature, or another feature requires it.
    """
    dropped = canonical_name(name)
    features = _with_kinds(protocol)
    left = {
        spelled: kind for spelled, kind in features.items() if canonical_name(spelled) != dropped
    }
    if len(left) == len(features):
        known = f"it has {', '.join(sorted(features))}" if features else "it has none"
        raise InvalidInputError(
            f"cannot drop table feature {name!r}: the table does not have it; {known}"
        )
    for spelled in left:
        feature = find_feature(spelled)
        if feature is not None and dropped in feature.requires:
            raise InvalidInputError(
                f"cannot drop table feature {name!r}: {spelled!r} requires it; drop that first"
            )
    return _weakest(left, protocol)


def needed_features(properties: TableProperties, schema: StructType) -> tuple[str, ...]:
    """Return the features that a table's properties and schema require."""
    return tuple(
        feature.name
        for feature in FEATURES.values()
        if feature.enabled_by is not None and feature.enabled_by(properties, schema)
    )


def least_protocol(
    properties: TableProperties, schema: StructType, *, current: Protocol = NEW_TABLE
) -> Protocol:
    """Return the weakest protocol that supports a table (requirement UPG-03).

    Args:
        properties: properties of the table, with or without requests (`delta.feature.…`,
            `delta.minReaderVersion`).
        schema: schema of the table.
        current: current protocol of the table, whose features are preserved.

    Raises:
        InvalidInputError: a requested feature is unknown.
    """
    requested, names = requested_protocol(properties.configuration)
    base = merge(current, requested) if requested is not None else current
    needed = (*names, *needed_features(properties, schema))
    return with_features(base, needed) if needed else normalise(base)


def requested_protocol(configuration: Mapping[str, str]) -> tuple[Protocol | None, list[str]]:
    """Return the requests of `delta.minReaderVersion`, `…WriterVersion` and `delta.feature.…`.

    Returns:
        The protocol for the requested versions, or None; and the names of the requested features.

    Raises:
        InvalidInputError: a version is not a number or out of range, reader version 3 is requested
            with a writer version below 7, a feature is unknown, or a value is not `supported`.
    """
    names: list[str] = []
    for key, value in configuration.items():
        if not key.startswith(FEATURE_PREFIX):
            continue
        if value.strip().lower() not in {"supported", "enabled"}:
            raise InvalidInputError(f"table property {key}: expected supported, found {value!r}")
        names.append(_requested(key[len(FEATURE_PREFIX) :]))
    if MIN_READER_VERSION not in configuration and MIN_WRITER_VERSION not in configuration:
        return None, names
    reader = _version(configuration, MIN_READER_VERSION, 1, READER_FEATURES_VERSION)
    writer = _version(configuration, MIN_WRITER_VERSION, 2, WRITER_FEATURES_VERSION)
    if reader == READER_FEATURES_VERSION:
        # The protocol: "Creating a table with a Reader Version 3 and Writer Version less than 7 is
        # not allowed."
        if MIN_WRITER_VERSION in configuration and writer < WRITER_FEATURES_VERSION:
            raise InvalidInputError(
                f"cannot request reader version {reader} with writer version {writer}: expected "
                f"writer version {WRITER_FEATURES_VERSION}, because both must list table features"
            )
        writer = WRITER_FEATURES_VERSION
    return _listing_of_versions(reader, writer), names


def without_requests(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration without the keys that only request a protocol."""
    return {
        key: value
        for key, value in configuration.items()
        if not key.startswith(FEATURE_PREFIX)
        and key not in {MIN_READER_VERSION, MIN_WRITER_VERSION, IGNORE_PROTOCOL_DEFAULTS}
    }


def _listing_of_versions(reader: int, writer: int) -> Protocol:
    return Protocol(
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=() if reader == READER_FEATURES_VERSION else None,
        writer_features=() if writer == WRITER_FEATURES_VERSION else None,
    )


def _version(configuration: Mapping[str, str], key: str, default: int, highest: int) -> int:
    text = configuration.get(key, str(default)).strip()
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= highest:
        raise InvalidInputError(f"table property {key}: expected 1 to {highest}, found {text!r}")
    return number


def _requested(name: str) -> str:
    found = requested_name(name)
    if found is None:
        raise InvalidInputError(f"there is no table feature {name!r}{similar_feature(name)}")
    return found


def similar_feature(name: str) -> str:
    """Return `: did you mean 'x'?` for the name of an unknown feature; empty if none is similar."""
    without = requested_name(name.replace("_", ""))
    if meant := without or _SHORT_NAMES.get(name_key(name)):
        return f": did you mean {meant!r}?"
    return similar_to(name, FEATURES) or f": the features are {', '.join(sorted(FEATURES))}"


_SHORT_NAMES: Final = {
    "dv": "deletionVectors",
    "dvs": "deletionVectors",
    "deletion": "deletionVectors",
    "cdf": "changeDataFeed",
    "cdc": "changeDataFeed",
    "ict": "inCommitTimestamp",
    "timestamps": "inCommitTimestamp",
    "ntz": "timestampNtz",
    "identity": "identityColumns",
    "generated": "generatedColumns",
    "constraints": "checkConstraints",
    "check": "checkConstraints",
    "invariant": "invariants",
    "mapping": "columnMapping",
    "liquidclustering": "clustering",
    "liquid_clustering": "clustering",
    "row_ids": "rowTracking",
    "rowids": "rowTracking",
    "uniform": "icebergCompatV2",
    "iceberg": "icebergCompatV2",
    "variant": "variantType",
    "append_only": "appendOnly",
    "checkpoint": "v2Checkpoint",
    "checkpointv2": "v2Checkpoint",
    "vacuum": "vacuumProtocolCheck",
    "widening": "typeWidening",
}
"""What users call a feature → its name."""


def _closure(name: str) -> list[str]:
    """Return all features that a feature requires, followed by the feature itself."""
    feature = find_feature(name)
    if feature is None:
        raise InvalidInputError(f"there is no table feature {name!r}")
    needed = [found for required in feature.requires for found in _closure(required)]
    return [*needed, name]


def _with_kinds(protocol: Protocol) -> dict[str, Kind]:
    """Return every feature, as spelled in the protocol, with its kind."""
    reader = {canonical_name(name) for name in protocol.reader_features or ()}
    kinds: dict[str, Kind] = {}
    for name, spelled in supported_features(protocol).items():
        feature = FEATURES.get(name)
        if feature is not None:
            kinds[spelled] = feature.kind
        else:
            # The kind of an unknown feature can only be derived from the lists that contain it.
            kinds[spelled] = Kind.READER_WRITER if name in reader else Kind.WRITER
    return kinds


def _weakest(features: Mapping[str, Kind], *given: Protocol) -> Protocol:
    """Return the weakest protocol with these features, that of tables with the `given` protocols.

    Column mapping is a feature that readers know by its name, unless a given protocol has reader
    version 2: there are readers that take this version, and ignore the mapping (ADR 45).
    """
    versions = [_min_versions(name, kind) for name, kind in features.items()]
    reader = max((version for version, _ in versions), default=1)
    writer = max((version for _, version in versions), default=1)
    by_version = max(one.min_reader_version for one in given) == _MAPPING_VERSION
    if {canonical_name(name) for name in features} == implied_features(reader, writer) and (
        reader < _MAPPING_VERSION or by_version
    ):
        return Protocol(min_reader_version=reader, min_writer_version=writer)
    if reader == _MAPPING_VERSION and not by_version:
        reader = READER_FEATURES_VERSION
    return _listing(features, reader)


def _min_versions(name: str, kind: Kind) -> tuple[int, int]:
    feature = find_feature(name)
    if feature is not None:
        return feature.min_versions
    return (3, 7) if kind is Kind.READER_WRITER else (1, 7)


def _listing(features: Mapping[str, Kind], reader_version: int) -> Protocol:
    readers = (name for name, kind in features.items() if kind is Kind.READER_WRITER)
    # The protocol for reader versions 1 and 2: "Its `protocol` action must only contain
    # `writerFeatures`."
    listed = reader_version == READER_FEATURES_VERSION
    # The protocol: "Reader features should be added to both `readerFeatures` and `writerFeatures`."
    return Protocol(
        min_reader_version=reader_version,
        min_writer_version=WRITER_FEATURES_VERSION,
        reader_features=tuple(sorted(readers)) if listed else None,
        writer_features=tuple(sorted(features)),
    )
