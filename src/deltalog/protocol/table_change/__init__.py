"""Creating and changing a table's protocol and metadata, so that the two are consistent.

All operations that create or alter tables use this package. Core: no I/O, no clock; times are
passed in. Data files are not read: the operation must check whether existing rows satisfy a new
constraint.

Protocol: Change Metadata, Protocol Evolution
"""

__all__: tuple[str, ...] = ()
