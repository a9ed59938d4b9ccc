"""Unity Catalog: tables by name, credentials for their files, and catalog-managed commits.

- `catalog`: `UnityCatalog`, the public class.
- `committer`: commits to tables whose commits the catalog coordinates.
- `api`: the endpoints. `client`: requests, authentication and settings.
- `messages`: the JSON of the Delta API. `older`: tables on servers without the Delta API.
"""

from __future__ import annotations

from deltalog.catalogs.unity.catalog import UnityCatalog

__all__ = ["UnityCatalog"]
