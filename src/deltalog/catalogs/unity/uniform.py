"""What a catalog is told of a table's Iceberg metadata (UniForm).

A catalog shows such a table to readers of Iceberg, too, and wants to know which file they open.

Protocol: UC Delta API (DeltaUniformMetadata)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.actions.properties import TableProperties
from deltalog.errors import InvalidInputError
from deltalog.features.iceberg_compat import enabled_versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.snapshot import Snapshot


def shows_iceberg(properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties has Iceberg metadata."""
    try:
        return "iceberg" in TableProperties(dict(properties)).universal_format_enabled_formats
    except InvalidInputError:  # a catalog's answer may hold anything
        return False


def uniform_of(snapshot: Snapshot, *, is_asked: bool = False) -> dict[str, Any] | None:
    """What the catalog is told of a version's Iceberg metadata, which is written if need be.

    None for a table that has none.

    Args:
        snapshot: the version.
        is_asked: whether it is to be shown to readers of Iceberg, even if it does not say so yet.

    Raises:
        InvalidInputError: PyIceberg is not installed, or the version is not written for Iceberg.

    Cost: two requests where the metadata stands already.
    """
    if not is_asked and not shows_iceberg(snapshot.metadata.configuration):
        return None
    if not enabled_versions(snapshot.configuration.properties):
        raise InvalidInputError(
            f"there is no Iceberg metadata of version {snapshot.version} of {snapshot.store.root} "
            "yet: a catalog that wants to know of it takes delta.enableIcebergCompatV3 = true "
            "first, and delta.universalFormat.enabledFormats = iceberg in a second statement"
        )
    try:
        from deltalog.iceberg import sync  # noqa: PLC0415  # PyIceberg is an extra, and slow
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            f"cannot tell the catalog of the Iceberg metadata of {snapshot.store.root}: "
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
