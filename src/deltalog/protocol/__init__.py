"""Delta's rules: actions, features, statistics, column mapping, deletion vectors.

Protocol: none
"""

__all__: tuple[str, ...] = ()
