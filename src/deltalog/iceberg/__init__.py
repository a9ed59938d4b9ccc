"""Iceberg metadata of Delta tables (UniForm), and conversion of Iceberg tables to Delta.

After a commit, deltalog writes the Iceberg metadata of that version to `metadata/` of the table,
with PyIceberg's models and Avro writers (extra `iceberg`). Readers of Delta do not use this
metadata, so the Delta table is complete even if its Iceberg metadata is missing or old.

- `sync`: update Iceberg metadata to a Delta version.
- `metadata`, `manifests`, `data_files`: the parts of Iceberg metadata that are written.
- `source`, `deleted_rows`: read an Iceberg table for its conversion to Delta.
- `store_io`: PyIceberg's file interface over a table's store.

Protocol: Iceberg Compatibility V1, V2; Iceberg Table Spec (version 2)
"""

from __future__ import annotations

from deltalog._util.extras import needing

with needing("PyIceberg", "iceberg", __name__, "pyiceberg"):
    from deltalog.iceberg.sync import IcebergVersion, sync

__all__ = ["IcebergVersion", "sync"]
