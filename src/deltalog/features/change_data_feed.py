"""Change data feed: the columns that it adds to rows.

Protocol: Add CDC File
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.metadata_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION

if TYPE_CHECKING:
    from deltalog.actions.properties import TableProperties
    from deltalog.schema.types import StructType

RESERVED_COLUMNS: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


def check_columns(properties: TableProperties, schema: StructType) -> None:
    """Refuse columns whose names the feed needs, where the table records its changes.

    Raises:
        InvalidInputError: it names the column.
    """
    if not properties.enable_change_data_feed:
        return
    taken = [name for name in schema.names if name.lower() in RESERVED_COLUMNS]
    if taken:
        raise InvalidInputError(
            f"cannot record changes of a table with the column(s) {', '.join(taken)}: the change "
            "data feed has columns of that name; rename them, or set "
            "delta.enableChangeDataFeed = false"
        )
