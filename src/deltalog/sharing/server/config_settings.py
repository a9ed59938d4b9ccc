"""The settings of a configuration: their names, types and limits.

The file has the settings of the reference server (`shares` → `schemas` → `tables`), and settings of
deltalog for recipients, OAuth, limits, readiness, telemetry and views. A setting that is null,
empty or repeated is an error, because it could be understood as "no limit" or as "nothing".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from difflib import get_close_matches
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deltalog._util.escaping import name_key
from deltalog.errors import DeltaError, InvalidInputError, MalformedMessageError
from deltalog.expressions import parse_sql
from deltalog.log.branches import is_valid_name
from deltalog.sharing.server.config import (
    Network,
    OAuthConfig,
    ReadinessConfig,
    RecipientConfig,
    RequestLimits,
    SchemaConfig,
    ServerConfig,
    ShareConfig,
    TableConfig,
    TelemetryConfig,
    TokenConfig,
)
from deltalog.sharing.server.recipients import is_safe_url
from deltalog.sharing.server.tokens import token_digest
from deltalog.sharing.wire.codec import parse_timestamp
from deltalog.sharing.wire.lines import Share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# The protocol: names have at most 255 characters, without slashes and control characters. Names of
# schemas and tables have no dots, because dots separate names in table URLs.
_NAME: Final = re.compile(r"[^/\x00-\x1f\x7f]{1,255}")
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_LEAST_KEY: Final = 16
_MOST_URL_SECONDS: Final = 7 * 24 * 3600
_EVERY_SHARE: Final = "all"
_ALGORITHMS: Final = ("RS256", "ES256")


def parse_config(values: object) -> ServerConfig:
    """Return the configuration in a file's contents.

    Raises:
        InvalidInputError: a setting is missing, unknown or malformed; the message contains its
            path, and suggests a similar name.
    """
    section = ConfigSection(values, "")
    if "shareCredentialsVersion" in section.values:
        raise InvalidInputError(
            "configuration: this is the profile of a recipient; expected the configuration of the "
            "server, with shares and recipients"
        )
    if "shares" not in section.values and (meant := section.nearby("shares")):
        raise section.error("shares", f"is missing{meant}")
    version = section.get("version", 1)
    if version != 1:
        raise InvalidInputError(f"version: expected 1, found {version}")
    shares = section.children("shares", _share)
    check_unique((share.name for share in shares), "shares")
    recipients = section.children("recipients", lambda one: _recipient(one, shares))
    everybody = section.child("authorization", _everybody)
    if everybody is not None:
        recipients = (*recipients, everybody)
    check_unique((one.name for one in recipients), "recipients")
    oauth = section.child("oauth", _oauth)
    tls = section.child("ssl", _certificate) or (None, None)
    config = ServerConfig(
        shares=shares,
        recipients=recipients,
        oauth=oauth,
        host=section.get("host", ServerConfig.host),
        port=section.number("port", ServerConfig.port, least=0),
        endpoint=_endpoint(section),
        public_url=(section.optional("publicUrl", str) or "").rstrip("/") or None,
        signing_keys=_signing_keys(section),
        url_seconds=_url_seconds(section),
        page_token_seconds=_seconds(section, "queryTablePageTokenTtlMs", 3 * 24 * 3600),
        refresh_token_seconds=_seconds(section, "refreshTokenTtlMs", 3600),
        evaluate_predicate_hints=section.get("evaluatePredicateHints", True),
        evaluate_json_predicate_hints=section.get("evaluateJsonPredicateHints", True),
        asynchronous_queries=section.get("asynchronousQueries", True),
        own_urls=section.get("ownUrls", False),
        limits=_limits(section),
        readiness=section.child("readiness", lambda one: _readiness(one, shares))
        or ReadinessConfig(),
        telemetry=section.child("telemetry", _telemetry) or TelemetryConfig(),
        metrics=section.get("metrics", True),
        metrics_token=section.child("metricsToken", _token),
        cache_directory=section.optional("cacheDirectory", str),
        certificate_file=tls[0],
        certificate_key_file=tls[1],
    )
    # These settings of the reference server have no effect here. They are allowed, so that its
    # configuration files can be used.
    for name in ("evaluateJsonPredicateHintsV2", "stalenessAcceptable"):
        section.optional(name, bool)
    section.finish()
    _check_recipients(recipients, oauth)
    return config


def _share(section: ConfigSection) -> ShareConfig:
    schemas = section.children("schemas", _schema)
    check_unique((schema.name for schema in schemas), section.path("schemas"))
    properties = section.mapping("properties")
    if len(properties) > 50:
        raise section.error("properties", "expected 50 at most")
    share = Share(
        name=_name(section),
        id=section.optional("id", str),
        display_name=section.optional("displayName", str),
        comment=section.optional("comment", str),
        properties={key: str(value) for key, value in properties.items()},
    )
    return ShareConfig(share=share, schemas=schemas)


def _schema(section: ConfigSection) -> SchemaConfig:
    tables = section.children("tables", _table)
    check_unique((table.name for table in tables), section.path("tables"))
    return SchemaConfig(name=_name(section, dots=False), tables=tables)


def _table(section: ConfigSection) -> TableConfig:
    history_shared = section.get("historyShared", False)
    start_version = section.number("startVersion", 0, least=0)
    if start_version and not history_shared:
        raise section.error("startVersion", "needs historyShared: true")
    table = TableConfig(
        name=_name(section, dots=False),
        location=section.required("location", str),
        id=section.optional("id", str),
        branch=_branch(section),
        history_shared=history_shared,
        start_version=start_version,
        columns=section.texts("columns", least=("one", "column")),
        row_filter=_row_filter(section),
        storage_options=section.mapping("storageOptions"),
        credentials=section.child("temporaryCredentials", _credentials),
    )
    # With credentials for the directory, recipients could read all columns and rows of the table,
    # and main instead of a branch.
    if (table.is_view or table.branch) and table.credentials is not None:
        raise section.error(
            "temporaryCredentials",
            "would give access to the whole table; remove them, or columns, rowFilter and branch",
        )
    return table


def _branch(section: ConfigSection) -> str | None:
    name = section.optional("branch", str)
    if name is not None and not is_valid_name(name):
        raise section.error("branch", f"expected the name of a branch, found {name!r}")
    return name


def _credentials(section: ConfigSection) -> dict[str, object]:
    section.number("seconds", 1)
    return section.rest()


def _url_seconds(section: ConfigSection) -> int:
    name = "preSignedUrlTimeoutSeconds"
    found = section.number(name, ServerConfig.url_seconds)
    if found > _MOST_URL_SECONDS:
        raise section.error(name, f"stores sign URLs for {_MOST_URL_SECONDS} seconds at most")
    return found


def _row_filter(section: ConfigSection) -> str | None:
    text = section.optional("rowFilter", str)
    if text is not None:
        try:
            # Check only the syntax here. Column names are checked when the table is opened.
            parse_sql(text)
        except DeltaError as error:
            raise section.error("rowFilter", str(error)) from None
    return text


def _recipient(section: ConfigSection, shares: tuple[ShareConfig, ...]) -> RecipientConfig:
    tokens = section.children("tokens", _token)
    single = _digest(section, "token")
    if single is not None:
        tokens = (*tokens, TokenConfig(digest=single))
    return RecipientConfig(
        name=_name(section),
        tokens=tokens,
        shares=_shares_of(section, shares),
        networks=tuple(
            _network(text, section)
            for text in section.texts("ipRanges", least=("one", "range")) or ()
        ),
        subjects=section.texts("subjects") or (),
    )


def _shares_of(section: ConfigSection, shares: tuple[ShareConfig, ...]) -> tuple[str, ...] | None:
    """Return the names of a recipient's shares; None means all, which the file must state."""
    known = {name_key(share.name): share.name for share in shares}
    if section.values.get("shares") == _EVERY_SHARE:
        section.texts("shares")
        if _EVERY_SHARE in known:
            found = [known[_EVERY_SHARE]]
            raise section.error(
                "shares",
                "all means every share, but a share is named "
                f"{known[_EVERY_SHARE]!r}; write {found}",
            )
        return None
    names = section.texts("shares")
    if names is None:
        raise section.error("shares", "expected a list of shares, or the word all for every share")
    for name in names:
        if name_key(name) not in known:
            meant = closest(name, known.values())
            raise section.error("shares", f"there is no share {name!r}{meant}")
    return tuple(known[name_key(name)] for name in names)


