"""Find, change, copy, sort and compare the rows of existing files.

Operations and engines use these functions. Nothing here commits.
"""

from __future__ import annotations

__all__: list[str] = []
