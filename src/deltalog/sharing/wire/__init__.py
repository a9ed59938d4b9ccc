"""The messages of the Delta Sharing protocol, which the client and the server share.

This package parses and encodes messages. It does not depend on HTTP, tables or files.
"""

from __future__ import annotations

__all__: list[str] = []
