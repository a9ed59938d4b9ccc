"""Whoever lends the credentials of a Unity Catalog: for a table, a staged one, or a location.

Protocol: UC Delta API (credentials)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.catalogs.locations import LentCredential
    from deltalog.catalogs.protocol import Name
    from deltalog.catalogs.unity.api import UnityApi
    from deltalog.clock import Clock


@dataclass(frozen=True, slots=True)
class UnityLender(ABC):
    """Lends credentials; its subclasses know for what."""

    api: UnityApi

    @property
    def clock(self) -> Clock:
        """As `Lender`."""
        return self.api.client.clock

    @property
    def pickles_secrets(self) -> bool:
        """As `Lender`."""
        return self.api.client.pickles_secrets

    @abstractmethod
    def lend(self) -> Sequence[LentCredential]:
        """As `Lender`."""


@dataclass(frozen=True, slots=True)
class OfTable(UnityLender):
    """For a table of the catalog."""

    name: Name
    table_id: str
    location: str

    def lend(self) -> Sequence[LentCredential]:
        """As `Lender`."""
        return self.api.lend_for_table(self.name, self.table_id, self.location)


@dataclass(frozen=True, slots=True)
class OfStaging(UnityLender):
    """For a table that is not shown yet."""

    catalog: str
    table_id: str
    location: str

    def lend(self) -> Sequence[LentCredential]:
        """As `Lender`."""
        return self.api.lend_for_staging(self.catalog, self.table_id, self.location)


@dataclass(frozen=True, slots=True)
class OfPath(UnityLender):
    """For a location that is not a table's yet."""

    catalog: str
    location: str

    def lend(self) -> Sequence[LentCredential]:
        """As `Lender`."""
        return self.api.lend_for_path(self.catalog, self.location)
