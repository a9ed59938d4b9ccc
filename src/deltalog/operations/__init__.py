"""Operations on a table, one module each.

A verb is a frozen value that holds its arguments as the user gave them. It stages itself into a
transaction and returns one typed outcome; only `verbs.do` commits.
"""

from __future__ import annotations

__all__: list[str] = []
