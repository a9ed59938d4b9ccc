"""Every whole JSON example of the specification, as it stands there.

`specification_examples.ndjson` holds them in the order of the document, without predicates and
statistics (`test_wire_hints`, `test_wire_messages`), and with another access key in its URLs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from deltalog.sharing.client.answers import ActionCollector
from deltalog.sharing.wire.codec import MessageCodec
from deltalog.sharing.wire.lines import (
    SCHEMA,
    SHARE,
    TABLE,
    DeltaFileLine,
    ParquetFileLine,
    encode_line,
    encode_page,
    encode_share,
    parse_line,
    parse_page,
    parse_share,
)
from deltalog.sharing.wire.profile import encode_profile, parse_profile
from deltalog.sharing.wire.requests import encode_table_query, parse_table_query
from tests.support.asgi import Json

EXAMPLES: list[Json] = [
    orjson.loads(line)
    for line in Path(__file__).with_name("specification_examples.ndjson").read_bytes().splitlines()
]
LINES = ("protocol", "metaData", "file", "add", "cdf", "remove")


def _kind(example: Json) -> str:
    first = next(iter(example))
    return {
        "items": "page",
        "share": "share",
        "predicateHints": "query",
        "shareCredentialsVersion": "profile",
    }.get(first, first)


def _page(example: Json) -> bytes:
    (item, *_) = example["items"]
    codecs: dict[str, MessageCodec[Any]] = {"schema": TABLE, "share": SCHEMA, "name": SHARE}
    codec = next(codec for name, codec in codecs.items() if name in item)
    return encode_page(parse_page(orjson.dumps(example), codec))


def _line(example: Json) -> bytes:
    line = parse_line(orjson.dumps(example))
    assert line is not None
    return encode_line(line)


AGAIN: dict[str, Callable[[Json], bytes]] = {
    "page": _page,
    "share": lambda one: encode_share(parse_share(orjson.dumps(one))),
    "query": lambda one: encode_table_query(parse_table_query(orjson.dumps(one))),
    "profile": lambda one: encode_profile(parse_profile(orjson.dumps(one))),
    **dict.fromkeys(LINES, _line),
}


def test_no_example_is_missing() -> None:
    assert Counter(map(_kind, EXAMPLES)) == {
        "page": 4,
        "share": 1,
        "query": 1,
        "protocol": 2,
        "metaData": 4,
        "file": 4,
        "add": 2,
        "cdf": 2,
        "remove": 2,
        "profile": 1,
    }


@pytest.mark.protocol(
    "SHARE-LS-01", "SHARE-LS-03", "SHARE-LS-04", "SHARE-META-01", "SHARE-QT-01", "SHARE-QT-18"
)
@pytest.mark.parametrize("example", [one for one in EXAMPLES if _kind(one) in AGAIN], ids=_kind)
def test_an_example_is_read_and_written_as_it_was(example: Json) -> None:
    assert orjson.loads(AGAIN[_kind(example)](example)) == _as_written(example)


def _as_written(example: Json) -> Json:
    """The same in our spelling of what may be said in several ways."""
    found: Json = orjson.loads(orjson.dumps(example))
    match found:
        case {"file": {"deltaSingleAction": _} as file}:
            del file["size"]  # the format has no such field: it is the action's
        case {"metaData": {"deltaMetadata": metadata}}:
            metadata["format"]["options"] = {}
        case {"endpoint": endpoint}:
            found |= {"endpoint": endpoint.rstrip("/"), "expirationTime": "2021-11-12T00:12:29Z"}
    return found


@pytest.mark.parametrize("example", [one for one in EXAMPLES if _kind(one) in LINES[2:]], ids=_kind)
def test_the_client_takes_the_file_of_an_example(example: Json) -> None:
    lines = ActionCollector()
    line = parse_line(orjson.dumps(example))
    assert isinstance(line, ParquetFileLine | DeltaFileLine)
    lines.take(line)
    (url,) = lines.urls.values()
    assert url.startswith("https://<s3-bucket-name>.s3.us-west-2.amazonaws.com/")
