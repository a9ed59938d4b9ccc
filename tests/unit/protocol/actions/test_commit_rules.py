from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
)
from deltalog.protocol.actions.codec import check_commit
from deltalog.protocol.actions.model import RemoveFile

METADATA = Metadata(id="1", schema_string="{}")
PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)


def vector(name: str) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv=name, size_bytes=1, cardinality=1
    )


def add(path: str, dv: str | None = None) -> AddFile:
    return AddFile(
        path=path,
        partition_values={},
        size_bytes=1,
        modification_time_ms=1,
        data_change=True,
        deletion_vector=None if dv is None else vector(dv),
    )


def remove(path: str, dv: str | None = None) -> RemoveFile:
    return RemoveFile(
        path=path, data_change=True, deletion_vector=None if dv is None else vector(dv)
    )


@pytest.mark.protocol("LOG-07", "LOG-08", "META-03", "ADD-10", "B-03")
@pytest.mark.parametrize(
    "actions",
    [
        [METADATA, METADATA],
        [PROTOCOL, PROTOCOL],
        [CommitInfo(values={}), CommitInfo(values={})],
        [SetTransaction(app_id="a", version=1), SetTransaction(app_id="a", version=2)],
        [
            DomainMetadata(domain="d", configuration=""),
            DomainMetadata(domain="d", configuration="x"),
        ],
        [add("f"), add("f")],
        [add("f", "x"), add("f", "y")],
        [remove("f"), remove("f", "x")],
        [add("f"), remove("f")],
        [add("f", "x"), remove("f", "x")],
    ],
)
def test_contradictions_are_refused(actions: list[Action]) -> None:
    with pytest.raises(InvalidInputError, match="cannot"):
        check_commit(actions)


@pytest.mark.protocol("ADD-08", "ADD-09")
def test_legal_neighbours() -> None:
    check_commit(
        [
            CommitInfo(values={}),
            METADATA,
            PROTOCOL,
            add("f", "x"),
            remove("f"),
            AddCDCFile(path="f", partition_values={}, size_bytes=1),
            add("g"),
            SetTransaction(app_id="a", version=1),
            SetTransaction(app_id="b", version=1),
            DomainMetadata(domain="d", configuration=""),
            DomainMetadata(domain="e", configuration=""),
        ]
    )
