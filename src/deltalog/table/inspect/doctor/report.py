"""The findings of the checks, and the report that contains them.

This module defines the order and the printed form of findings.

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
from deltalog._util.similar_names import NoItems, SimilarNames
from deltalog.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.log.segment import LogListing
    from deltalog.log.snapshot import Snapshot
    from deltalog.storage.store import Store


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"  # rows or versions are wrong, or cannot be read
    WARNING = "warning"  # some readers or writers fail, or the problem will grow
    INFO = "info"  # no problem now


_ORDER = list(Severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(NoItems):
    """One problem or remark that a check reports.

    Args:
        check: stable identifier of the kind of finding, such as `file-missing`.
        severity: severity of the finding.
        message: description of the problem.
        advice: how to solve the problem; None if no action is needed.
        path: path of the affected file; None if no single file is affected.
        version: the affected version; None if no single version is affected.
    """

    check: str
    severity: Severity
    message: str
    advice: str | None = None
    path: str | None = None
    version: int | None = None

    def __str__(self) -> str:
        """Return one line, and a second line with the advice, if there is one."""
        line = f"{self.severity.upper():7} {self.check}: {printable_lines(self.message)}"
        advice = None if self.advice is None else printable_lines(self.advice)
        return line if advice is None else f"{line}\n        → {advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(SimilarNames, NoItems):
    """The findings of all checks of a table.

    Args:
        table: location of the table.
        version: the examined version; None if the table cannot be opened.
        findings: the findings, the most severe first.
        checks: names of the checks that ran.
    """

    table: str
    version: int | None
    findings: tuple[Finding, ...]
    checks: tuple[str, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether there are no errors and no warnings."""
        return all(finding.severity is Severity.INFO for finding in self.findings)

    @property
    def worst(self) -> Severity | None:
        """The highest severity; None if there are no findings."""
        return self.findings[0].severity if self.findings else None

    def of(self, check: str) -> tuple[Finding, ...]:
        """Return the findings whose `check` is this identifier."""
        return tuple(finding for finding in self.findings if finding.check == check)

    def to_table(self) -> pa.Table:
        """Return one row per finding.

        Columns: `severity`, `check`, `message`, `advice`, `path`, `version`.
        """
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
        names = ("severity", "check", "message", "advice")
        return card(self.summary, grid(rows, names, omits_empty=True))


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Sort findings, the most severe first. The order within a severity does not change."""
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)))


# --- The input of the checks: a table, and the sizes of samples


MANY: Final = 20
"""The maximum number of findings of one kind. If there are more problems of this kind, one further
finding contains the number of omitted problems."""


@dataclass(frozen=True)
class Patient:
    """A table to examine.

    Args:
        store: store of the table.
        listing: listing of the whole log.
        opened: the opened version; None if the table cannot be opened.
        now_ms: the current time in milliseconds since 1970, UTC.
        num_samples: number of data files to read as a sample.
        num_commits: number of the newest commits to read.
    """

    store: Store
    listing: LogListing
    opened: Snapshot | None
    now_ms: int
    num_samples: int
    num_commits: int

    @property
    def snapshot(self) -> Snapshot:
        """The opened version, for checks that need an open table."""
        if self.opened is None:
            raise InternalError("a check that needs an open table ran on one that cannot be opened")
        return self.opened

    @cached_property
    def log_files(self) -> Sequence[FileInfo]:
        """The files in `_delta_log`, without its subdirectories. Cost: one listing."""
        return list(self.store.list_from(LOG_DIRECTORY, ""))

    @cached_property
    def all_files(self) -> dict[str, int]:
        """Path → size in bytes, for all files in the table's directory. Cost: one listing."""
        return {info.path: info.size_bytes for info in self.store.list_all("")}

    def sample(self, files: pa.Table) -> pa.Table:
        """Return an evenly spread sample of the rows of `files`, with the first and last row."""
        count = files.num_rows
        if count <= self.num_samples:
            return files
        if self.num_samples <= 1:
            return files.slice(0, self.num_samples)
        last = self.num_samples - 1
        chosen = [number * (count - 1) // last for number in range(self.num_samples)]
        return files.take(pa.array(chosen, pa.int64()))


def decoded(column: Any) -> list[str]:
    """Decode the percent-encoding of a column of paths from the log."""
    return [decode_path(text) for text in column.to_pylist()]
