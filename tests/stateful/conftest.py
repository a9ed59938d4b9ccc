"""Emulated object stores for the races."""

from __future__ import annotations

from tests.support.emulators import azure, azurite_endpoint, s3, s3_endpoint

__all__ = ["azure", "azurite_endpoint", "s3", "s3_endpoint"]
