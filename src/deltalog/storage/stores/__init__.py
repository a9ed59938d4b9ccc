"""Stores of each kind: what differs from fsspec in listings, deletes, signatures and options.

To add a kind, add its row to the table in `_util/store_kinds`, which `_util/paths` needs as well.
If
fsspec does not suffice, add a class below `FsspecFiles` here and its module to `filesystems`; `web`
and `memory` are short examples, and `s3` has everything. `storage.faults` has the options to
redact.
"""

from __future__ import annotations

from deltalog._util.store_kinds import StoreKind, kind_named

__all__ = ["StoreKind", "kind_named"]
