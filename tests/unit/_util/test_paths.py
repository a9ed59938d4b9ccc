from __future__ import annotations

import time

import pyarrow as pa
import pytest

from deltalog._util.paths import (
    FileInfo,
    TableLocation,
    absolute_numbers,
    canonical_path,
    canonical_paths,
    check_all_confined,
    check_confined,
    decode_location,
    decode_path,
    encode_path,
    file_locations,
    is_absolute,
    join,
    parse_table_uri,
    split_location,
)
from deltalog.errors import InvalidInputError, UnsafePathError


@pytest.mark.protocol("ADD-02", "D-05")
@pytest.mark.parametrize(
    ("encoded", "decoded"),
    [
        ("a%20b%25.parquet", "a b%.parquet"),
        ("p=x%253Ay/part-0.parquet", "p=x%3Ay/part-0.parquet"),  # Hive's escape stays
        ("p=a%2520b/x", "p=a%20b/x"),
        ("%C3%A9", "é"),
        ("é", "é"),  # Spark leaves letters beyond ASCII as they are
        ("a+b", "a+b"),  # a plus is no blank in a path
        ("a b", "a b"),  # not encoded by its writer
        ("100%", "100%"),
        ("%zz%2", "%zz%2"),
        ("%FF%41", "%FFA"),  # no UTF-8: left as it is
        ("a%23%3Fb", "a#?b"),
        ("s3://bucket/a%20b", "s3://bucket/a b"),
        ("", ""),
    ],
)
def test_decoding_undoes_one_level_of_escapes(encoded: str, decoded: str) -> None:
    assert decode_path(encoded) == decoded


@pytest.mark.protocol("ADD-02", "D-05")
@pytest.mark.parametrize(
    ("path", "encoded"),
    [
        ("a b%.parquet", "a%20b%25.parquet"),
        ("p=x%3Ay/f", "p=x%253Ay/f"),
        ("p=é/f", "p=%C3%A9/f"),
        ("a:b/c", "a%3Ab/c"),  # else `a` would be read as a scheme
        ("a#?b", "a%23%3Fb"),
        ("p=a+b&c,d;e@f/(1)*'!~", "p=a+b&c,d;e@f/(1)*'!~"),
        ("s3://bucket/a b:c", "s3://bucket/a%20b:c"),
        ("file:///a b", "file:///a%20b"),
        ("/a b", "/a%20b"),
        ("abfss://c@a.dfs.core.windows.net/x y", "abfss://c@a.dfs.core.windows.net/x%20y"),
    ],
)
def test_encoding_makes_a_uri_reference(path: str, encoded: str) -> None:
    assert encode_path(path) == encoded


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b", False),
        ("p=12:30/x", False),
        ("a:b", False),
        ("/a", True),
        ("file:/a", True),
        ("s3a://b/c", True),
        ("C:/data", True),
    ],
)
def test_what_is_absolute(path: str, *, expected: bool) -> None:
    assert is_absolute(path) is expected


def test_joining_keeps_absolute_paths() -> None:
    assert join("/t/", "a b") == "/t/a b"
    assert join("s3://b/t", "x/y") == "s3://b/t/x/y"
    assert join("/t", "s3://b/x") == "s3://b/x"


@pytest.mark.protocol("D-06", "D-45")
@pytest.mark.parametrize(
    ("root", "spellings", "expected"),
    [
        ("/t", ["/t/a b", "file:/t/a b", "file:///t/a b", "file://localhost/t/a b", "a b"], "a b"),
        ("file:///t/", ["/t/a", "./a", "a", "/t//a", "/t/./a"], "a"),
        ("s3://b/t", ["s3a://b/t/x/y", "s3n://b/t/x/y", "x/y", "x//y", "s3://b/t/./x/y"], "x/y"),
        ("s3://b", ["s3://b/x", "s3a://b/x"], "x"),
        (
            "abfss://c@acc.dfs.core.windows.net/t",
            ["wasbs://c@acc.blob.core.windows.net/t/x", "abfs://c@ACC.dfs.core.windows.net/t/x"],
            "x",
        ),
        ("az://c/t", ["abfss://c@acc.dfs.core.windows.net/t/x", "az://c/t/x"], "x"),
        ("gs://b/t", ["gcs://b/t/x"], "x"),
        ("memory:///t", ["memory://t/x", "memory:/t/x"], "x"),
        ("/t", ["/u/x", "file:/u/x", "file:///u/x"], "file:///u/x"),
        ("/t", ["/tt/x"], "file:///tt/x"),  # no part of /t
        ("/t", ["s3a://b/x", "s3://b//x"], "s3://b/x"),
        ("s3://b/t", ["s3://c/t/x"], "s3://c/t/x"),
    ],
)
def test_spellings_of_one_file_have_one_canonical_form(
    root: str, spellings: list[str], expected: str
) -> None:
    assert {canonical_path(spelling, root) for spelling in spellings} == {expected}


