"""Check whether a table conforms to the protocol, and whether engines can read and write it.

Each module checks one aspect of the table and reports findings. No check changes the table.
"""

from __future__ import annotations

from deltalog.table.inspect.doctor.examine import CHECKS, examine
from deltalog.table.inspect.doctor.report import Finding, Report, Severity

__all__ = ["CHECKS", "Finding", "Report", "Severity", "examine"]
