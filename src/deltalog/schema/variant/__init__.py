"""Variants: their binary form ⇄ Python and JSON, and the reading of shredded columns."""

from __future__ import annotations

from deltalog.schema.variant.reader import decode, to_json
from deltalog.schema.variant.shredding import encode, unshred

__all__ = ["decode", "encode", "to_json", "unshred"]
