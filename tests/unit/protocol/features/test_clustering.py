from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError, MalformedLogError
from deltalog.protocol.actions import DomainMetadata
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.features import clustering_columns
from deltalog.protocol.features.clustering import (
    CLUSTERING_DOMAIN,
    check_clustering_columns,
    clustering_action,
)
from deltalog.schema import Field, StructType

TEXTS = StructType([Field(f"c{number}", "string") for number in range(40)])


def properties(**texts: str) -> TableProperties:
    return TableProperties({f"delta.{key}": text for key, text in texts.items()})


def domain(text: str, *, removed: bool = False) -> dict[str, DomainMetadata]:
    return {
        CLUSTERING_DOMAIN: DomainMetadata(
            domain=CLUSTERING_DOMAIN, configuration=text, removed=removed
        )
    }


@pytest.mark.protocol("B-52", "D-55")
@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('{"clusteringColumns":[["c"],["s","d"]],"domainName":"x"}', (("c",), ("s", "d"))),
        ('{"clusteringColumns":["col1","col2"]}', (("col1",), ("col2",))),
        ('{"clusteringColumns":[]}', ()),
    ],
)
def test_clustering_columns_in_both_forms(text: str, columns: tuple[tuple[str, ...], ...]) -> None:
    assert clustering_columns(domain(text)) == columns


def test_no_clustering() -> None:
    assert clustering_columns({}) is None
    assert clustering_columns(domain('{"clusteringColumns":[["c"]]}', removed=True)) is None


@pytest.mark.parametrize(
    "text", ["", "{}", '{"clusteringColumns":[5]}', '{"clusteringColumns":[[]]}', "[]"]
)
def test_broken_clustering_is_an_error(text: str) -> None:
    with pytest.raises(MalformedLogError, match=r"delta\.clustering"):
        clustering_columns(domain(text))


@pytest.mark.protocol("B-52")
def test_clustering_is_written_as_spark_does() -> None:
    action = clustering_action([["c"], ["s", "d"]])
    assert action.configuration == (
        '{"clusteringColumns":[["c"],["s","d"]],"domainName":"delta.clustering"}'
    )
    assert clustering_columns({action.domain: action}) == (("c",), ("s", "d"))


@pytest.mark.protocol("B-52")
def test_clustering_columns_have_statistics() -> None:
    assert check_clustering_columns(["C31"], TEXTS, (), properties()) == (("c31",),)
    with pytest.raises(InvalidInputError, match="no statistics"):
        check_clustering_columns(["c32"], TEXTS, (), properties())
    more = properties(dataSkippingNumIndexedCols="-1")
    assert check_clustering_columns(["c39"], TEXTS, (), more) == (("c39",),)
    with pytest.raises(InvalidInputError, match="at most 4"):
        check_clustering_columns(["c1", "c2", "c3", "c4", "c5"], TEXTS, (), properties())
