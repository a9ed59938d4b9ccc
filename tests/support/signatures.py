"""Signed URLs, checked from their published descriptions alone.

Sources: Amazon S3's "Authenticating Requests: Using Query Parameters (AWS Signature Version 4)" and
Google Cloud Storage's "V4 signing process".
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from deltalog._util.clock import now_ms

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey


def is_signed_by_google(key: RSAPublicKey, host: str, target: str) -> bool:
    """Whether the holder of the private key allowed `GET` of a path on a host, and it holds."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    signature, text = _signed("X-Goog", "GOOG4-RSA-SHA256", host, target)
    if signature is None:
        return False
    try:
        key.verify(bytes.fromhex(signature), text, padding.PKCS1v15(), hashes.SHA256())
    except (InvalidSignature, ValueError):
        return False
    return True


def is_signed_by_amazon(secret: str, host: str, target: str) -> bool:
    """Whether the holder of the secret allowed `GET` of a path on a host, and it holds."""
    signature, text = _signed("X-Amz", "AWS4-HMAC-SHA256", host, target)
    if signature is None:
        return False
    key = f"AWS4{secret}".encode()
    for part in text.split(b"\n")[2].split(b"/"):  # date, region, service, `aws4_request`
        key = hmac.digest(key, part, "sha256")
    return hmac.compare_digest(hmac.digest(key, text, "sha256").hex(), signature)


def _signed(prefix: str, algorithm: str, host: str, target: str) -> tuple[str | None, bytes]:
    """The signature, and the text that it must be of; None where there is none, or it has ended."""
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    signature = query.pop(f"{prefix}-Signature", None)
    moment, seconds = query.get(f"{prefix}-Date", ""), query.get(f"{prefix}-Expires", "0")
    right = query.get(f"{prefix}-SignedHeaders") == "host"
    if signature is None or not right or query.get(f"{prefix}-Algorithm") != algorithm:
        return None, b""
    if _seconds_of(moment) + int(seconds) < now_ms() / 1000:
        return None, b""
    arguments = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in sorted(query.items())
    )
    path = quote(unquote(parts.path), safe="/~")  # clients may spell it in other ways
    request = "\n".join(["GET", path, arguments, f"host:{host}", "", "host", "UNSIGNED-PAYLOAD"])
    scope = query[f"{prefix}-Credential"].partition("/")[2]
    digest = hashlib.sha256(request.encode()).hexdigest()
    return signature, f"{algorithm}\n{moment}\n{scope}\n{digest}".encode()


def _seconds_of(moment: str) -> float:
    from datetime import UTC, datetime

    return datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
