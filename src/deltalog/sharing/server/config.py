"""The configuration of a server: shares, recipients and limits.

This module contains the classes and defaults; `config_settings` makes the objects from a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.sharing.wire.lines import Share

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """A table of a share.

    Args:
        branch: the name of the branch that is shared instead of the table's main; None means main.
        history_shared: whether older versions and changes may be read.
        start_version: the first version that may be read.
        columns: names of the shared columns; None means all.
        row_filter: an SQL condition; only rows for which it is true are shared.
        storage_options: see `DeltaTable`.
        credentials: settings for temporary credentials for the table's directory; None means that
            no credentials are issued.
    """

    name: str
    location: str = field(repr=False)
    id: str | None = None
    branch: str | None = None
    history_shared: bool = False
    start_version: int = 0
    columns: tuple[str, ...] | None = None
    row_filter: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    credentials: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def is_view(self) -> bool:
        """Whether only some columns or rows of the table are shared."""
        return self.columns is not None or self.row_filter is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaConfig:
    """A schema of a share."""

    name: str
    tables: tuple[TableConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareConfig:
    """A share."""

    share: Share
    schemas: tuple[SchemaConfig, ...]

    @property
    def name(self) -> str:
        """Return the share's name."""
        return self.share.name


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConfig:
    """A token that a recipient may use.

    Args:
        digest: SHA-256 of the token in hexadecimal digits.
        expires_ms: when the token expires; None means never.
    """

    digest: str = field(repr=False)
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientConfig:
    """A recipient of shares.

    Args:
        shares: names of the shares; None means every share.
        networks: networks from which requests are accepted; empty means all.
        subjects: values of the claim (`OAuthConfig.claim`) that name this recipient.
    """

    name: str
    tokens: tuple[TokenConfig, ...] = ()
    shares: tuple[str, ...] | None = None
    networks: tuple[Network, ...] = ()
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthConfig:
    """An OAuth issuer whose signed tokens are accepted.

    Args:
        jwks_url: URL of the issuer's public keys; None means that OpenID Connect Discovery finds
            it.
        claim: the claim that names the recipient.
    """

    issuer: str
    audience: str
    jwks_url: str | None = None
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    claim: str = "sub"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessConfig:
    """Settings of the readiness check.

    Args:
        tables: tables that must be readable, as `share.schema.table`.
        timeout_seconds: time limit for reading all of the tables.
    """

    tables: tuple[str, ...] = ()
    timeout_seconds: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryConfig:
    """Telemetry about requests, in addition to the log.

    Args:
        opentelemetry: whether to create a span for each request, with the process's tracer
            provider.
        trusts_parents: whether a request's `traceparent` is used as the span's parent. Otherwise it
            is ignored, because recipients are not trusted.
        openlineage_url: URL to which an event is sent for each query; None means no events.
        openlineage_api_key: API key for `openlineage_url`.
        namespace: namespace of the jobs in these events.
    """

    opentelemetry: bool = False
    trusts_parents: bool = False
    openlineage_url: str | None = None
    openlineage_api_key: str | None = field(default=None, repr=False)
    namespace: str = "deltalog"


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """Limits on requests, and on memory and disk space of the server.

    Args:
        header_seconds: time within which a connection must send the head of a request.
        connections: maximum number of open connections of a process that `serve` runs.
        grace_seconds: time for running requests to finish after a signal to end the process.
        queries_per_recipient: how many of the `concurrent_queries` one recipient may use.
        hint_bytes: maximum size of one query's hints; further hints are ignored.
        hint_milliseconds: maximum time to parse one query's hints; further hints are ignored.
    """

    body_bytes: int = 2 << 20
    url_bytes: int = 16 << 10
    header_seconds: int = 10
    connections: int = 1000
    grace_seconds: int = 10
    receive_seconds: int = 30
    send_seconds: int = 120
    requests_per_minute: int = 0
    concurrent_queries: int = 32
    queries_per_recipient: int = 8
    concurrent_downloads: int = 32
    hint_bytes: int = 64 << 10
    hint_milliseconds: int = 500
    page_files: int = 10_000
    cache_bytes: int = 1 << 30
    cached_tables: int = 10


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """The configuration of a server.

    Args:
        endpoint: path prefix of the protocol, without a trailing slash.
        public_url: URL at which recipients reach the server; None means the URL of each request.
        signing_keys: keys of tokens and URLs. The first key signs; signatures by the other keys are
            still valid. Without keys, the process generates a random key.
        metrics_token: bearer token for the metrics; without a token, only loopback has access.
        url_seconds: how long a signed URL is valid.
    """

    shares: tuple[ShareConfig, ...]
    recipients: tuple[RecipientConfig, ...]
    host: str = "localhost"
    port: int = 8080
    endpoint: str = "/delta-sharing"
    public_url: str | None = None
    signing_keys: tuple[bytes, ...] = field(default=(), repr=False)
    url_seconds: int = 3600
    page_token_seconds: int = 3 * 24 * 3600
    refresh_token_seconds: int = 3600
    evaluate_predicate_hints: bool = True
    evaluate_json_predicate_hints: bool = True
    asynchronous_queries: bool = True
    own_urls: bool = False
    oauth: OAuthConfig | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)
    readiness: ReadinessConfig = field(default_factory=ReadinessConfig)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    metrics: bool = True
    metrics_token: TokenConfig | None = None
    cache_directory: str | None = None
    certificate_file: str | None = None
    certificate_key_file: str | None = None
