from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deltalog._util.paths import (
    canonical_path,
    canonical_paths,
    check_all_confined,
    check_confined,
    decode_path,
    encode_path,
    file_locations,
    join,
    parse_table_uri,
)
from deltalog.errors import UnsafePathError

LETTERS = st.characters(codec="utf-8")
NASTY = st.sampled_from(list("%25 /.:?#\\+=&@éß漢😀\x00aAfF0"))
PATHS = st.text(st.one_of(NASTY, LETTERS), max_size=20)
ROOTS = st.sampled_from(
    ["/t", "/", "file:///t", "s3://b/t", "s3://b", "az://c/t", "memory:///t", "C:/t"]
)


@given(PATHS)
def test_decoding_undoes_encoding(path: str) -> None:
    assert decode_path(encode_path(path)) == path


@given(PATHS)
def test_an_encoded_path_is_ascii_without_blanks(path: str) -> None:
    encoded = encode_path(path)
    assert encoded.isascii()
    assert not set(encoded) & set(' "<>\\^`{|}#?')


@given(PATHS, ROOTS)
def test_the_canonical_form_is_stable(path: str, root: str) -> None:
    once = canonical_path(path, root)
    assert canonical_path(once, root) == once


@given(st.lists(st.one_of(st.none(), PATHS), max_size=8), ROOTS)
def test_columns_agree_with_single_paths(paths: list[str | None], root: str) -> None:
    column = pa.array(paths, pa.string())
    expected = [None if path is None else canonical_path(decode_path(path), root) for path in paths]
    assert canonical_paths(column, root).to_pylist() == expected


# Mostly as writers make them, so that columns are passed without a look at each path.
PLAIN = st.sampled_from(["part-0.parquet", "p=1/part-1.parquet", "p=1/q=é/x.parquet", "a.b", ""])
ODD = st.sampled_from([".", "./a", "a/.", "a/", "/a", "a//b", "a/./b", "p=1%2F/x", "a:b", ".a/b"])


@given(
    st.lists(st.one_of(st.none(), PLAIN, PLAIN, PLAIN, ODD), max_size=6),
    st.integers(0, 3),
    st.integers(1, 9),
    ROOTS,
)
@example(["a//b"], 0, 2, "/t")
@example(["b", "a/./b"], 1, 1, "/t")
def test_slices_of_plain_columns_agree_with_single_paths(
    paths: list[str | None], skipped: int, block_bytes: int, root: str
) -> None:
    column = pa.array(paths, pa.string()).slice(skipped)
    decoded = [None if path is None else decode_path(path) for path in paths[skipped:]]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("deltalog._util.paths._BLOCK_BYTES", block_bytes)
        patched.setattr("deltalog._util.paths._FEW_PATHS", 0)
        assert canonical_paths(column, root).to_pylist() == [
            None if path is None else canonical_path(path, root) for path in decoded
        ]
        assert file_locations(column, root).to_pylist() == [
            None if path is None else join(root, path) for path in decoded
        ]


DIRECTORIES = st.one_of(
    PATHS,
    st.sampled_from(["s3://", "s3://b/t", "s3a://b", "file:", "/t", "/", "", ".", "az://c@a"]),
)


@given(DIRECTORIES, st.lists(PATHS, min_size=3, max_size=12), ROOTS)
def test_columns_of_few_directories_agree_with_single_paths(
    directory: str, names: list[str], root: str
) -> None:
    paths = [f"{directory}/{name.replace('/', '')}" for name in names]
    expected = [canonical_path(decode_path(path), root) for path in paths]
    assert canonical_paths(pa.array(paths), root).to_pylist() == expected


@given(st.lists(PATHS, min_size=1, max_size=4), st.booleans())
def test_confinement_of_a_column_agrees_with_single_paths(
    paths: list[str], allow_absolute: bool
) -> None:
    def refused(check: object, value: object) -> bool:
        try:
            check(value, allow_absolute=allow_absolute)  # type: ignore[operator]  # either check
        except UnsafePathError:
            return True
        return False

    one_by_one = any(refused(check_confined, decode_path(path)) for path in paths)
    assert refused(check_all_confined, pa.array(paths)) == one_by_one


@given(PATHS)
def test_a_confined_relative_path_stays_below_its_root(path: str) -> None:
    try:
        check_confined(path, allow_absolute=False)
    except UnsafePathError:
        return
    depth = 0
    for part in path.split("/"):
        depth += {"": 0, ".": 0, "..": -1}.get(part, 1)
        assert depth >= 0


@given(PATHS, st.integers(0, 2**63 - 1))
def test_a_version_behind_any_location_is_found(location: str, version: int) -> None:
    if location:
        assert parse_table_uri(f"{location}@v{version}")[:2] == (location, version)
