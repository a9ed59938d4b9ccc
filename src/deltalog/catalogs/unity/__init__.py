"""Unity Catalog: tables by name, credentials for their files, and commits that it decides on."""

from __future__ import annotations

from deltalog.catalogs.unity.catalog import UnityCatalog

__all__ = ["UnityCatalog"]