def test_azure_accounts_are_told_apart() -> None:
    root = "abfss://c@one.dfs.core.windows.net/t"
    path = "abfss://c@two.dfs.core.windows.net/t/x"
    assert canonical_path(path, root) == "az://c@two/t/x"


@pytest.mark.protocol("D-06")
def test_a_column_of_paths_becomes_canonical_where_needed() -> None:
    paths = pa.array(["p=1/a.parquet", "a%20b", "file:/t/c", None, "p=a%2520b/d", "s3a://b/x"])
    expected = ["p=1/a.parquet", "a b", "c", None, "p=a%20b/d", "s3://b/x"]
    assert canonical_paths(paths, "/t").to_pylist() == expected
    chunked = pa.chunked_array([paths, paths.slice(1, 2)])
    assert canonical_paths(chunked, "/t").to_pylist() == [*expected, *expected[1:3]]
    assert canonical_paths(pa.chunked_array([], pa.string()), "/t").to_pylist() == []


def test_plain_paths_are_handed_back_untouched() -> None:
    paths = pa.array(["p=1/a.parquet", None, "b.parquet"])
    assert canonical_paths(paths, "/t") is paths


def test_a_million_escaped_directories_take_seconds_not_minutes() -> None:
    names = [f"p=a%2520b/part-{number:06d}.parquet" for number in range(100_000)]
    started = time.process_time()
    canonical_paths(pa.array(names), "/t")
    assert time.process_time() - started < 5


@pytest.mark.protocol("SHARE-SEC-02")
@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../../x",
        "..",
        "a/..",
        "..\\x",
        "a\\..\\x",
        "%2e%2e/x",
        "%2E./x",
        "a/.%2e/x",
        "%2e%2e%2fetc/passwd",
        "a\0b",
        "",
        "\\\\host\\share",
        "//host/share",
        "C:\\windows",
        "s3://b/../x",
        "file:///a/../b",
        "http://169.254.169.254/latest/meta-data",
        "https://example.org/x",
        "data:/x",
    ],
)
def test_hostile_paths_are_refused(path: str) -> None:
    with pytest.raises(UnsafePathError):
        check_confined(path)


@pytest.mark.protocol("SHARE-SEC-02")
@pytest.mark.parametrize("path", ["/etc/passwd", "file:///etc/passwd", "s3://other/x", "C:/x"])
def test_absolute_paths_are_refused_on_demand(path: str) -> None:
    check_confined(path)
    with pytest.raises(UnsafePathError, match="absolute"):
        check_confined(path, allow_absolute=False)


@pytest.mark.parametrize(
    "path", ["a..b/c", "..a", "a...", "p=..x/y", "a b%", "x/.hidden", "p=a%2Fb/c", "a\\b"]
)
def test_odd_but_harmless_paths_pass(path: str) -> None:
    check_confined(path, allow_absolute=False)


