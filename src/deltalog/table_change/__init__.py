"""What a table's protocol and metadata become: made once, changed together.

The only place where the two are made or changed: creating, overwriting with another schema,
altering and enabling features all pass here. Core: no I/O, and no clock but the moment handed in.
Knows nothing of files: whether rows fit a new rule is the operation's to see to.

Protocol: Change Metadata, Protocol Evolution
"""

from __future__ import annotations

from deltalog.table_change.access import check_usable, engines_losing_access
from deltalog.table_change.change import changed_table, new_table
from deltalog.table_change.drop import (
    check_droppable,
    unused,
    with_current_row_ids,
    without_feature,
)
from deltalog.table_change.properties import kept_by_writers

__all__ = [
    "changed_table",
    "check_droppable",
    "check_usable",
    "engines_losing_access",
    "kept_by_writers",
    "new_table",
    "unused",
    "with_current_row_ids",
    "without_feature",
]
