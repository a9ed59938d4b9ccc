"""What went over the wire: requests with their times, and what is counted of them.

An exchange is under way from the moment at which the proxy has its head (method, target, headers)
to the moment at which it passes the last piece of the answer on. So who asks because of an answer
always starts after it has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request and its answer; the proxy fills it while it passes.

    Args:
        method: of HTTP.
        target: path and query, as they were sent.
        byte_range: the header `Range`, or an empty text.
        status: of the answer; 0 if none came.
        start_s: when its head had come, on the proxy's clock.
        end_s: when the last piece of the answer went; `start_s` while nothing of it has.
        bytes_up: of the request's body.
        bytes_down: of the answer's body.
        waits: how often the latency was waited for: twice where the client asks for leave to send
            its body (`Expect: 100-continue`), else once.
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
        """LIST for a listing, else the method."""
        parts = urlsplit(self.target)
        is_bucket = "/" not in parts.path.strip("/")
        is_listing = is_bucket or "list-type" in parse_qs(parts.query)
        return "LIST" if self.method == "GET" and is_listing else self.method

    def described(self, root: str) -> str:
        """The path below `root`, and what a listing or a part asks for."""
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
    """What is counted of exchanges.

    Args:
        requests: how many.
        kinds: how many of each kind.
        bytes_up: of all bodies of requests.
        bytes_down: of all bodies of answers.
        most_under_way: at one moment.
        rounds: see `rounds`.
        connections: of the client, by which they came.
        span_s: from the first one's start to the last one's end.
        busy_s: as much of that as at least one was under way.
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
    """The counts of these exchanges, whatever their order."""
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
    """How many requests one after the other it took: the length of the longest chain.

    In a chain each request starts when the one before it has ended, or later. That is also the
    least number of waves into which the requests can be divided so that all requests of a wave were
    under way at one moment: spans are an interval order, for which the longest chain and the
    smallest division into such waves have the same size.

    A request that waits for a free place (of a pool, say) counts like one that needs an answer: the
    times do not tell the two apart.
    """
    found, last_end = 0, float("-inf")
    for start, end in sorted(spans, key=lambda span: span[1]):
        # The span that ends first is always in some longest chain, so the choice never errs.
        if start >= last_end:
            found, last_end = found + 1, end
    return found


def busy_s(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one was under way."""
    found, last_end = 0.0, float("-inf")
    for start, end in sorted(spans):
        found += max(0.0, end - max(start, last_end))
        last_end = max(last_end, end)
    return found


def most_under_way(spans: Iterable[tuple[float, float]]) -> int:
    """How many were under way at once at most; one that ends when another starts is gone."""
    changes = [change for start, end in spans for change in ((start, 1), (end, -1))]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
