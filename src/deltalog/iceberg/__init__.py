"""Iceberg metadata for Delta tables (UniForm), and the conversion of Iceberg tables.

After a commit, the Iceberg metadata of that version is written to `metadata/` of the table, with
PyIceberg's models and Avro writers (extra `iceberg`). The log alone decides what a table contains:
a table whose Iceberg metadata is missing or late is complete.

Protocol: Iceberg Compatibility V1, V2; Iceberg Table Spec (version 2)
"""

from __future__ import annotations

from deltalog.iceberg.sync import IcebergVersion, sync

__all__ = ["IcebergVersion", "sync"]
