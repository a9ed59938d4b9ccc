"""The messages of the Delta Sharing protocol, which the client and the server share.

Owns their values and their bytes. Knows nothing of HTTP, tables or files.
"""

from __future__ import annotations

__all__: list[str] = []
