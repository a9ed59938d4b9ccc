"""The doctor: is a table what the protocol says, and will readers and writers get on with it.

Each file looks at one side of the table and says what it finds; nothing is changed.
"""

from __future__ import annotations

from deltalog.insight.doctor.examine import CHECKS, examine
from deltalog.insight.doctor.report import Finding, Report, Severity

__all__ = ["CHECKS", "Finding", "Report", "Severity", "examine"]
