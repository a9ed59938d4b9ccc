"""Rows of existing files: found, decided about, changed, sorted and compared.

The building blocks that verbs and engines share. Nothing here commits.
"""

from __future__ import annotations

__all__: list[str] = []
