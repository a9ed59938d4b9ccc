"""Create and change a table's protocol and metadata, so that the two are consistent.

All operations that create or alter tables use this package. Core: no I/O and no clock; callers pass
times. Data files are not read, so the operation itself must check whether existing rows satisfy a
new constraint.

Protocol: Change Metadata, Protocol Evolution
"""

__all__: tuple[str, ...] = ()
