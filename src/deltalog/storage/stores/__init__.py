"""Stores of each kind: what differs from fsspec in listings, deletes, signatures and options.

To add a kind, add its row to the table in `_util/store_kinds`, which `_util/paths` needs as well,
and here a class below `FsspecFiles` if fsspec does not suffice; `google` is the shortest example.
"""

from __future__ import annotations

from deltalog._util.store_kinds import StoreKind, kind_named

__all__ = ["StoreKind", "kind_named"]
