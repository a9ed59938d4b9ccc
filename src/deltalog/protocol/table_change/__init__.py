"""Create and change a table's protocol and metadata, so that the two always agree.

Creating, overwriting with another schema, altering and enabling features use this package. Core: no
I/O, no clock; times are passed in. It does not read data files: the operation checks whether
existing rows satisfy a new constraint.

Protocol: Change Metadata, Protocol Evolution
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import names_on_demand

if TYPE_CHECKING:
    from deltalog.protocol.table_change.change import changed_table, new_table
    from deltalog.protocol.table_change.checks import (
        clustering_domain,
        engines_losing_access,
        is_set_by_writers,
    )
    from deltalog.protocol.table_change.drop import (
        check_droppable,
        deactivated,
        with_current_row_ids,
        with_row_ids_of,
        without_feature,
    )

__all__ = [
    "changed_table",
    "check_droppable",
    "clustering_domain",
    "deactivated",
    "engines_losing_access",
    "is_set_by_writers",
    "new_table",
    "with_current_row_ids",
    "with_row_ids_of",
    "without_feature",
]

_ORIGINS = {
    "changed_table": "deltalog.protocol.table_change.change",
    "check_droppable": "deltalog.protocol.table_change.drop",
    "clustering_domain": "deltalog.protocol.table_change.checks",
    "deactivated": "deltalog.protocol.table_change.drop",
    "engines_losing_access": "deltalog.protocol.table_change.checks",
    "is_set_by_writers": "deltalog.protocol.table_change.checks",
    "new_table": "deltalog.protocol.table_change.change",
    "with_current_row_ids": "deltalog.protocol.table_change.drop",
    "with_row_ids_of": "deltalog.protocol.table_change.drop",
    "without_feature": "deltalog.protocol.table_change.drop",
}

if not TYPE_CHECKING:  # type checkers shall find a wrong name themselves
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS)
