"""Finding, changing, copying, sorting and comparing the rows of existing files.

The building blocks that verbs and engines share. Nothing here commits.
"""

from __future__ import annotations

__all__: list[str] = []
