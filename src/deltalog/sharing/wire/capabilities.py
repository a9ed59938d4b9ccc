"""The `delta-sharing-capabilities` header, and the names of the protocol's other headers.

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
    """What a client can read, or how a server responded; all words in lower case.

    Args:
        response_formats: in the order of preference; none means `parquet` alone.
        reader_features: table features that the client honours; for the format `delta` only.
        include_end_stream_action: the last line of a response is an `endStreamAction`.
        asynchronous: a query may be answered with an id, by which the client polls it.
    """

    response_formats: tuple[str, ...] = ()
    reader_features: frozenset[str] = frozenset()
    include_end_stream_action: bool = False
    asynchronous: bool = False

    @property
    def formats(self) -> tuple[str, ...]:
        """The response formats; `parquet` if none is named (ledger SHARE-CAP-02)."""
        return self.response_formats or (PARQUET,)


def parse_capabilities(header: str | None) -> Capabilities:
    """Return the capabilities in a header; no text is an error, and unknown keys are ignored.

    "All keys and values should be case-insensitive when processed by the server."
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in (header or "").split(";"):
        key, _, values = part.partition("=")
        words = (word.strip().lower() for word in values.split(","))
        found[key.strip().lower()] = tuple(dict.fromkeys(word for word in words if word))
    # Unknown formats and features are kept: a newer client may list them before ours.
    return Capabilities(
        response_formats=found.get("responseformat", ()),
        reader_features=frozenset(found.get("readerfeatures", ())),
        include_end_stream_action=found.get("includeendstreamaction") == ("true",),
        asynchronous=found.get("asyncquery") == ("true",),
    )


def encode_capabilities(capabilities: Capabilities) -> str:
    """Return the header's value."""
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
