"""Features are added, and the protocol is upgraded."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations import alter
from tests.support.altering import apply, last, make, told


@pytest.mark.protocol("TF-01", "TF-06", "CM-05")
def test_features_are_added() -> None:
    table = make()
    with pytest.raises(
        InvalidInputError, match=r"\(1, 2\) to \(3, 7\), and deltalake .* cannot read"
    ):
        apply(table, alter.AddFeature("deletionVectors"))
    after = apply(
        table,
        alter.AddFeature(["deletionVectors"], allow_protocol_versions_increase=True),
    )
    assert set(after.configuration.features) == {"appendOnly", "invariants", "deletionVectors"}
    operation, parameters = told(table)
    assert (operation, parameters) == ("ADD FEATURE", {"name": ["deletionVectors"]})
    assert set(last(table)) == {"commitInfo", "protocol"}
    apply(table, alter.AddFeature("changeDataFeed"))


@pytest.mark.protocol("UPG-05", "UPG-07")
def test_the_protocol_is_upgraded() -> None:
    table = make()
    after = apply(table, alter.UpgradeProtocol(1, 3))
    assert after.protocol.min_writer_version == 3
    after = apply(table, alter.UpgradeProtocol(1, 2))
    assert after.protocol.min_writer_version == 3
    bad: Any = "3"
    with pytest.raises(InvalidInputError, match="whole numbers"):
        apply(table, alter.UpgradeProtocol(1, bad))
    with pytest.raises(InvalidInputError, match="expected 1 to 7"):
        apply(table, alter.UpgradeProtocol(1, 8))
