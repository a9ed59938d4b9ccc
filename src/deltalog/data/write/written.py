"""Files that were written but not committed, and a serialised form for workers."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from deltalog._util import cards
from deltalog._util.argument_types import kind_of
from deltalog._util.json import JsonObject, dumps, loads
from deltalog._util.readable import FILE, counted, readable_size
from deltalog.errors import InvalidInputError
from deltalog.protocol.actions import Action, AddCDCFile, AddFile, action_to_json, actions_from_json
from deltalog.protocol.features.identity_columns import identity_columns
from deltalog.schema import parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalog.protocol.configuration import TableConfiguration


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WrittenFiles:
    """Data files that are not committed yet.

    If the files are never committed, `vacuum` deletes them. The object can be pickled, or
    serialised with `to_json`.

    Args:
        adds: one action per data file.
        cdc: one action per change data file.
        identity_marks: for each identity column, the last value that was assigned.
        identity_starts: for each identity column, the first value that was assigned.
        num_rows: number of rows in the data files.
        num_bytes: size of all files.
        table_id: the id of the table for which the files were written.
        schema_string: the table's `schemaString` at the time of the write.
        rules: a digest of the table's other settings at that time, see `rules_of`; empty if
            unknown.
    """

    adds: tuple[AddFile, ...]
    cdc: tuple[AddCDCFile, ...] = ()
    identity_marks: Mapping[str, int] = field(default_factory=dict)
    identity_starts: Mapping[str, int] = field(default_factory=dict)
    num_rows: int
    num_bytes: int
    table_id: str
    schema_string: str
    rules: str = ""

    def __repr__(self) -> str:
        """Show the numbers of files and rows, and the size."""
        return f"WrittenFiles({', '.join(self._counts())})"

    def _repr_html_(self) -> str:
        """Return the notebook card: the files that are not committed yet."""
        *counts, size = self._counts()
        facts = cards.grid([("not committed", ", ".join(counts)), ("size", size)])
        return cards.card("WrittenFiles", facts)

    def _counts(self) -> list[str]:
        counts = [counted(len(self.adds), FILE), counted(self.num_rows, "row")]
        if self.cdc:
            counts.append(counted(len(self.cdc), "change data file"))
        return [*counts, readable_size(self.num_bytes)]

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the decoded paths of all files."""
        return (
            *(action.path for action in self.adds),
            *(action.path for action in self.cdc),
        )

    def to_json(self) -> str:
        """Return one line of JSON."""
        actions: list[Action] = [*self.adds, *self.cdc]
        return dumps(
            {
                "actions": [action_to_json(action) for action in actions],
                "identityMarks": dict(self.identity_marks),
                "identityStarts": dict(self.identity_starts),
                "numRows": self.num_rows,
                "numBytes": self.num_bytes,
                "tableId": self.table_id,
                "schemaString": self.schema_string,
                "rules": self.rules,
            }
        ).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse the JSON from `to_json`.

        Raises:
            MalformedLogError: the string is not the result of `to_json`.
        """
        where = "written files"
        node = JsonObject(loads(text, where), where)
        actions = actions_from_json(node.required("actions", list), where)
        return cls(
            adds=tuple(action for action in actions if isinstance(action, AddFile)),
            cdc=tuple(action for action in actions if isinstance(action, AddCDCFile)),
            identity_marks=node.required("identityMarks", dict),
            identity_starts=node.required("identityStarts", dict),
            num_rows=node.required("numRows", int),
            num_bytes=node.required("numBytes", int),
            table_id=node.required("tableId", str),
            schema_string=node.required("schemaString", str),
            rules=node.optional("rules", str) or "",
        )

    @classmethod
    def merge(cls, parts: Iterable[WrittenFiles]) -> WrittenFiles:
        """Merge the files of several workers for one commit.

        Raises:
            InvalidInputError: there are no parts, the parts were written for different tables or
                schemas, or workers assigned the same values of an identity column.
        """
        found = list(parts)
        if not found:
            raise InvalidInputError(
                "there are no written files to merge: expected the results of write_files; without "
                "rows, leave the call out"
            )
        if not all(isinstance(part, WrittenFiles) for part in found):
            raise InvalidInputError(
                f"expected WrittenFiles, found {kind_of(found[0])}; use "
                "WrittenFiles.from_json for the result of to_json"
            )
        first = found[0]
        if any(
            (part.table_id, part.schema_string, part.rules)
            != (first.table_id, first.schema_string, first.rules)
            for part in found
        ):
            raise InvalidInputError(
                "cannot commit these files together: they were written for different tables, or "
                "for different schemas or properties of one table"
            )
        starts, marks = _merge_identities(found)
        return cls(
            adds=tuple(action for part in found for action in part.adds),
            cdc=tuple(action for part in found for action in part.cdc),
            identity_marks=marks,
            identity_starts=starts,
            num_rows=sum(part.num_rows for part in found),
            num_bytes=sum(part.num_bytes for part in found),
            table_id=first.table_id,
            schema_string=first.schema_string,
            rules=first.rules,
        )


def rules_of(configuration: TableConfiguration) -> str:
    """Return a digest of partition columns, properties and protocol, which must not change.

    Properties include constraints. If the digest has changed, the files must not be committed.
    """
    metadata, protocol = configuration.metadata, configuration.protocol
    facts = [
        list(metadata.partition_columns),
        sorted(metadata.configuration.items()),
        [protocol.min_reader_version, protocol.min_writer_version],
        sorted(protocol.writer_features or ()),
    ]
    return hashlib.sha256(dumps(facts)).hexdigest()


def _merge_identities(
    parts: Sequence[WrittenFiles],
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the first and last identity values; raise if ranges of the parts overlap."""
    starts: dict[str, int] = {}
    marks: dict[str, int] = {}
    if not any(part.identity_marks for part in parts):
        return starts, marks
    for column in identity_columns(parse_schema(parts[0].schema_string)):
        name = column.name
        spans = sorted(
            sorted((part.identity_starts.get(name, mark), mark))
            for part in parts
            if (mark := part.identity_marks.get(name)) is not None
        )
        if not spans:
            continue
        if any(before[1] >= after[0] for before, after in itertools.pairwise(spans)):
            raise InvalidInputError(
                f"several writers assigned the same values of the identity column {name!r}: give "
                "each writer its own range (WriteSpec.identity_starts), or use a single writer"
            )
        ends = (spans[0][0], spans[-1][1])
        starts[name], marks[name] = ends if column.step > 0 else ends[::-1]
    return starts, marks
