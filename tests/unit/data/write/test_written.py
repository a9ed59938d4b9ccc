from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from deltalog.data.write import WrittenFiles
from deltalog.errors import InvalidInputError, MalformedLogError
from deltalog.protocol.actions import AddCDCFile, AddFile
from deltalog.schema import Field, StructType, encode_schema

SCHEMAS = {
    step: encode_schema(
        StructType(
            [Field("id", "long", metadata={"delta.identity.start": 0, "delta.identity.step": step})]
        )
    )
    for step in (1, -1)
}


def written(path: str, first: int | None = None, last: int = 0, step: int = 1) -> WrittenFiles:
    add = AddFile(
        path=path,
        partition_values={"p": None},
        size_bytes=5,
        modification_time_ms=7,
        data_change=True,
        stats='{"numRecords":2}',
    )
    return WrittenFiles(
        adds=(add,),
        cdc=(AddCDCFile(path=f"_change_data/{path}", partition_values={"p": "x"}, size_bytes=3),),
        identity_marks={} if first is None else {"id": last},
        identity_starts={} if first is None else {"id": first},
        num_rows=2,
        num_bytes=8,
        table_id="t",
        schema_string=SCHEMAS[step],
    )


def test_it_travels_as_a_pickle_and_as_json() -> None:
    whole = written("a b%é.parquet", 1, 2)
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert WrittenFiles.from_json(whole.to_json()) == whole
    assert whole.paths == ("a b%é.parquet", "_change_data/a b%é.parquet")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"actions":[{"add":{}}]}'])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(MalformedLogError, match="written files"):
        WrittenFiles.from_json(text)


def test_parts_become_one() -> None:
    merged = WrittenFiles.merge([written("a"), written("b")])
    assert [add.path for add in merged.adds] == ["a", "b"]
    assert (len(merged.cdc), merged.num_rows, merged.num_bytes) == (2, 4, 16)


@pytest.mark.parametrize("change", [{"table_id": "u"}, {"schema_string": SCHEMAS[-1]}])
def test_parts_of_different_tables_are_refused(change: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match="different"):
        WrittenFiles.merge([written("a"), replace(written("b"), **change)])  # type: ignore[arg-type]  # texts all


def test_no_parts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="no written files"):
        WrittenFiles.merge([])


@pytest.mark.protocol("IDN-04")
@pytest.mark.parametrize(
    ("step", "spans", "start", "mark"),
    [(1, [(5, 9), (1, 4)], 1, 9), (-1, [(-1, -4), (-5, -9)], -1, -9), (-1, [(5, 5), (4, 4)], 5, 4)],
)
def test_the_furthest_identity_value_is_the_mark(
    step: int, spans: list[tuple[int, int]], start: int, mark: int
) -> None:
    merged = WrittenFiles.merge(written("a", *span, step=step) for span in spans)
    assert (merged.identity_starts, merged.identity_marks) == ({"id": start}, {"id": mark})


@pytest.mark.protocol("IDN-03")
def test_identity_values_given_twice_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="same values of the identity column 'id'"):
        WrittenFiles.merge([written("a", 1, 5), written("b", 5, 9)])
