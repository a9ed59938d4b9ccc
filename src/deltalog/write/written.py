"""What a write has left in the store, waiting for a commit.

Owns the form in which that travels between processes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from deltalog._json import JsonObject, dumps, loads
from deltalog.actions import AddCDCFile, AddFile, action_to_json, actions_from_json
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deltalog.actions import Action


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFiles:
    """Data files that no commit names yet; `vacuum` removes them if none ever does.

    It can be pickled, and `to_json` is for other ways.

    Args:
        adds: one action per data file.
        cdc: one action per file of changed rows.
        identity_marks: identity column → the last value that was given.
        num_rows: rows in the data files.
        num_bytes: size of all files.
        table_id: of the table that they were written for.
        schema_string: the schema that the rows fit, as the log has it.
    """

    adds: tuple[AddFile, ...]
    cdc: tuple[AddCDCFile, ...] = ()
    identity_marks: Mapping[str, int] = field(default_factory=dict)
    num_rows: int
    num_bytes: int
    table_id: str
    schema_string: str

    @property
    def paths(self) -> tuple[str, ...]:
        """The decoded paths of all files."""
        return (
            *(action.path for action in self.adds),
            *(action.path for action in self.cdc),
        )

    def to_json(self) -> str:
        """This as one line of JSON."""
        actions: list[Action] = [*self.adds, *self.cdc]
        return dumps(
            {
                "actions": [action_to_json(action) for action in actions],
                "identityMarks": dict(self.identity_marks),
                "numRows": self.num_rows,
                "numBytes": self.num_bytes,
                "tableId": self.table_id,
                "schemaString": self.schema_string,
            }
        ).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """What `to_json` made a text of.

        Raises:
            MalformedLogError: the text is none of `to_json`'s.
        """
        where = "written files"
        node = JsonObject(loads(text, where), where)
        actions = actions_from_json(node.required("actions", list), where)
        marks: dict[str, Any] = node.required("identityMarks", dict)
        return cls(
            adds=tuple(action for action in actions if isinstance(action, AddFile)),
            cdc=tuple(action for action in actions if isinstance(action, AddCDCFile)),
            identity_marks=marks,
            num_rows=node.required("numRows", int),
            num_bytes=node.required("numBytes", int),
            table_id=node.required("tableId", str),
            schema_string=node.required("schemaString", str),
        )

    @classmethod
    def merge(cls, parts: Iterable[WrittenFiles]) -> WrittenFiles:
        """What several workers wrote for the same commit, as one.

        Raises:
            InvalidInputError: there are none, or they were written for different tables or
                schemas, or two of them gave values of the same identity column.
        """
        found = list(parts)
        if not found:
            raise InvalidInputError("there are no written files to merge")
        first = found[0]
        marks: dict[str, int] = {}
        for part in found:
            if (part.table_id, part.schema_string) != (first.table_id, first.schema_string):
                raise InvalidInputError(
                    "cannot commit these files together: they were written for different tables, "
                    "or for different schemas of one table"
                )
            twice = sorted(marks.keys() & part.identity_marks.keys())
            if twice:
                raise InvalidInputError(
                    f"several writers gave values of the identity column(s) {', '.join(twice)}: "
                    "the values may not be unique; write tables with identity columns in one go"
                )
            marks.update(part.identity_marks)
        return cls(
            adds=tuple(action for part in found for action in part.adds),
            cdc=tuple(action for part in found for action in part.cdc),
            identity_marks=marks,
            num_rows=sum(part.num_rows for part in found),
            num_bytes=sum(part.num_bytes for part in found),
            table_id=first.table_id,
            schema_string=first.schema_string,
        )