@pytest.mark.protocol("SHARE-SEC-02")
def test_a_column_of_paths_is_checked_after_decoding() -> None:
    check_all_confined(pa.array(["a/b", None, "a%20b", "s3://b/x"]))
    for bad in ["%2e%2e/x", "a/../b", "%00", "%252e%252e/x", "a%5C..%5Cb", "/x"]:
        with pytest.raises(UnsafePathError):
            check_all_confined(pa.array(["a", bad]), allow_absolute=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/t", TableLocation("/t")),
        ("/t@v3", TableLocation("/t", version=3)),
        ("s3://b/t@v0", TableLocation("s3://b/t", version=0)),
        ("/t@20240131123000123", TableLocation("/t", timestamp_ms=1706704200123)),
        ("/t@19700101000000000", TableLocation("/t", timestamp_ms=0)),
        ("/t@1970-01-02", TableLocation("/t", timestamp_ms=86_400_000)),
        ("/t@1970-01-01T00:00:01.5Z", TableLocation("/t", timestamp_ms=1500)),
        ("/t@1970-01-01 01:00", TableLocation("/t", timestamp_ms=3_600_000)),
        ("/t@1970-01-01T01:00+01:00", TableLocation("/t", timestamp_ms=0)),
        ("s3://b/t@1970-01-01", TableLocation("s3://b/t", timestamp_ms=0)),
        ("/t@1970-01-01/p", TableLocation("/t@1970-01-01/p")),
        ("/t@v", TableLocation("/t", branch="v")),
        ("/t@nightly-2_b", TableLocation("/t", branch="nightly-2_b")),
        ("/t@2nightly", TableLocation("/t@2nightly")),
        ("s3://me@host", TableLocation("s3://me@host")),
        ("s3://me@host/t@b", TableLocation("s3://me@host/t", branch="b")),
        ("/t@2024", TableLocation("/t@2024")),
        ("/a@v1/b", TableLocation("/a@v1/b")),
    ],
)
def test_table_uris_name_a_version_or_a_moment(text: str, expected: TableLocation) -> None:
    assert parse_table_uri(text) == expected


def test_a_moment_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="yyyyMMddHHmmssSSS"):
        parse_table_uri("/t@20241331000000000")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://bucket/a/b", ("s3", "bucket", "a/b")),
        ("S3A://bucket", ("s3a", "bucket", "")),
        ("/x/y", ("file", "", "/x/y")),
        ("x/y", ("file", "", "x/y")),
        ("file:/x", ("file", "", "/x")),
        ("file:///x", ("file", "", "/x")),
        ("memory://x", ("memory", "", "/x")),
        ("C:/x", ("file", "", "C:/x")),
        ("hdfs://host:8020/x", ("hdfs", "host:8020", "x")),
        ("hdfs:///x/y", ("hdfs", "", "x/y")),
    ],
)
def test_locations_come_apart(location: str, expected: tuple[str, str, str]) -> None:
    assert split_location(location) == expected


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("file:///a%20b", "file:///a b"),
        ("FILE:///a%20b", "FILE:///a b"),
        ("file:/a%20b/%C3%A9", "file:/a b/é"),
        ("file://localhost/a%2520b", "file://localhost/a%20b"),
        ("file:///a b/100%", "file:///a b/100%"),
        ("file:///a+b", "file:///a+b"),
        ("/a%20b", "/a%20b"),
        ("a%20b", "a%20b"),
        ("file%20x", "file%20x"),
        ("s3://bucket/a%20b", "s3://bucket/a%20b"),
        ("local:///a%20b", "local:///a%20b"),
    ],
)
def test_escapes_of_a_file_url_are_decoded_once(text: str, location: str) -> None:
    assert decode_location(text) == location


def test_file_info_knows_its_name() -> None:
    assert FileInfo("a/b c.txt", 1, 2).name == "b c.txt"
    assert FileInfo("b", 1, 2).name == "b"


@pytest.mark.parametrize("root", ["/t", "/t/", "s3://b/t"])
def test_locations_are_those_of_each_path(root: str) -> None:
    plain = ["a.parquet", "d=1/b.parquet"]
    odd = ["d=%20/c", "/x/y", "file:/x", "s3://b/x", "a:b"]
    lists: list[list[list[str]]] = [[plain], [odd], [plain, [*odd, *plain]], [[]]]
    for chunks in lists:
        expected = [join(root, decode_path(path)) for paths in chunks for path in paths]
        assert file_locations(pa.chunked_array(chunks, pa.string()), root).to_pylist() == expected


def test_the_absolute_ones_of_many_paths_are_numbered() -> None:
    paths = ["a", "/a", "day=10:30/b", "s3://b/c", "", "file:/a", "C:/data", "d"]
    assert absolute_numbers(paths) == [n for n, path in enumerate(paths) if is_absolute(path)]
    assert absolute_numbers(paths) == [1, 3, 5, 6]
