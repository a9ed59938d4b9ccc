"""Create and change a table's protocol and metadata, so that the two always agree.

Creating, overwriting with another schema, altering and enabling features all use this room. Core:
no I/O, no clock; times are passed in. Knows nothing of files: the verb checks whether existing rows
satisfy a new constraint.

Protocol: Change Metadata, Protocol Evolution
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._lazy_names import names_on_demand

if TYPE_CHECKING:
    from deltalog.table_change.change import changed_table, new_table
    from deltalog.table_change.checks import engines_losing_access
    from deltalog.table_change.clustering import clustering_domain
    from deltalog.table_change.drop import (
        check_droppable,
        deactivated,
        with_current_row_ids,
        with_row_ids_of,
        without_feature,
    )
    from deltalog.table_change.properties import is_set_by_writers

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
    "changed_table": "deltalog.table_change.change",
    "check_droppable": "deltalog.table_change.drop",
    "clustering_domain": "deltalog.table_change.clustering",
    "deactivated": "deltalog.table_change.drop",
    "engines_losing_access": "deltalog.table_change.checks",
    "is_set_by_writers": "deltalog.table_change.properties",
    "new_table": "deltalog.table_change.change",
    "with_current_row_ids": "deltalog.table_change.drop",
    "with_row_ids_of": "deltalog.table_change.drop",
    "without_feature": "deltalog.table_change.drop",
}

if not TYPE_CHECKING:  # type checkers shall find a wrong name themselves
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS)
