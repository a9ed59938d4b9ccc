"""Partition values: texts in the log, typed values everywhere else; Hive-style directories."""

from __future__ import annotations

from deltalog.partition_values.directories import (
    NULL_DIRECTORY,
    escape_directory,
    hive_directory,
    parse_hive_directory,
)
from deltalog.partition_values.values import (
    encode_value,
    extract,
    parse_column,
    parse_value,
    value_of,
)

__all__ = [
    "NULL_DIRECTORY",
    "encode_value",
    "escape_directory",
    "extract",
    "hive_directory",
    "parse_column",
    "parse_hive_directory",
    "parse_value",
    "value_of",
]
