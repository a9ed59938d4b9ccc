"""Iceberg metadata beside the Delta log (UniForm), and tables from Iceberg.

After a commit, deltalog writes the Iceberg metadata of that version to `metadata/` of the table,
with PyIceberg's models and Avro writers (extra `iceberg`). The Delta log alone decides what a table
contains. If its Iceberg metadata is missing or old, the Delta table is still complete.

- `sync`: update Iceberg metadata to a Delta version.
- `metadata`, `manifests`, `data_files`: the parts of Iceberg metadata that are written.
- `source`, `deleted_rows`: read an Iceberg table for its conversion to Delta.
- `store_io`: PyIceberg's file interface over a table's store.

Protocol: Iceberg Compatibility V1, V2; Iceberg Table Spec (version 2)
"""

from __future__ import annotations

from deltalog.iceberg.sync import IcebergVersion, sync

__all__ = ["IcebergVersion", "sync"]
