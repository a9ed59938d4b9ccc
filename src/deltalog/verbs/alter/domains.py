"""Verbs that set and remove user-controlled metadata domains.

Protocol: Domain Metadata
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from deltalog.actions import DomainMetadata
from deltalog.errors import InvalidInputError
from deltalog.features.guards import check_user_domain
from deltalog.verbs.alter.staging import Alteration

if TYPE_CHECKING:
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True)
class SetDomainMetadata(Alteration):
    """Set the configuration of a metadata domain, replacing the previous one."""

    domain: str
    configuration: str
    name: ClassVar[str] = "SET DOMAIN METADATA"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Set the domain.

        Raises:
            InvalidInputError: the domain is system-controlled, or the table does not support the
                feature domainMetadata.
        """
        check_user_domain(self.domain)
        if not transaction.configuration.supports("domainMetadata"):
            raise InvalidInputError(
                f"cannot set the metadata domain {self.domain!r} of {transaction.store.root}: add "
                "the table feature domainMetadata first"
            )
        if not isinstance(self.configuration, str):
            raise InvalidInputError(
                "expected the configuration of a metadata domain as a text, found "
                f"{self.configuration!r}"
            )
        transaction.set_domain(DomainMetadata(domain=self.domain, configuration=self.configuration))
        return {"domain": self.domain}


@dataclass(frozen=True, slots=True)
class RemoveDomainMetadata(Alteration):
    """Remove a metadata domain."""

    domain: str
    name: ClassVar[str] = "REMOVE DOMAIN METADATA"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Remove the domain.

        Raises:
            InvalidInputError: the domain is system-controlled, or does not exist.
        """
        check_user_domain(self.domain)
        transaction.remove_domain(self.domain)
        return {"domain": self.domain}
