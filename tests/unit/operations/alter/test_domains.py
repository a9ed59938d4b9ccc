"""Domains of users are set and removed."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations import alter
from deltalog.protocol.actions import DomainMetadata
from tests.support.altering import apply, last, make


@pytest.mark.protocol("DOM-03", "DOM-06", "DOM-07")
def test_domains_of_users() -> None:
    table = make()
    with pytest.raises(InvalidInputError, match="domainMetadata"):
        apply(table, alter.SetDomainMetadata("mine", "{}"))
    apply(
        table,
        alter.AddFeature("domainMetadata", allow_protocol_versions_increase=True),
    )
    after = apply(table, alter.SetDomainMetadata("mine", '{"a":1}'))
    assert after.domain_metadata == {"mine": DomainMetadata(domain="mine", configuration='{"a":1}')}
    after = apply(table, alter.RemoveDomainMetadata("mine"))
    assert after.domain_metadata == {}
    assert last(table)["domainMetadata"] == {
        "domain": "mine",
        "configuration": '{"a":1}',
        "removed": True,
    }
    for name in ("delta.clustering", "DELTA.x", ""):
        with pytest.raises(InvalidInputError, match="domain"):
            apply(table, alter.SetDomainMetadata(name, "{}"))
    with pytest.raises(InvalidInputError, match="no such domain"):
        apply(table, alter.RemoveDomainMetadata("mine"))
