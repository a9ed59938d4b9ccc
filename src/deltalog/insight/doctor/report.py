"""Findings of the doctor, and the report that holds them.

Owns the order of findings and how they are printed. What to report is decided by the checks.

Protocol: none
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from deltalog.cards import card, grid
from deltalog.escaping import printable, printable_lines


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"  # rows or versions cannot be read, or are wrong
    WARNING = "warning"  # some readers or writers will fail, or it will get worse
    INFO = "info"  # worth knowing


_ORDER = list(Severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding.

    Args:
        check: name of the check that found it; stable.
        severity: how bad it is.
        message: what was found.
        advice: what to do about it; None if nothing has to be done.
        path: the file concerned.
        version: the version concerned.
    """

    check: str
    severity: Severity
    message: str
    advice: str | None = None
    path: str | None = None
    version: int | None = None

    def __str__(self) -> str:
        """One line, and another with the advice."""
        line = f"{self.severity.upper():7} {self.check}: {printable_lines(self.message)}"
        advice = None if self.advice is None else printable_lines(self.advice)
        return line if advice is None else f"{line}\n        → {advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of an examination.

    Args:
        table: its location.
        version: the version examined; None if none can be opened.
        findings: the worst first.
        checks: names of the checks that ran.
    """

    table: str
    version: int | None
    findings: tuple[Finding, ...]
    checks: tuple[str, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether no finding calls for action."""
        return all(finding.severity is Severity.INFO for finding in self.findings)

    @property
    def worst(self) -> Severity | None:
        """The worst severity; None if nothing was found."""
        return self.findings[0].severity if self.findings else None

    def of(self, check: str) -> tuple[Finding, ...]:
        """The findings of one check."""
        return tuple(finding for finding in self.findings if finding.check == check)

    def to_table(self) -> pa.Table:
        """A row per finding: `severity`, `check`, `message`, `advice`, `path`, `version`."""
        texts = ("severity", "check", "message", "advice", "path")
        fields: dict[str, pa.DataType] = {name: pa.string() for name in texts}
        schema = pa.schema({**fields, "version": pa.int64()})
        rows = [
            {name: getattr(finding, name) for name in schema.names} for finding in self.findings
        ]
        return pa.Table.from_pylist(rows, schema=schema)

    @property
    def summary(self) -> str:
        """One line: the number of findings of each severity."""
        at = "no version" if self.version is None else f"version {self.version}"
        counts = Counter(finding.severity for finding in self.findings)
        told = [
            f"{counts[kind]} {kind}{'s' * (counts[kind] > 1 and kind is not Severity.INFO)}"
            for kind in _ORDER
            if counts[kind]
        ]
        return f"{self.table} at {at}: {', '.join(told) or 'nothing found'}"

    def __repr__(self) -> str:
        """The summary, and every finding."""
        return "\n".join([printable(self.summary), *(str(finding) for finding in self.findings)])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = [
            (finding.severity, finding.check, finding.message, finding.advice)
            for finding in self.findings
        ]
        return card(self.summary, grid(rows, ("severity", "check", "message", "advice")))


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Sort the worst first; findings of equal severity keep their order."""
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)))
