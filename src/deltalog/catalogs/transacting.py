"""The door from a catalog to transactions over several of its tables.

Refuses to know what a transaction is: tables are a room above catalogs, which is loaded when
somebody asks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deltalog.inherited import name_methods_after

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from os import PathLike

    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store


class OffersTransactions:
    """A catalog whose users begin a transaction over several of its tables here."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Let errors about arguments name the class that is called."""
        super().__init_subclass__(**options)
        name_methods_after(cls, OffersTransactions)

    def transaction(
        self,
        journals: str | PathLike[str] | Store | None = None,
        storage_options: StorageOptions | None = None,
        **options: Any,
    ) -> AbstractContextManager[Any]:
        """Begin a transaction: `with catalog.transaction() as tx: tx.table("a.b").append(…)`.

        Args:
            journals: as for `CatalogTransactions`, which also completes what a run left.
            storage_options: of the folder of journals.
            options: as for `CatalogTransactions.begin`.

        Returns:
            A `CatalogTransaction`.

        Raises:
            InvalidInputError: the catalog has no folder for journals, and none is named.
        """
        tables: Any = import_module("deltalog.table")
        found: AbstractContextManager[Any] = tables.CatalogTransactions(
            self, journals, storage_options
        ).begin(**options)
        return found
