"""The header by which a client says what it can take, and a server what it gives.

Protocol: Delta Sharing Capabilities Header
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CAPABILITIES_HEADER: Final = "delta-sharing-capabilities"
VERSION_HEADER: Final = "Delta-Table-Version"
FILE_ID_HASH_HEADER: Final = "fileidhash"

PARQUET: Final = "parquet"
DELTA: Final = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one side of the wire can do; all words in lower case.

    Args:
        response_formats: in the order of preference; none means `parquet` alone.
        reader_features: of the Delta protocol; they matter for the format `delta` only.
        include_end_stream_action: the last line of an answer is an `endStreamAction`.
        asynchronous: a query may be answered by its id, to be asked for later.
    """

    response_formats: tuple[str, ...] = ()
    reader_features: frozenset[str] = frozenset()
    include_end_stream_action: bool = False
    asynchronous: bool = False

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats with the default put in (ledger SHARE-CAP-02)."""
        return self.response_formats or (PARQUET,)


def parse_capabilities(header: str | None) -> Capabilities:
    """What the header says; keys and values in any case, unknown keys are ignored.

    No text is an error: a server that knows less than its client is a normal thing.
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in (header or "").split(";"):
        key, _, values = part.partition("=")
        words = (word.strip().lower() for word in values.split(","))
        found[key.strip().lower()] = tuple(dict.fromkeys(word for word in words if word))
    return Capabilities(
        response_formats=found.get("responseformat", ()),
        reader_features=frozenset(found.get("readerfeatures", ())),
        include_end_stream_action=found.get("includeendstreamaction") == ("true",),
        asynchronous=found.get("asyncquery") == ("true",),
    )


def encode_capabilities(capabilities: Capabilities) -> str:
    """The header's text."""
    parts = []
    if capabilities.response_formats:
        parts.append("responseformat=" + ",".join(capabilities.response_formats))
    if capabilities.reader_features:
        parts.append("readerfeatures=" + ",".join(sorted(capabilities.reader_features)))
    if capabilities.include_end_stream_action:
        parts.append("includeendstreamaction=true")
    if capabilities.asynchronous:
        parts.append("asyncquery=true")
    return ";".join(parts)
