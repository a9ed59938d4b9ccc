from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.wire.report import listing
from benchmarks.wire.traffic import Exchange, busy_s, counted, most_under_way, rounds

Span = tuple[float, float]
SPANS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 6)).map(
        lambda pair: (float(pair[0]), float(pair[0] + pair[1]))
    ),
    max_size=7,
)


def exchange(start_s: float, end_s: float, target: str = "/b/t/a", **more: object) -> Exchange:
    given = {"method": "GET", "status": 200, **more}
    return Exchange(target=target, start_s=start_s, end_s=end_s, **given)  # type: ignore[arg-type]


def test_nothing_takes_no_round() -> None:
    assert rounds([]) == most_under_way([]) == busy_s([]) == 0


def test_one_after_the_other_are_as_many_rounds() -> None:
    spans: list[Span] = [(4, 5), (0, 1), (1, 2), (2.5, 4)]
    assert rounds(spans) == 4
    assert most_under_way(spans) == 1
    assert busy_s(spans) == 4.5


def test_all_at_once_are_one_round() -> None:
    spans: list[Span] = [(number / 100, 1 + number) for number in range(64)]
    assert rounds(spans) == 1
    assert most_under_way(spans) == 64
    assert busy_s(spans) == 64


def test_a_long_request_beside_short_ones_hides_none_of_their_rounds() -> None:
    spans: list[Span] = [(0, 10), (0, 1), (2, 3), (4, 5)]
    assert rounds(spans) == 3
    assert most_under_way(spans) == 2
    assert busy_s(spans) == 10


def test_a_pool_of_four_takes_its_places_in_rounds() -> None:
    spans: list[Span] = [(wave, wave + 1) for wave in range(5) for _ in range(4)]
    assert rounds(spans) == 5
    assert most_under_way(spans) == 4


@given(SPANS)
def test_rounds_are_the_longest_chain(spans: list[Span]) -> None:
    chains = (
        length
        for length in range(1, len(spans) + 1)
        for chain in combinations(sorted(spans), length)
        if all(first[1] <= second[0] for first, second in pairwise(chain))
    )
    assert rounds(spans) == max(chains, default=0)


@given(SPANS)
def test_rounds_are_the_fewest_waves(spans: list[Span]) -> None:
    """All of a wave are under way at one moment if they pairwise overlap; try every moment."""
    starts = sorted({start for start, _ in spans})

    def is_hit(moments: tuple[float, ...]) -> bool:
        return all(any(start <= at < end for at in moments) for start, end in spans)

    fewest = next(
        count
        for count in range(len(starts) + 1)
        if any(is_hit(moments) for moments in combinations(starts, count))
    )
    assert rounds(spans) == fewest


@given(SPANS)
def test_most_under_way_is_the_busiest_moment(spans: list[Span]) -> None:
    busiest = max((sum(s <= at < e for s, e in spans) for at, _ in spans), default=0)
    assert most_under_way(spans) == busiest


def test_counts_are_by_kind_with_their_bytes() -> None:
    found = counted(
        [
            exchange(0, 1, "/bucket/t/_delta_log/0.json", bytes_down=10, connection=1),
            exchange(0, 1, "/bucket?list-type=2&prefix=t%2F", bytes_down=5, connection=2),
            exchange(1, 2, "/bucket/?list-type=2&prefix=t%2F", bytes_down=6, connection=1),
            exchange(2, 3, method="HEAD", connection=1),
            exchange(2, 3, method="PUT", bytes_up=100, connection=3),
            exchange(5, 6, "/bucket?delete", method="POST", bytes_up=7, bytes_down=8),
        ]
    )
    assert found.kinds == {"GET": 1, "HEAD": 1, "LIST": 2, "POST": 1, "PUT": 1}
    assert (found.requests, found.bytes_up, found.bytes_down) == (6, 107, 29)
    assert (found.rounds, found.most_under_way, found.connections) == (4, 2, 4)
    assert (found.span_s, found.busy_s) == (6, 4)


def test_a_listing_of_requests_is_ordered_and_names_what_is_asked_for() -> None:
    text = listing(
        [
            exchange(
                7.1, 7.2, "/b/a%20t/p=1/x.parquet", byte_range="bytes=-8", status=206, waits=2
            ),
            exchange(7.0, 7.1, "/b?list-type=2&prefix=a%20t%2F_delta_log%2F&start-after=a%20t%2F0"),
        ],
        "/b/a t",
    )
    first, second = text.splitlines()
    words = " ".join(first.split())
    assert words == "0.0 100.0 LIST 200 0 up 0 down _delta_log/ start-after=0"
    assert second.split()[:2] == ["100.0", "200.0"]
    assert second.endswith("p=1/x.parquet  bytes=-8  (waited twice)")
