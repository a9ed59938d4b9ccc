"""What small features forbid; how rules work together is in `tests/unit/protocol/table_change`."""

from __future__ import annotations

import pytest

from deltalog.errors import AppendOnlyError, CommitFailedError, InvalidInputError
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.features.support import (
    check_may_remove,
    check_user_domain,
    is_append_only,
    is_system_domain,
    protected_before_version,
)


def properties(**texts: str) -> TableProperties:
    return TableProperties({f"delta.{key}": text for key, text in texts.items()})


@pytest.mark.protocol("APP-01", "APP-03", "APP-04", "TF-05")
@pytest.mark.parametrize(
    ("features", "text", "expected"),
    [
        (["appendOnly"], "true", True),
        (["appendOnly"], "TRUE", True),
        (["appendOnly"], "false", False),
        ([], "true", False),
    ],
)
def test_append_only_needs_feature_and_property(
    features: list[str], text: str, *, expected: bool
) -> None:
    assert is_append_only(features, properties(appendOnly=text)) is expected
    assert not is_append_only(features, properties())
    if expected:
        with pytest.raises(AppendOnlyError, match="cannot DELETE t: it is append-only") as found:
            check_may_remove(features, properties(appendOnly=text), table="t", operation="DELETE")
        # deltalake raises the former there; the latter is what callers of deltalog know.
        assert isinstance(found.value, CommitFailedError)
        assert isinstance(found.value, InvalidInputError)
    else:
        check_may_remove(features, properties(appendOnly=text), table="t", operation="DELETE")


@pytest.mark.protocol("B-55")
def test_protection_counts_with_its_feature_only() -> None:
    protects = properties(requireCheckpointProtectionBeforeVersion="9")
    assert protected_before_version(["checkpointProtection"], protects) == 9
    assert protected_before_version([], protects) == 0
    assert protected_before_version(["checkpointProtection"], properties()) == 0


@pytest.mark.protocol("DOM-03")
@pytest.mark.parametrize("name", ["delta.x", "DELTA.x", "delta."])
def test_domains_of_features_are_not_for_users(name: str) -> None:
    assert is_system_domain(name)
    with pytest.raises(InvalidInputError, match="controlled by table features"):
        check_user_domain(name)
    check_user_domain("deltalog.mine")
