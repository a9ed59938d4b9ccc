"""Settings one by one: what holds unless they are set, and where their values go."""

from __future__ import annotations

from deltalog.sharing.server import parse_config
from deltalog.sharing.server.config import RequestLimits
from tests.support.sharing import small_config

MIB = 1 << 20
# As the guide says (docs/how-to/sharing-operations.md).
UNLESS_SET = RequestLimits(
    body_bytes=2 * MIB,
    url_bytes=16 * 1024,
    header_seconds=10,
    connections=1000,
    grace_seconds=10,
    receive_seconds=30,
    send_seconds=120,
    requests_per_minute=0,
    concurrent_queries=32,
    queries_per_recipient=8,
    concurrent_downloads=32,
    hint_bytes=64 * 1024,
    hint_milliseconds=500,
    page_files=10_000,
    cache_bytes=1024 * MIB,
    cached_tables=10,
)


def test_what_is_not_set_is_as_the_guide_says() -> None:
    config = parse_config(small_config())
    assert config.limits == UNLESS_SET
    assert config.page_token_seconds == 259_200
    assert (config.refresh_token_seconds, config.url_seconds) == (3600, 3600)
    assert (config.host, config.port, config.endpoint) == ("localhost", 8080, "/delta-sharing")
    assert config.evaluate_predicate_hints
    assert config.evaluate_json_predicate_hints
    assert config.asynchronous_queries
    assert config.metrics
    assert not config.own_urls
    assert (config.public_url, config.cache_directory, config.metrics_token) == (None, None, None)


def test_each_limit_is_what_its_setting_says() -> None:
    names = (
        "bodyBytes",
        "urlBytes",
        "headerSeconds",
        "connections",
        "graceSeconds",
        "sendSeconds",
        "requestsPerMinute",
        "concurrentQueries",
        "queriesPerRecipient",
        "concurrentDownloads",
        "hintBytes",
        "hintMilliseconds",
        "cacheBytes",
    )
    beside = {"queryTablePageSizeLimit": 1, "deltaTableCacheSize": 2, "requestTimeoutSeconds": 3}
    limits = {name: number for number, name in enumerate(names, 101)}
    assert parse_config(small_config(limits=limits, **beside)).limits == RequestLimits(
        body_bytes=101,
        url_bytes=102,
        header_seconds=103,
        connections=104,
        grace_seconds=105,
        send_seconds=106,
        requests_per_minute=107,
        concurrent_queries=108,
        queries_per_recipient=109,
        concurrent_downloads=110,
        hint_bytes=111,
        hint_milliseconds=112,
        cache_bytes=113,
        page_files=1,
        cached_tables=2,
        receive_seconds=3,
    )
