"""Findings of the doctor, and the report with them.

This module owns the order and the printed form of findings. The checks decide what to report.

Protocol: none
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.cards import card, grid
from deltalog._util.escaping import printable, printable_lines
from deltalog._util.paths import LOG_DIRECTORY, FileInfo, decode_path
from deltalog.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.log.segment import LogListing
    from deltalog.log.snapshot import Snapshot
    from deltalog.storage.store import Store


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
        findings: the most severe first.
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
        """The highest severity; None if there are no findings."""
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
        """Return one line: the number of findings of each severity."""
        at = "no version" if self.version is None else f"version {self.version}"
        counts = Counter(finding.severity for finding in self.findings)
        parts = [
            f"{counts[kind]} {kind}{'s' * (counts[kind] > 1 and kind is not Severity.INFO)}"
            for kind in _ORDER
            if counts[kind]
        ]
        return f"{self.table} at {at}: {', '.join(parts) or 'nothing found'}"

    def __repr__(self) -> str:
        """Return the summary and every finding."""
        return "\n".join([printable(self.summary), *(str(finding) for finding in self.findings)])

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rows = [
            (finding.severity, finding.check, finding.message, finding.advice)
            for finding in self.findings
        ]
        return card(self.summary, grid(rows, ("severity", "check", "message", "advice")))


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Sort the most severe first; findings of equal severity keep their order."""
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)))


# The input of the checks: a table, and how thoroughly to examine it.


MANY: Final = 20
"""Most findings of one kind to report one by one; the rest is only counted."""


@dataclass(frozen=True)
class Patient:
    """A table to examine.

    Args:
        store: store of the table.
        listing: the whole log.
        opened: the opened version; None if it cannot be opened.
        now_ms: the current time.
        num_samples: how many data files are read.
        num_commits: how many of the newest commits are read.
    """

    store: Store
    listing: LogListing
    opened: Snapshot | None
    now_ms: int
    num_samples: int
    num_commits: int

    @property
    def snapshot(self) -> Snapshot:
        """The version, for checks that need one."""
        if self.opened is None:
            raise InternalError("a check that needs an open table ran on one that cannot be opened")
        return self.opened

    @cached_property
    def log_files(self) -> Sequence[FileInfo]:
        """The files directly in the log's directory. Cost: one listing."""
        return list(self.store.list_from(LOG_DIRECTORY, ""))

    @cached_property
    def all_files(self) -> dict[str, int]:
        """Sizes of all files of the table, including the log, by path. Cost: one listing."""
        return {info.path: info.size_bytes for info in self.store.list_all("")}

    def sample(self, files: pa.Table) -> pa.Table:
        """Return an evenly spread sample of the rows, with the first and the last."""
        count = files.num_rows
        if count <= self.num_samples:
            return files
        if self.num_samples <= 1:
            return files.slice(0, self.num_samples)
        last = self.num_samples - 1
        chosen = [number * (count - 1) // last for number in range(self.num_samples)]
        return files.take(pa.array(chosen, pa.int64()))


def decoded(column: Any) -> list[str]:
    """Decode a column of paths of the log."""
    return [decode_path(text) for text in column.to_pylist()]
