"""Operations on a table, one module each.

An operation (`operation`) is a frozen value that contains the user's arguments. It stages itself
into a transaction and returns one typed outcome. Only `execute` opens, stages and commits
operations. `engine` reads and writes rows and files, in this process or on a cluster. `changes`
decides what happens to each row and file of a DELETE, UPDATE or MERGE. `arguments` converts the
arguments of the public API.
"""

from __future__ import annotations

__all__: list[str] = []
