"""Checkpoints: the state of the table at one version, in one or several files."""

from __future__ import annotations