def _token(section: ConfigSection) -> TokenConfig:
    digest, hashed = _digest(section, "token"), section.optional("hash", str)
    if (digest is None) == (hashed is None):
        raise InvalidInputError(f"{section.where}: expected either hash or token")
    if digest is None:
        found = _DIGEST.fullmatch(hashed or "")
        if found is None:
            raise section.error("hash", "expected 'sha256:' and 64 hexadecimal digits")
        digest = found[1]
    return TokenConfig(digest=digest, expires_ms=section.moment("expires"))


def _digest(section: ConfigSection, name: str) -> str | None:
    token = section.optional(name, str)
    if token is not None and len(token) < 8:
        raise section.error(name, "a token of less than 8 characters can be guessed")
    return None if token is None else token_digest(token)


def _everybody(section: ConfigSection) -> RecipientConfig:
    """Return the recipient of the reference server's single token, who can access all shares."""
    section.required("bearerToken", str)
    digest = _digest(section, "bearerToken") or ""
    return RecipientConfig(name="everybody", tokens=(TokenConfig(digest=digest),))


def _network(text: str, section: ConfigSection) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        problem = f"{text!r} is not an address range such as 10.0.0.0/8"
        raise section.error("ipRanges", problem) from None


def _oauth(section: ConfigSection) -> OAuthConfig:
    algorithms = section.texts("algorithms", least=("one", "algorithm"))
    for name in algorithms or ():
        # Algorithms such as HS256 are refused, because anybody could use the public key as the
        # secret and sign tokens.
        if not re.fullmatch(r"(?:RS|ES|PS)\d{3}|EdDSA", name):
            raise section.error("algorithms", f"{name!r} is not an algorithm with a private key")
    issuer, jwks_url = section.required("issuer", str), section.optional("jwksUrl", str)
    if jwks_url is None and not is_safe_url(issuer):
        problem = "is missing, and cannot be requested from the issuer: its URL is not https"
        raise section.error("jwksUrl", problem)
    return OAuthConfig(
        issuer=issuer,
        audience=section.required("audience", str),
        jwks_url=jwks_url,
        algorithms=_ALGORITHMS if algorithms is None else algorithms,
        claim=section.get("claim", "sub"),
    )


