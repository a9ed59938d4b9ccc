"""What small table features forbid: removing rows, taking reserved names, cleaning up history.

Each rule stands beside the feature that it belongs to; a feature with more than one question has a
file of its own.

Protocol: Append-only Tables, Add CDC File, Domain Metadata, Checkpoint Protection
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.metadata_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from deltalog.names import name_key

if TYPE_CHECKING:
    from collections.abc import Collection

    from deltalog.actions.properties import TableProperties
    from deltalog.schema.types import StructType

RESERVED_COLUMNS: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
SYSTEM_PREFIX: Final = "delta."
CHECKPOINT_PROTECTION: Final = "checkpointProtection"


def is_append_only(features: Collection[str], properties: TableProperties) -> bool:
    """Whether rows may not be changed or deleted; the property has no effect without the feature.

    Args:
        features: current names of the features that the protocol supports.
        properties: of the table.
    """
    return "appendOnly" in features and properties.append_only


def check_may_remove(
    features: Collection[str], properties: TableProperties, *, table: str, operation: str
) -> None:
    """Refuse to change or delete rows of an append-only table.

    Moving rows to other files (`dataChange = false`) is allowed, so it is not checked here.

    Raises:
        InvalidInputError: the table is append-only.
    """
    # "New log entries MUST NOT change or remove data from the table."
    if is_append_only(features, properties):
        raise InvalidInputError(
            f"cannot {operation} {table}: it is append-only; set delta.appendOnly = false first"
        )


def check_change_columns(properties: TableProperties, schema: StructType) -> None:
    """Refuse columns whose names the change data feed reserves, where the feed is on.

    Raises:
        InvalidInputError: it names the column.
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
    """Whether a table feature controls the domain: its name starts with `delta.`, in any case."""
    return name_key(name).startswith(SYSTEM_PREFIX)


def check_user_domain(name: str) -> None:
    """Refuse a domain that users must not set or remove.

    Raises:
        InvalidInputError: the name is empty, or a table feature controls the domain.

    Protocol: Domain Metadata (system-controlled domains)
    """
    if not name:
        raise InvalidInputError("a metadata domain needs a name")
    # "Writers must not allow users to modify or delete system-controlled domains."
    if is_system_domain(name):
        raise InvalidInputError(
            f"cannot change the metadata domain {name!r}: domains that start with "
            f"{SYSTEM_PREFIX!r} are kept by table features"
        )


def protected_before_version(features: Collection[str], properties: TableProperties) -> int:
    """The version before which checkpoints and commits are protected; 0 if none is.

    A feature is dropped without deleting history by writing checkpoints that do not need it: a
    reader starts from them and never sees the commits that do. So those checkpoints must stay. A
    writer may remove protected history only as a whole, or if it supports every protocol in it;
    and it must not write a checkpoint of a protected version whose protocol it does not support.

    Args:
        features: current names of the features that the protocol supports.
        properties: of the table.

    Protocol: Checkpoint Protection
    """
    if CHECKPOINT_PROTECTION not in features:
        return 0
    return properties.require_checkpoint_protection_before_version
