"""The page of the documentation with the results over the network."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from benchmarks.wire.capacity import Capacity
from benchmarks.wire.operations import OPERATIONS, Operation, WireSize
from benchmarks.wire.traffic import Exchange, Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The turns of a library: all times, and the other results of the turn with the median time."""

    library: str
    times_s: tuple[float, ...]
    memory_bytes: int
    answer: object
    traffic: Traffic

    @property
    def seconds(self) -> float:
        """The median time; for an even number of turns, the lower one of the middle two."""
        return sorted(self.times_s)[(len(self.times_s) - 1) // 2]

    def to_json(self) -> dict[str, object]:
        """As `from_json` takes it."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """What `to_json` gave."""
        known = {**found, "traffic": Traffic(**found["traffic"])}
        return cls(**{**known, "times_s": tuple(found["times_s"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The results of one operation at one latency: deltalog first, then the other libraries."""

    operation: str
    latency_ms: float
    asked: tuple[Asked, ...]

    @property
    def name(self) -> str:
        """The unique name."""
        return f"{self.operation}@{self.latency_ms:g}"

    def ratio(self, other: Asked) -> float:
        """Return how many times as fast as another library deltalog is."""
        return other.seconds / self.asked[0].seconds

    def to_json(self) -> dict[str, object]:
        """As `from_json` takes it."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """What `to_json` gave."""
        asked = tuple(Asked.from_json(one) for one in found["asked"])
        return cls(operation=found["operation"], latency_ms=found["latency_ms"], asked=asked)


_PAGE = """\
# Benchmarks on the wire

`make bench-wire` measures tables on an S3 server on this machine (versitygw, which checks
signatures and supports conditional puts). A proxy in front of the server delays every request,
limits each connection to 100 MB/s, and counts requests and bytes. Each library runs in a process of
its own, and the libraries take turns.

Times are medians of {turns} turns. They include opening the table, but not the imports. Requests,
bytes, rounds and memory are those of the turn with the median time. A ratio above 1 means that
deltalog is faster than that library.

- **latency** (the title of a section): the time by which the proxy delays each request. If a client
  waits for permission to send a body (`Expect: 100-continue`), the request is delayed twice.
  Opening a connection adds no delay.
- **waiting**: the time during which at least one request was in progress. The rest of the time is
  the client's own work.
- **at once**: the maximum number of concurrent requests. A request is in progress from the arrival
  of its last header at the proxy until the last byte of its response has left the proxy.
- **rounds**: the length of the longest chain of requests in which each request started after the
  previous one had ended. This is also the minimum number of groups into which the requests can be
  divided so that all requests of a group were in progress at the same moment. A request that waited
  for a free connection counts like a request that depended on a response.
- **connections**: the number of the client's connections that carried requests.

`deltalake` runs queries with its own engine, `deltalake_arrow` with pyarrow on deltalake's file
system. `pyarrow` lists and reads the files with its own S3 client, without a log.

{tables}## Limits of the setup

The server is a Go program that serves a directory. The benchmark creates and copies tables in this
directory. The server supports everything that both libraries need: range requests, listings from a
given name, conditional puts, multipart uploads, and checked signatures. It was the first
installable server that was tried; no other was measured.

Without the proxy, the server handled {server}. Through the
proxy without latency and limit, it handled {unbounded};
with the limit and 16 connections, {bounded}. A library
that comes near these figures is limited by the server or the proxy.

Measured on {machine} with Python {python}, {versions};
`--size {size_name}`. Clients, proxy and server shared these cores.
"""
_COLUMNS = (
    "operation",
    "library",
    "time",
    "waiting",
    "ratio",
    "requests",
    "down",
    "up",
    "rounds",
    "at once",
    "connections",
    "memory",
)


def render(
    answered: Sequence[Answered], capacities: Mapping[str, Capacity], size_name: str, size: WireSize
) -> str:
    """Return the page in Markdown."""
    packages = ("deltalog", "deltalake", "pyarrow", "obstore", "s3fs")
    tables = []
    for latency_ms in sorted({one.latency_ms for one in answered}):
        found = {one.operation: one for one in answered if one.latency_ms == latency_ms}
        rows = [
            row
            for operation in OPERATIONS
            if operation.name in found
            for row in _rows(operation, found[operation.name], size)
        ]
        lines = [_line(_COLUMNS), _line(["---"] * len(_COLUMNS)), *map(_line, rows)]
        tables.append(f"## {latency_ms:g} ms\n\n{''.join(lines)}\n")
    return _PAGE.format(
        turns=size.turns,
        tables="".join(tables),
        machine=f"{os.cpu_count()} cores ({platform.machine()})",
        python=platform.python_version(),
        versions=", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages),
        size_name=size_name,
        **{name: _capacity(one) for name, one in capacities.items()},
    )


def summary(answered: Answered) -> str:
    """Return a short summary for the terminal."""
    return "\n".join(
        f"    {one.library}: {one.seconds:.3f} s ({answered.ratio(one):.2f}), "
        f"{one.traffic.busy_s:.3f} s waiting, "
        f"{one.traffic.requests} requests in {one.traffic.rounds} rounds, "
        f"{one.traffic.most_under_way} at once, {one.traffic.kinds}"
        for one in answered.asked
    )


def listing(exchanges: Sequence[Exchange], root: str) -> str:
    """Return a line for each request, in the order of their start; times in ms since the first."""
    first = min((one.start_s for one in exchanges), default=0)
    lines = [
        f"{(one.start_s - first) * 1_000:9.1f} {(one.end_s - first) * 1_000:9.1f}  "
        f"{one.kind:6} {one.status} {one.bytes_up:>9} up {one.bytes_down:>9} down  "
        f"{one.described(root)}"
        + (f"  {one.byte_range}" if one.byte_range else "")
        + ("  (waited twice)" if one.waits > 1 else "")
        for one in sorted(exchanges, key=lambda one: one.start_s)
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _rows(operation: Operation, answered: Answered, size: WireSize) -> Iterator[tuple[str, ...]]:
    title = operation.title.format_map(asdict(size))
    for number, one in enumerate(answered.asked):
        traffic = one.traffic
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in traffic.kinds.items())
        yield (
            title if number == 0 else "",
            f"`{one.library}`",
            f"{one.seconds * 1_000:,.0f} ms",
            f"{traffic.busy_s * 1_000:,.0f} ms",
            "" if number == 0 else f"{answered.ratio(one):.2f}",
            f"{traffic.requests:,} ({kinds})",
            _bytes(traffic.bytes_down),
            _bytes(traffic.bytes_up),
            str(traffic.rounds),
            str(traffic.most_under_way),
            str(traffic.connections),
            _bytes(one.memory_bytes),
        )


def _bytes(count: int) -> str:
    return f"{count / 1_000_000:,.1f} MB" if count >= 100_000 else f"{count / 1_000:,.1f} kB"


def _capacity(found: Capacity) -> str:
    return (
        f"{found.requests_per_second:,.0f} small requests a second and "
        f"{found.bytes_per_second / 1_000_000:,.0f} MB/s"
    )
