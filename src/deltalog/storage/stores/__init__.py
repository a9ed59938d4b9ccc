"""Kinds of stores: operations for which fsspec is not sufficient.

These are listing, deleting, signing URLs and translating storage options.

To add a kind, add a row to the table in `_util/store_kinds`. If fsspec's methods do not suffice,
add a subclass of `FsspecFiles` here, and its module to `filesystems`. `web` and `memory` are short
examples; `s3` overrides everything. `storage.faults` lists the options to redact.
"""

from __future__ import annotations

from deltalog._util.store_kinds import StoreKind, kind_named

__all__ = ["StoreKind", "kind_named"]
