from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.protocol.actions import Protocol
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.features import supported_features, with_features
from deltalog.protocol.features.protocol_change import (
    implied_features,
    least_protocol,
    merge,
    normalise,
    requested_protocol,
    without_feature,
    without_requests,
)
from deltalog.schema import Field, PrimitiveType, StructType


def protocol(
    reader: int, writer: int, readers: list[str] | None = None, writers: list[str] | None = None
) -> Protocol:
    return Protocol(
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=None if readers is None else tuple(readers),
        writer_features=None if writers is None else tuple(writers),
    )


@pytest.mark.protocol("VER-01", "VER-02", "UPG-08")
@pytest.mark.parametrize(
    ("reader", "writer", "features"),
    [
        (1, 1, set()),
        (1, 2, {"appendOnly", "invariants"}),
        (1, 3, {"appendOnly", "invariants", "checkConstraints"}),
        (
            1,
            4,
            {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"},
        ),
        (2, 3, {"appendOnly", "invariants", "checkConstraints"}),
        (3, 7, set()),
        (1, 7, set()),
    ],
)
def test_what_versions_imply(reader: int, writer: int, features: set[str]) -> None:
    assert implied_features(reader, writer) == features


@pytest.mark.protocol("VER-01", "VER-02")
def test_the_last_versions_before_lists() -> None:
    four = implied_features(1, 4)
    assert implied_features(1, 5) == four
    assert implied_features(2, 5) == four | {"columnMapping"}
    assert implied_features(2, 6) == four | {"columnMapping", "identityColumns"}


@pytest.mark.protocol("B-08", "D-58")
@pytest.mark.parametrize(
    ("given", "normal"),
    [
        (protocol(3, 7, [], ["rowTracking"]), protocol(1, 7, None, ["rowTracking"])),
        (protocol(2, 3), protocol(1, 3)),
        (protocol(1, 5), protocol(1, 4)),
        (protocol(3, 7, [], ["appendOnly", "invariants"]), protocol(1, 2)),
        (protocol(1, 7, None, ["appendOnly"]), protocol(1, 7, None, ["appendOnly"])),
        (protocol(3, 7, [], []), protocol(1, 1)),
        (protocol(2, 5), protocol(2, 5)),
        (
            protocol(3, 7, ["columnMapping"], ["columnMapping"]),
            protocol(3, 7, ["columnMapping"], ["columnMapping"]),
        ),
        (
            protocol(3, 7, ["deletionVectors"], ["deletionVectors", "appendOnly", "invariants"]),
            protocol(3, 7, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"]),
        ),
        (protocol(3, 7, ["new"], ["new"]), protocol(3, 7, ["new"], ["new"])),
        (protocol(1, 7, None, ["new"]), protocol(1, 7, None, ["new"])),
    ],
)
def test_the_weakest_form(given: Protocol, normal: Protocol) -> None:
    assert normalise(given) == normal
    assert normalise(normal) == normal
    assert set(supported_features(normal)) == set(supported_features(given))


@pytest.mark.protocol("TF-06", "PROTO-07")
def test_the_listed_form() -> None:
    five = ["appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants"]
    assert normalise(protocol(3, 7, [], five)) == protocol(1, 4)
    # The protocol's two examples of the same table.
    two = ["columnMapping", "identityColumns"]
    for_writers, for_both = protocol(2, 7, None, two), protocol(3, 7, ["columnMapping"], two)
    assert [normalise(for_both), normalise(for_writers)] == [for_both, for_writers]
    assert set(supported_features(for_both)) == set(supported_features(for_writers)) == set(two)


@pytest.mark.protocol("TF-06", "TF-03", "B-08")
def test_an_upgrade_carries_what_the_old_version_implied() -> None:
    assert with_features(protocol(1, 2), ["deletionVectors"]) == protocol(
        3, 7, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"]
    )
    upgraded = with_features(protocol(1, 4), ["deletionVectors"])
    assert set(upgraded.writer_features or ()) == implied_features(1, 4) | {"deletionVectors"}
    assert upgraded.reader_features == ("deletionVectors",)


@pytest.mark.protocol("B-12")
def test_what_a_feature_requires_comes_along() -> None:
    assert with_features(protocol(1, 1), ["rowTracking"]) == protocol(
        1, 7, None, ["domainMetadata", "rowTracking"]
    )
    listed = with_features(protocol(1, 1), ["icebergCompatV3"])
    assert listed == protocol(
        *(3, 7, ["columnMapping"]),
        ["columnMapping", "domainMetadata", "icebergCompatV3", "rowTracking"],
    )
    # Column mapping stays as it was, or becomes what was asked for.
    by_version = with_features(protocol(2, 5), ["rowTracking"])
    assert (by_version.min_reader_version, by_version.reader_features) == (2, None)
    by_name = merge(by_version, protocol(3, 7, [], []))
    assert (by_name.min_reader_version, by_name.reader_features) == (3, ("columnMapping",))
    assert merge(protocol(1, 2), protocol(2, 5)) == protocol(2, 5)


@pytest.mark.protocol("B-10", "B-11", "B-63")
def test_the_spelling_of_the_table_stays() -> None:
    old = protocol(3, 7, ["timestampNTZ"], ["timestampNTZ", "columnInvariants"])
    assert with_features(old, ["timestampNtz", "invariants"]) == protocol(
        3, 7, ["timestampNTZ"], ["columnInvariants", "timestampNTZ"]
    )
    assert supported_features(old) == {
        "timestampNtz": "timestampNTZ",
        "invariants": "columnInvariants",
    }


@pytest.mark.protocol("UPG-07", "B-09")
def test_merging_never_lowers() -> None:
    assert merge(protocol(1, 3), protocol(1, 2)) == protocol(1, 3)
    assert merge(protocol(1, 2), protocol(1, 3)) == protocol(1, 3)
    assert merge(protocol(1, 3), protocol(1, 7, None, ["domainMetadata"])) == protocol(
        1, 7, None, ["appendOnly", "checkConstraints", "domainMetadata", "invariants"]
    )
    assert merge(protocol(3, 7, ["new"], ["new"]), protocol(1, 2)) == protocol(
        3, 7, ["new"], ["appendOnly", "invariants", "new"]
    )


PLAIN = StructType([Field("a", PrimitiveType("long"))])


@pytest.mark.protocol("UPG-03", "NTZ-01")
@pytest.mark.parametrize(
    ("configuration", "schema", "expected"),
    [
        ({}, PLAIN, protocol(1, 2)),
        ({"delta.constraints.c": "a > 1"}, PLAIN, protocol(1, 3)),
        (
            {"delta.enableChangeDataFeed": "true"},
            PLAIN,
            protocol(1, 7, None, ["appendOnly", "changeDataFeed", "invariants"]),
        ),
        (
            {"delta.columnMapping.mode": "name"},
            PLAIN,
            protocol(3, 7, ["columnMapping"], ["appendOnly", "columnMapping", "invariants"]),
        ),
        (
            {},
            StructType([Field("a", PrimitiveType("timestamp_ntz"))]),
            protocol(3, 7, ["timestampNtz"], ["appendOnly", "invariants", "timestampNtz"]),
        ),
        (
            {"delta.enableIcebergCompatV3": "true"},
            PLAIN,
            protocol(
                3,
                7,
                ["columnMapping"],
                [
                    "appendOnly",
                    "columnMapping",
                    "domainMetadata",
                    "icebergCompatV3",
                    "invariants",
                    "rowTracking",
                ],
            ),
        ),
        (
            {"delta.enableVariantShredding": "true"},
            PLAIN,
            protocol(
                3,
                7,
                ["variantShredding", "variantType"],
                ["appendOnly", "invariants", "variantShredding", "variantType"],
            ),
        ),
        ({"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"}, PLAIN, protocol(1, 4)),
        (
            {
                "delta.minReaderVersion": "2",
                "delta.minWriterVersion": "5",
                "delta.columnMapping.mode": "name",
            },
            PLAIN,
            protocol(2, 5),
        ),
        (
            {"delta.feature.rowtracking": "supported"},
            PLAIN,
            protocol(1, 7, None, ["appendOnly", "domainMetadata", "invariants", "rowTracking"]),
        ),
    ],
)
def test_the_least_protocol_of_a_new_table(
    configuration: dict[str, str], schema: StructType, expected: Protocol
) -> None:
    assert least_protocol(TableProperties(configuration), schema) == expected


@pytest.mark.protocol("TF-01")
@pytest.mark.parametrize("writer", ["2", "6", " 3 "])
def test_reader_version_3_goes_with_writer_version_7_only(writer: str) -> None:
    asked = {"delta.minReaderVersion": "3", "delta.minWriterVersion": writer}
    with pytest.raises(InvalidInputError, match="reader version 3 with writer version"):
        requested_protocol(asked)
    for sound in ({"delta.minReaderVersion": "3"}, {**asked, "delta.minWriterVersion": "7"}):
        assert requested_protocol(sound)[0] == protocol(3, 7, [], [])


@pytest.mark.protocol("UPG-05", "UPG-06", "B-09")
def test_requests_are_no_part_of_the_configuration() -> None:
    asked = {
        "delta.minReaderVersion": "1",
        "delta.minWriterVersion": "3",
        "delta.feature.deletionVectors": "enabled",
        "delta.appendOnly": "true",
    }
    assert requested_protocol(asked) == (protocol(1, 3), ["deletionVectors"])
    assert without_requests(asked) == {"delta.appendOnly": "true"}


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"delta.minReaderVersion": "x"}, "expected 1 to 3"),
        ({"delta.minWriterVersion": "8"}, "expected 1 to 7"),
        ({"delta.feature.nobody": "supported"}, "there is no table feature 'nobody'"),
        ({"delta.feature.rowTracking": "yes"}, "expected supported"),
    ],
)
def test_requests_that_cannot_be_met(configuration: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        requested_protocol(configuration)


@pytest.mark.protocol("B-07", "TF-04")
def test_a_feature_is_dropped_only_on_its_own() -> None:
    table = protocol(1, 7, None, ["appendOnly", "domainMetadata", "invariants", "rowTracking"])
    with pytest.raises(InvalidInputError, match="'rowTracking' requires it"):
        without_feature(table, "domainMetadata")
    with pytest.raises(InvalidInputError, match="does not have it"):
        without_feature(table, "deletionVectors")
    less = without_feature(table, "rowTracking")
    assert without_feature(less, "domainMetadata") == protocol(1, 2)


def test_an_unknown_feature_cannot_be_added() -> None:
    with pytest.raises(InvalidInputError, match="there is no table feature 'nobody'"):
        with_features(protocol(1, 2), ["nobody"])
