"""The recorded requests with their times, and statistics about them.

An exchange is in progress from the arrival of its head (method, target, headers) at the proxy until
the proxy has sent the last piece of the response. So a request that depends on a response always
starts after the exchange of this response has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request and its response; the proxy fills the fields.

    Args:
        method: HTTP method.
        target: path and query, as they were sent.
        byte_range: the header `Range`, or an empty string.
        status: status of the response; 0 without a response.
        start_s: time of arrival of the head, on the proxy's clock.
        end_s: time at which the last piece of the response was sent; `start_s` before the first.
        bytes_up: size of the request's body.
        bytes_down: size of the response's body.
        waits: number of delays by the latency: two if the client waits for permission to send its
            body (`Expect: 100-continue`), otherwise one.
        connection: number of the client's connection.
    """

    method: str
    target: str
    byte_range: str = ""
    status: int = 0
    start_s: float
    end_s: float
    bytes_up: int = 0
    bytes_down: int = 0
    waits: int = 1
    connection: int = 0

    @property
    def kind(self) -> str:
        """LIST for a listing, otherwise the method."""
        parts = urlsplit(self.target)
        is_bucket = "/" not in parts.path.strip("/")
        is_listing = is_bucket or "list-type" in parse_qs(parts.query)
        return "LIST" if self.method == "GET" and is_listing else self.method

    def described(self, root: str) -> str:
        """Return the path below `root`, and the parameters of a listing or of a part."""
        parts = urlsplit(self.target)
        query = {
            name: values[0]
            for name, values in parse_qs(parts.query, keep_blank_values=True).items()
        }
        path = unquote(parts.path)
        if self.kind == "LIST":
            path = "/" + parts.path.strip("/") + "/" + query.get("prefix", "")
        shown = path.removeprefix(root).lstrip("/") if path.startswith(root) else path
        names = ("start-after", "delimiter", "continuation-token", "uploads", "partNumber")
        more = [f"{name}={query[name]}" for name in (*names, "delete", "uploadId") if name in query]
        _, _, key = root.strip("/").partition("/")  # what start-after begins with
        return " ".join([shown or ".", *(text.replace(f"={key}/", "=") for text in more)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Statistics of exchanges.

    Args:
        requests: number of requests.
        kinds: number of requests of each kind.
        bytes_up: size of the bodies of all requests.
        bytes_down: size of the bodies of all responses.
        most_under_way: maximum number of concurrent requests.
        rounds: see `rounds`.
        connections: number of connections of the client.
        span_s: time from the first start to the last end.
        busy_s: the part of this time in which at least one request was in progress.
    """

    requests: int
    kinds: dict[str, int]
    bytes_up: int
    bytes_down: int
    most_under_way: int
    rounds: int
    connections: int
    span_s: float
    busy_s: float


def counted(exchanges: Sequence[Exchange]) -> Traffic:
    """Return the statistics of exchanges, which may be in any order."""
    spans = [(one.start_s, one.end_s) for one in exchanges]
    return Traffic(
        requests=len(exchanges),
        kinds=dict(sorted(Counter(one.kind for one in exchanges).items())),
        bytes_up=sum(one.bytes_up for one in exchanges),
        bytes_down=sum(one.bytes_down for one in exchanges),
        most_under_way=most_under_way(spans),
        rounds=rounds(spans),
        connections=len({one.connection for one in exchanges}),
        span_s=max((end for _, end in spans), default=0) - min((s for s, _ in spans), default=0),
        busy_s=busy_s(spans),
    )


def rounds(spans: Iterable[tuple[float, float]]) -> int:
    """Return the length of the longest chain of requests.

    In a chain, each request starts when the previous one has ended, or later. The length is also
    the minimum number of groups into which the requests can be divided so that all requests of a
    group were in progress at the same moment: time spans are an interval order, for which the
    longest chain and the smallest division into such groups have the same size.

    A request that waits for a free connection of a pool counts like one that depends on a response,
    because their times look the same.
    """
    found, last_end = 0, float("-inf")
    for start, end in sorted(spans, key=lambda span: span[1]):
        # The span that ends first is always in some longest chain, so the choice never errs.
        if start >= last_end:
            found, last_end = found + 1, end
    return found


def busy_s(spans: Iterable[tuple[float, float]]) -> float:
    """Return the time during which at least one exchange was in progress."""
    found, last_end = 0.0, float("-inf")
    for start, end in sorted(spans):
        found += max(0.0, end - max(start, last_end))
        last_end = max(last_end, end)
    return found


def most_under_way(spans: Iterable[tuple[float, float]]) -> int:
    """Return the maximum number of concurrent exchanges. One may start when another ends."""
    changes = [change for start, end in spans for change in ((start, 1), (end, -1))]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
