"""Which row-level deletes apply to which data files, by Iceberg's rules for planning a scan."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.iceberg.source import DeleteFile, RowDeletes, Scope, Target, scope_of

WHOLE: Scope = (0, ())
P: Scope = (1, ("p",))
Q: Scope = (1, ("q",))


def delete(number: int, scope: Scope | None = WHOLE, **members: Any) -> DeleteFile:
    return DeleteFile(
        path=f"data/{number}.parquet",
        size_bytes=1,
        num_rows=1,
        sequence_number=number,
        scope=scope,
        **members,
    )


@pytest.mark.parametrize(
    ("one", "target", "applies"),
    [
        (delete(2), Target(2, WHOLE), True),  # of the same commit
        (delete(2), Target(3, WHOLE), False),
        (delete(2), Target(1, WHOLE), True),
        (delete(2, P), Target(1, P), True),
        (delete(2, P), Target(1, Q), False),
        (delete(2, WHOLE), Target(1, P), False),
        (delete(2, referenced="a"), Target(1, WHOLE), True),
        (delete(2, referenced="b"), Target(1, WHOLE), False),
    ],
)
def test_positions_are_of_files_that_are_not_younger(
    one: DeleteFile, target: Target, applies: bool
) -> None:
    assert one.applies_to("a", target) is applies


@pytest.mark.parametrize("nan", [float("nan"), -float("nan")])
def test_partitions_are_compared_by_bits(nan: float) -> None:
    assert scope_of(0, [nan]) == scope_of(0, [float("nan")])
    assert scope_of(0, [0.0]) != scope_of(0, [-0.0])
    assert scope_of(0, [1]) == scope_of(0, [1])
    assert scope_of(0, [1]) != scope_of(1, [1])
    assert scope_of(0, [None]) != scope_of(0, ["None"])


def test_what_applies_to_no_file_is_not_read() -> None:
    deletes = RowDeletes(
        root="/t",
        targets={"a": Target(3, P), "b": Target(5, Q)},
        positions=[
            delete(2, P),  # older than its files
            delete(3, P),
            delete(4, Q),
            delete(9, WHOLE),  # of no file's partition
            delete(9, P, referenced="gone"),
            delete(8, P, referenced="a"),
        ],
        equalities={
            (P, (1,)): [delete(3, P), delete(4, P)],
            (Q, (1,)): [delete(5, Q)],
            (None, (1,)): [delete(3, None), delete(4, None)],
        },
    )
    assert [one.sequence_number for one in deletes.positions_in_use()] == [3, 8]
    used = {
        key: [one.sequence_number for one in files]
        for key, files in deletes.equalities_in_use().items()
    }
    assert used == {(P, (1,)): [4], (None, (1,)): [4]}


def vector(number: int, location: str, scope: Scope = P) -> DeleteFile:
    return delete(number, scope, referenced=location, place=(4, 40))


def test_a_file_has_one_vector_that_fits() -> None:
    targets = {"a": Target(3, P)}
    fits = RowDeletes(root="/t", targets=targets, vectors=[vector(3, "a"), vector(3, "gone")])
    assert list(fits.vectors_by_file()) == ["a"]
    for wrong in ([vector(3, "a"), vector(4, "a")], [vector(2, "a")], [vector(3, "a", Q)]):
        with pytest.raises(InvalidInputError, match="deletion vector"):
            RowDeletes(root="/t", targets=targets, vectors=wrong).vectors_by_file()
