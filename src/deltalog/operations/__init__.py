"""Operations on a table, one module each.

An operation (`operation`) is a frozen value that contains the user's arguments. It stages itself
into a transaction and returns one typed outcome. `execute` opens, stages and commits operations;
nothing else commits. `engine` works on rows and files, in this process or on a cluster. `changes`
decides what happens to each row and file of a DELETE, UPDATE or MERGE. `arguments` reads what users
pass.
"""

from __future__ import annotations

__all__: list[str] = []
