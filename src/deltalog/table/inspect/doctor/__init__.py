"""The doctor: checks whether a table conforms to the protocol and works with readers and writers.

Each module checks one aspect of the table and reports findings; nothing is changed.
"""

from __future__ import annotations

from deltalog.table.inspect.doctor.examine import CHECKS, examine
from deltalog.table.inspect.doctor.report import Finding, Report, Severity

__all__ = ["CHECKS", "Finding", "Report", "Severity", "examine"]
