"""Replacements of PySpark's own methods in registered sessions.

Subclasses of PySpark's readers, writers and catalog record the calls of their methods, such as
`option`, before a call reads or writes a table. `frames` contains the readers and writers of
batches and streams. `tables` contains `df.writeTo`, `df.mergeInto`, `spark.sql`, `spark.table` and
`spark.catalog`. `noting` contains the common code. `deltalog.spark.registration` installs the
subclasses in a session.
"""

from __future__ import annotations

__all__: list[str] = []
