"""Create and change a table's protocol and metadata, so that the two always agree.

Creating, overwriting with another schema, altering and enabling features use this package. Core: no
I/O, no clock; times are passed in. It does not read data files: the operation checks whether
existing rows satisfy a new constraint.

Protocol: Change Metadata, Protocol Evolution
"""

__all__: tuple[str, ...] = ()
