"""Emulated object stores for the tests here."""

from __future__ import annotations

from tests.support.emulators import (
    azure,
    azurite_endpoint,
    gcs,
    gcs_endpoint,
    s3,
    s3_endpoint,
    signing_gcs,
)

__all__ = ["azure", "azurite_endpoint", "gcs", "gcs_endpoint", "s3", "s3_endpoint", "signing_gcs"]
