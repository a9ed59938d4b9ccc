"""The configuration of a server: what is shared with whom, and within which limits.

Owns the defaults; `config_settings` makes these values of a file's settings.
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
        history_shared: older versions and changes may be read.
        start_version: the first version that may be read.
        columns: that are shared; None is all.
        row_filter: SQL condition; only rows for which it is true are shared.
        storage_options: as `DeltaTable` takes them.
        credentials: how temporary credentials for the directory are issued; None issues none.
    """

    name: str
    location: str = field(repr=False)
    id: str | None = None
    history_shared: bool = False
    start_version: int = 0
    columns: tuple[str, ...] | None = None
    row_filter: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    credentials: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def is_view(self) -> bool:
        """Whether only a part of the table is shared."""
        return self.columns is not None or self.row_filter is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaConfig:
    """A schema of a share."""

    name: str
    tables: tuple[TableConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareConfig:
    """A share: how it is listed, and what it holds."""

    share: Share
    schemas: tuple[SchemaConfig, ...]

    @property
    def name(self) -> str:
        """The share's name."""
        return self.share.name


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConfig:
    """A token that a recipient may use.

    Args:
        digest: SHA-256 of the token in hexadecimal digits.
        expires_ms: when the token expires; None is never.
    """

    digest: str = field(repr=False)
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientConfig:
    """A recipient of shares.

    Args:
        shares: names; None is every share.
        networks: from which requests are accepted; empty is from anywhere.
        subjects: values of the OAuth issuer's claim.
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
        jwks_url: of the issuer's public keys; None asks the issuer where they are, as OpenID
            Connect has it.
        claim: that names the recipient.
    """

    issuer: str
    audience: str
    jwks_url: str | None = None
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    claim: str = "sub"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessConfig:
    """What has to work for the process to count as ready.

    Args:
        tables: that have to be readable, as `share.schema.table`.
        timeout_seconds: for all of them together.
    """

    tables: tuple[str, ...] = ()
    timeout_seconds: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryConfig:
    """Who is told of requests besides the log.

    Args:
        opentelemetry: a span for each request, by the process's tracer provider.
        trusts_parents: a request's `traceparent` names the span's parent; otherwise it is not read,
            because recipients are strangers.
        openlineage_url: to which an event is sent for each query; None is nowhere.
        openlineage_api_key: for it.
        namespace: of the jobs in these events.
    """

    opentelemetry: bool = False
    trusts_parents: bool = False
    openlineage_url: str | None = None
    openlineage_api_key: str | None = field(default=None, repr=False)
    namespace: str = "deltalog"


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """Limits on requests and on what the server keeps for them.

    Args:
        header_seconds: until a connection has sent the head of a request.
        connections: open at once, of the server's own process.
        grace_seconds: for requests at work when the process is told to end.
        queries_per_recipient: of `concurrent_queries`, so that one recipient leaves some to others.
        hint_bytes: of the hints of one query; what is beyond filters nothing.
        hint_milliseconds: for reading the hints of one query, likewise.
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
        endpoint: path prefix of the protocol, without a slash at its end.
        public_url: of the server as recipients reach it; None takes it from each request.
        signing_keys: of tokens and URLs; the first one signs, the others are still accepted.
            Without one a key is made that is lost with the process.
        metrics_token: shows the metrics; without one they are seen over loopback only.
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
