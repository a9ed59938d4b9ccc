"""Metadata domains of users: named configurations beside the schema.

Protocol: Domain Metadata
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.actions import DomainMetadata
from deltalog.errors import InvalidInputError
from deltalog.features.guards import check_user_domain
from deltalog.verbs.alter.staging import record

if TYPE_CHECKING:
    from deltalog.transaction import PendingTransaction


def set_domain_metadata(pending: PendingTransaction, domain: str, configuration: str) -> None:
    """Set a domain's text, in place of what it was.

    Raises:
        InvalidInputError: the domain belongs to a table feature, or the table has no domains.
    """
    check_user_domain(domain)
    if not pending.configuration.supports("domainMetadata"):
        raise InvalidInputError(
            f"cannot set the metadata domain {domain!r} of {pending.store.root}: add the table "
            "feature domainMetadata first"
        )
    if not isinstance(configuration, str):
        raise InvalidInputError(
            f"expected the configuration of a metadata domain as a text, found {configuration!r}"
        )
    pending.set_domain(DomainMetadata(domain=domain, configuration=configuration))
    record(pending, "SET DOMAIN METADATA", domain=domain)


def remove_domain_metadata(pending: PendingTransaction, domain: str) -> None:
    """Remove a domain.

    Raises:
        InvalidInputError: the domain belongs to a table feature, or there is none of that name.
    """
    check_user_domain(domain)
    pending.remove_domain(domain)
    record(pending, "REMOVE DOMAIN METADATA", domain=domain)
