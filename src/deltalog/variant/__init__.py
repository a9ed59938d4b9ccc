"""Variants: their binary form ⇄ Python and JSON, and the reading of shredded columns."""

from __future__ import annotations

from deltalog.variant.json_text import to_json
from deltalog.variant.reader import decode
from deltalog.variant.shredding import unshred
from deltalog.variant.writer import encode

__all__ = ["decode", "encode", "to_json", "unshred"]
