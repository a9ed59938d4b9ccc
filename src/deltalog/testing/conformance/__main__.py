"""`python -m deltalog.testing.conformance DIRECTORY`: print the board of a corpus.

Protocol: none
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from deltalog._util.json import dumps
from deltalog.errors import InvalidInputError
from deltalog.testing.conformance.board import (
    READERS,
    Ruling,
    Verdict,
    as_markdown,
    as_text,
    find_reader,
    is_perfect,
    judge,
    load_corpus,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.testing.conformance.board import Corpus, Reader


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the board.

    Returns:
        0 if deltalog passes every case, 1 if it fails a case, 2 if the arguments are invalid.
    """
    options = _parser().parse_args(arguments)
    try:
        readers = [find_reader(name) for name in dict.fromkeys(["deltalog", *options.peer])]
        corpus = load_corpus(options.directory, options.writer)
    except InvalidInputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    results = {reader.title: [judge(case, reader) for case in corpus.cases] for reader in readers}
    cells = table_of(results)
    sys.stdout.write(as_text(cells) + _caption(corpus, readers))
    for title, judged in results.items():
        for one in judged:
            if one.verdict is Verdict.WRONG or (options.verbose and one.why):
                sys.stdout.write(f"{title}: {one.verdict.value}: {one.case.name}: {one.why}\n")
    if options.markdown:
        caption = "".join(f"- {line}\n" for line in _caption(corpus, readers).splitlines())
        text = as_markdown(cells) + "\n" + caption
        options.markdown.write_text(text, "utf-8")
    if options.json:
        options.json.write_bytes(b"".join(_lines(results)))
    return 0 if is_perfect(results[readers[0].title]) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deltalog.testing.conformance",
        description="Read every table of a corpus, and compare the rows with the expected ones.",
    )
    parser.add_argument(
        "directory", type=Path, help="directory with a manifest.json, or an unpacked release of DAT"
    )
    parser.add_argument(
        "--writer",
        action="append",
        default=[],
        metavar="NAME",
        help="read only tables of this directory; may be repeated",
    )
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME",
        help=f"also score this one: {', '.join(name for name in READERS if name != 'deltalog')}",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the board here")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each case as one line")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print refused cases with their errors"
    )
    return parser


def _caption(corpus: Corpus, readers: Sequence[Reader]) -> str:
    parts = [f"{len(corpus.cases)} reads of {corpus.tables} tables."]
    parts += [f"Not judged: {number}, {reason}." for reason, number in corpus.left_out.items()]
    parts += [f"{reader.title}: {reader.how}." for reader in readers]
    return "\n".join(parts) + "\n"


def _lines(results: dict[str, list[Ruling]]) -> list[bytes]:
    return [
        dumps(
            {
                "reader": title,
                "table": one.case.table,
                "version": one.case.version,
                "changes": one.case.changes,
                "verdict": one.verdict.value,
                "why": one.why,
            }
        )
        + b"\n"
        for title, judged in results.items()
        for one in judged
    ]


if __name__ == "__main__":
    sys.exit(main())