def _readiness(section: ConfigSection, shares: tuple[ShareConfig, ...]) -> ReadinessConfig:
    known = {
        name_key(name): name
        for share in shares
        for schema in share.schemas
        for table in schema.tables
        for name in [f"{share.name}.{schema.name}.{table.name}"]
    }
    names = section.texts("tables", least=("one", "table")) or ()
    for name in names:
        if name_key(name) not in known:
            meant = closest(name, known.values())
            raise section.error("tables", f"there is no table {name!r}{meant}")
    return ReadinessConfig(
        tables=tuple(known[name_key(name)] for name in names),
        timeout_seconds=section.number("timeoutSeconds", ReadinessConfig().timeout_seconds),
    )


def _telemetry(section: ConfigSection) -> TelemetryConfig:
    unset = TelemetryConfig()
    url = section.optional("openLineageUrl", str)
    if url is not None and not url.startswith(("http://", "https://")):
        raise section.error("openLineageUrl", "expected a URL that begins with https:// or http://")
    return TelemetryConfig(
        opentelemetry=section.get("openTelemetry", unset.opentelemetry),
        trusts_parents=section.get("trustTraceParent", unset.trusts_parents),
        openlineage_url=url,
        openlineage_api_key=section.optional("openLineageApiKey", str),
        namespace=section.get("namespace", unset.namespace),
    )


def _certificate(section: ConfigSection) -> tuple[str, str]:
    section.optional("selfSigned", bool)
    return (
        section.required("certificateFile", str),
        section.required("certificateKeyFile", str),
    )


def _limits(section: ConfigSection) -> RequestLimits:
    page_files = section.number("queryTablePageSizeLimit", RequestLimits.page_files)
    cached_tables = section.number("deltaTableCacheSize", RequestLimits.cached_tables)
    receive_seconds = section.number("requestTimeoutSeconds", RequestLimits.receive_seconds)

    def parse(own: ConfigSection) -> RequestLimits:
        return RequestLimits(
            body_bytes=own.number("bodyBytes", RequestLimits.body_bytes),
            url_bytes=own.number("urlBytes", RequestLimits.url_bytes),
            header_seconds=own.number("headerSeconds", RequestLimits.header_seconds),
            connections=own.number("connections", RequestLimits.connections),
            grace_seconds=own.number("graceSeconds", RequestLimits.grace_seconds),
            receive_seconds=receive_seconds,
            send_seconds=own.number("sendSeconds", RequestLimits.send_seconds),
            requests_per_minute=own.number("requestsPerMinute", 0, least=0),
            concurrent_queries=own.number("concurrentQueries", RequestLimits.concurrent_queries),
            queries_per_recipient=own.number(
                "queriesPerRecipient", RequestLimits.queries_per_recipient
            ),
            concurrent_downloads=own.number(
                "concurrentDownloads", RequestLimits.concurrent_downloads
            ),
            hint_bytes=own.number("hintBytes", RequestLimits.hint_bytes),
            hint_milliseconds=own.number("hintMilliseconds", RequestLimits.hint_milliseconds),
            page_files=page_files,
            cache_bytes=own.number("cacheBytes", RequestLimits.cache_bytes),
            cached_tables=cached_tables,
        )

    return section.child("limits", parse) or parse(ConfigSection({}, "limits"))


