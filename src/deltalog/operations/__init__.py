"""Operations on a table, one module each.

An operation is a frozen value that contains the user's arguments. It stages itself into a
transaction and returns one typed outcome. Only `operations.execute` commits.
"""

from __future__ import annotations

__all__: list[str] = []
