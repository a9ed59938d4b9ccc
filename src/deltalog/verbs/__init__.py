"""Verbs: what can be done to a table, one module each.

A verb is a frozen value that holds its arguments as the user says them. It stages itself into a
transaction and returns one typed outcome; nothing here commits.
"""

from __future__ import annotations

__all__: list[str] = []