def _name(section: ConfigSection, *, dots: bool = True) -> str:
    name = section.required("name", str)
    if _NAME.fullmatch(name) is None or name in {".", ".."} or (not dots and "." in name):
        raise section.error(
            "name",
            f"{name[:80]!r} cannot be a name: expected 1 to 255 characters without slashes"
            f"{'' if dots else ', dots'} and control characters",
        )
    return name


def _endpoint(section: ConfigSection) -> str:
    text = "/" + section.get("endpoint", "/delta-sharing").strip("/")
    return "" if text == "/" else text


def _signing_keys(section: ConfigSection) -> tuple[bytes, ...]:
    texts = section.texts("signingKey", least=("one", "key")) or ()
    if any(len(text) < _LEAST_KEY for text in texts):
        raise section.error("signingKey", f"expected {_LEAST_KEY} characters or more")
    return tuple(text.encode() for text in texts)


def _seconds(section: ConfigSection, name: str, default: int) -> int:
    return max(1, section.number(name, default * 1000) // 1000)


def _check_recipients(recipients: tuple[RecipientConfig, ...], oauth: OAuthConfig | None) -> None:
    if not recipients:
        raise InvalidInputError(
            "recipients: none is configured; add a recipient with a name, tokens and shares, or "
            "authorization.bearerToken"
        )
    if oauth is None and any(one.subjects for one in recipients):
        raise InvalidInputError("recipients: subjects need an oauth section")
    digests = [token.digest for one in recipients for token in one.tokens]
    if len(set(digests)) != len(digests):
        raise InvalidInputError("recipients: two of them have the same token")
    subjects = [subject for one in recipients for subject in one.subjects]
    if len(set(subjects)) != len(subjects):
        raise InvalidInputError("recipients: two of them have the same subject")


# --- Typed access to the sections of a configuration file


T = TypeVar("T")

_NULL = "is null; remove the setting for its default, or give it a value"
_WORDS = {str: "a string", bool: "true or false", int: "a whole number"}
# Messages contain no values, which may be secrets.
_KINDS = {**_WORDS, float: "a number", list: "a list", dict: "a mapping"}
_MEANT = {"location": ("path", "uri", "url", "table_uri", "storage_location", "storageLocation")}
"""Setting → names that users write instead."""


class ConfigSection:
    """A mapping of the configuration file, whose settings are read one by one.

    Args:
        values: values of the section in the file.
        where: path of the section (`shares[0].schemas[1]`), for errors.
    """

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, dict):
            found = "nothing" if values is None else _KINDS.get(type(values), "another value")
            names = "" if where else ", such as shares and recipients"
            raise InvalidInputError(
                f"{where or 'configuration'}: expected a mapping of settings{names}; found {found}"
            )
        self.values: dict[Any, Any] = values
        self.where = where
        self._known: set[Any] = set()

    def path(self, name: str) -> str:
        """Return the path of a setting."""
        return f"{self.where}.{name}" if self.where else name

    def error(self, name: str, problem: str) -> InvalidInputError:
        """Return the error of a setting."""
        return InvalidInputError(f"{self.path(name)}: {problem}")

    def optional(self, name: str, kind: type[T]) -> T | None:
        """Return a setting, or None if it is absent."""
        value = self._take(name)
        if value is None:
            return None
        if type(value) is not kind:
            found = _KINDS.get(type(value), "another value")
            is_quoted = kind is not str and str(value).lower() in {"true", "false"}
            is_quoted = is_quoted or (kind is int and str(value).isdecimal())
            hint = "; leave out the quotes" if is_quoted and type(value) is str else ""
            raise self.error(name, f"expected {_WORDS.get(kind, kind)}, found {found}{hint}")
        return value

    def get(self, name: str, default: T) -> T:
        """Return a setting of the default's type, or the default."""
        value = self.optional(name, type(default))
        return default if value is None else value

    def number(self, name: str, default: int, *, least: int = 1) -> int:
        """Return a whole number of `least` or more, or the default."""
        value = self.get(name, default)
        if value < least:
            raise self.error(name, f"expected {least} or more")
        return value

    def required(self, name: str, kind: type[T]) -> T:
        """Return a setting that must be present and not empty."""
        value = self.optional(name, kind)
        if value is None or value == "":
            raise self.error(name, f"{_WORDS.get(kind, kind)} is missing{self.nearby(name)}")
        return value

    def texts(self, name: str, *, least: tuple[str, str] | None = None) -> tuple[str, ...] | None:
        """Return a list of strings, which may be a single string; None if it is absent.

        Args:
            name: name of the setting.
            least: the minimum number of items, in words, and the name of the items; None means that
                the list may be empty.
        """
        value = self._take(name)
        if value is None:
            return None
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise self.error(name, "expected a list of strings")
        if least is not None and not items:
            raise self.error(name, f"expected {least[0]} {least[1]} or more")
        return tuple(items)

    def moment(self, name: str) -> int | None:
        """Return a time in milliseconds since 1970, or None if it is absent."""
        value = self._take(name)
        if value is None:
            return None
        try:
            if isinstance(value, datetime):  # a timestamp of YAML or TOML
                zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
                return round(zoned.timestamp() * 1000)
            return parse_timestamp(str(value))
        except (MalformedMessageError, OverflowError):
            problem = "expected a time such as 2027-01-31T00:00:00Z"
            raise self.error(name, problem) from None

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a mapping unchanged; an empty mapping if the setting is absent."""
        found: dict[str, Any] = {}
        for key, item in (self.optional(name, dict) or {}).items():
            if item is None:
                raise self.error(f"{name}.{key}", _NULL)
            found[str(key)] = item
        return found

    def rest(self) -> dict[str, Any]:
        """Return all settings of this section unchanged, even unknown settings."""
        return {str(name): self._take(name) for name in self.values}

    def child(self, name: str, parse: Callable[[ConfigSection], T]) -> T | None:
        """Return the parsed inner section, or None if it is absent."""
        value = self._take(name)
        return None if value is None else _parse(value, self.path(name), parse)

    def children(self, name: str, parse: Callable[[ConfigSection], T]) -> tuple[T, ...]:
        """Return the parsed sections of a list; no sections if the setting is absent."""
        value = self._take(name)
        items = [] if value is None else value
        if not isinstance(items, list):
            raise self.error(name, "expected a list")
        return tuple(
            _parse(item, f"{self.path(name)}[{index}]", parse) for index, item in enumerate(items)
        )

    def finish(self) -> None:
        """Raise for settings that no method has read: they are unknown."""
        for name in self.values:
            if name in self._known:
                continue
            names = sorted(map(str, self._known))
            meant = closest(str(name), names)
            known = f"; known are {', '.join(names)}"
            raise self.error(str(name), f"unknown setting{meant or known}")

    def _take(self, name: Any) -> Any:
        self._known.add(name)
        value = self.values.get(name)
        # YAML reads `shares:` without a value as null, which must not mean "all shares".
        if value is None and name in self.values:
            raise self.error(name, _NULL)
        return value

    def nearby(self, name: str) -> str:
        """Return the hint that an unknown setting was probably meant to be this one."""
        others = [str(key) for key in self.values if str(key) not in self._known]
        found = [key for key in others if key in _MEANT.get(name, ())]
        found = found or get_close_matches(name, others, n=1)
        return f"; did you mean it instead of {found[0]!r}?" if found else ""


def _parse(values: object, where: str, parse: Callable[[ConfigSection], T]) -> T:
    section = ConfigSection(values, where)
    found = parse(section)
    section.finish()
    return found


def closest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or an empty string if no name is similar."""
    by_folded = {name_key(one): one for one in known}
    found = get_close_matches(name_key(name), by_folded, n=1)
    return f"; did you mean {by_folded[found[0]]!r}?" if found else ""


def check_unique(names: Iterable[str], where: str) -> None:
    """Raise for repeated names, regardless of case (requirement SHARE-CFG-01)."""
    seen: set[str] = set()
    for name in names:
        if name_key(name) in seen:
            raise InvalidInputError(f"{where}: the name {name!r} occurs twice")
        seen.add(name_key(name))
