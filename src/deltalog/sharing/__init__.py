"""Delta Sharing: tables given to others, and tables of others, over HTTP."""

from __future__ import annotations

__all__: list[str] = []
