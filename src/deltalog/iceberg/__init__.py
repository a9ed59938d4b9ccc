"""Iceberg metadata beside the Delta log (UniForm), and tables from Iceberg.

After a commit, the Iceberg metadata of that version is written to `metadata/` of the table, with
PyIceberg's models and Avro writers (extra `iceberg`). The Delta log alone decides what a table
contains: a table with missing or late Iceberg metadata is complete.

- `sync`: bring Iceberg metadata up to a Delta version.
- `metadata`, `manifests`, `data_files`: the parts of Iceberg metadata that are written.
- `source`, `deleted_rows`: read an Iceberg table to convert it.
- `store_io`: PyIceberg's file interface over a table's store.

Protocol: Iceberg Compatibility V1, V2; Iceberg Table Spec (version 2)
"""

from __future__ import annotations

from deltalog.iceberg.sync import IcebergVersion, sync

__all__ = ["IcebergVersion", "sync"]
