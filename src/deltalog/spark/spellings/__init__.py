"""PySpark's own spellings in registered sessions: subclasses that note what they are told.

`rows` has readers, `frames` and `streams` the writers, and `names` the methods of a session that
are about names: `sql`, `table` and `catalog`. What they share is in `noting`. `door` hangs them.
"""

from __future__ import annotations

__all__: list[str] = []
