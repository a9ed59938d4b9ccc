"""Variants: conversion to and from Python and JSON, and reading of shredded columns.

- `reader`: decodes the binary form.
- `shredding`: encodes the binary form, and reassembles shredded variants.
"""

from __future__ import annotations

from deltalog.schema.variant.reader import decode, to_json
from deltalog.schema.variant.shredding import encode, unshred

__all__ = ["decode", "encode", "to_json", "unshred"]
