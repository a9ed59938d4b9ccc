"""Advice in the words of Spark: methods, options and statements instead of deltalog's own calls.

Errors of the core name its functions and arguments. `in_spark` replaces these names by those that
users of Spark know.

Protocol: none
"""

from __future__ import annotations

import re
from typing import Final

_ADVICE: Final[tuple[tuple[str, str], ...]] = (
    (r"write_deltalake makes a new table", "df.write.format('delta').save(location) makes one"),
    (r"\bwhen_matched_update_all\(\)", "whenMatchedUpdateAll()"),
    (r"\bwhen_not_matched_insert_all\(\)", "whenNotMatchedInsertAll()"),
    (r"\bschema_mode='merge' \(mergeSchema on Spark\)", "option('mergeSchema', 'true')"),
    (r"use mode='append' or mode='overwrite'$", "use mode('append') or mode('overwrite')"),
    (
        (
            r"table\.alter\.set_table_properties\(\{'([^']*)': '([^']*)'\}\) or "
            r"deltalog properties TABLE --set \S+"
        ),
        r"ALTER TABLE … SET TBLPROPERTIES ('\1' = '\2')",
    ),
    (r"(?:if there are none, )?pass enforce_retention_duration=False; in a Spark", "in a Spark"),
    (r"\boptimize\.purge\(\)", "REORG TABLE … APPLY (PURGE)"),
    (r"from the table with repair\(\)", "from the table with FSCK REPAIR TABLE …"),
    (
        r"\balter\.add_feature\('([^']*)'(?:, allow_protocol_versions_increase=True)?\)",
        r"addFeatureSupport('\1')",
    ),
    (r"; pass allow_protocol_versions_increase=True to allow this", ""),
)
"""Pattern of an advice in Python → the same advice for Spark, in the order of use."""
_IN_SPARK: Final = tuple((re.compile(pattern), text) for pattern, text in _ADVICE)


def in_spark(text: str) -> str:
    """Return the message of an error with Spark's methods, options and statements."""
    for pattern, replacement in _IN_SPARK:
        text = pattern.sub(replacement, text)
    return text
