"""The verbs: one operation, one file; each can stage into an open transaction.

An operation plans on a snapshot, writes data files where it needs to, and leaves the rest to the
transaction. Nothing here commits.
"""

from __future__ import annotations

# Verbs are imported by their own names: none needs the others.
__all__: list[str] = []
