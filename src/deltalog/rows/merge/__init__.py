"""The rows of a merge: the source, its keys, the pairs, and what becomes of them."""

from __future__ import annotations

__all__: list[str] = []
