"""Find, change, copy, sort and compare the rows of existing files.

The building blocks that operations and engines share. Nothing here commits.
"""

from __future__ import annotations

__all__: list[str] = []
