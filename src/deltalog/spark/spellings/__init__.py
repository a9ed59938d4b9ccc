"""PySpark's own methods in registered sessions: subclasses that record how they are called.

`frames` has the readers and writers of batches and streams; `tables` has `df.writeTo`,
`df.mergeInto`, `spark.sql`, `spark.table` and `spark.catalog`. `noting` has what
they share. `deltalog.spark.registration` installs them.
"""

from __future__ import annotations

__all__: list[str] = []
