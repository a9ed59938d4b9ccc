"""The pictures of these pages, as SVG that follows light and dark: `python -m docs.drawings`.

Boxes, lines and words by hand, as `benchmarks/chart.py` does it. Colours are those of the page
(`currentColor`, and properties that the page's style may set), or of the reader's system where a
picture is shown by itself. The folders are those of the import contract in `pyproject.toml`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

_HERE = Path(__file__).resolve().parent
FOLDER = _HERE / "pictures"
_STYLE: Final = (
    "svg.dl{color:#1f2328;--dl-accent:#0a5cad;--dl-box:#f6f8fa;--dl-line:#afb8c1;"
    "font-family:system-ui,-apple-system,'Segoe UI',sans-serif}"
    "@media(prefers-color-scheme:dark){svg.dl{color:#e6edf3;--dl-accent:#6cb6ff;"
    "--dl-box:#161b22;--dl-line:#545d68}}"
    "svg.dl text{fill:currentColor;font-size:13px}"
    "svg.dl .m{font-family:ui-monospace,monospace;font-size:12px}"
    "svg.dl .s{font-size:11.5px;opacity:.8}svg.dl .h{font-weight:600}"
    "svg.dl .b{fill:var(--dl-box);stroke:var(--dl-line)}"
    "svg.dl .f{fill:var(--dl-accent);fill-opacity:.14;stroke:var(--dl-accent)}"
    "svg.dl .o{fill:none;stroke:var(--dl-line);stroke-dasharray:4 3}"
    "svg.dl .l{fill:none;stroke:currentColor;stroke-width:1.3}"
)


@dataclass(slots=True)
class Drawing:
    """Parts of a picture, in the order in which they are drawn.

    Args:
        name: of the picture; markers are named after it, as pages may hold several.
        width: in units of the picture.
        height: likewise.
        parts: what is there so far.
    """

    name: str
    width: int
    height: int
    parts: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, w: float, h: float, kind: str = "b") -> None:
        """A rectangle: `b` plain, `f` filled, `o` an outline."""
        self.parts.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="5"/>'
        )

    def text(self, x: float, y: float, words: str, kind: str = "", at: str = "start") -> None:
        """One line; `m` is code, `s` small, `h` bold."""
        self.parts.append(
            f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{at}">{escape(words)}</text>'
        )

    def labelled(
        self, x: float, y: float, w: float, h: float, *lines: str, kind: str = "b", style: str = ""
    ) -> None:
        """A box with centred lines, the first of them bold unless `style` says otherwise."""
        self.box(x, y, w, h, kind)
        top = y + h / 2 + 4.5 - 8.5 * (len(lines) - 1)
        for number, line in enumerate(lines):
            chosen = style or ("h" if number == 0 and len(lines) > 1 else "s" if number else "")
            self.text(x + w / 2, top + 17 * number, line, chosen, "middle")

    def arrow(self, *points: tuple[float, float], kind: str = "l", both: bool = False) -> None:
        """A line through points with a head at its end."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        head = f"url(#head-{self.name})"
        start = f' marker-start="{head}"' if both else ""
        self.parts.append(f'<polyline class="{kind}" points="{path}" marker-end="{head}"{start}/>')

    def svg(self) -> str:
        """The whole file."""
        return "\n".join(
            [
                (
                    f'<svg xmlns="http://www.w3.org/2000/svg" class="dl" '
                    f'viewBox="0 0 {self.width} {self.height}">'
                ),
                f"<style>{_STYLE}</style>",
                (
                    f'<defs><marker id="head-{self.name}" viewBox="0 0 8 8" refX="7" refY="4" '
                    'markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
                    '<path d="M0,0.5L8,4L0,7.5z" fill="currentColor"/></marker></defs>'
                ),
                *self.parts,
                "</svg>",
                "",
            ]
        )


_USERS: Final = (
    ("in one process", "pandas, Polars, DuckDB, pyarrow, SQL"),
    ("on a cluster", "tasks of Spark, without a jar"),
    ("elsewhere", "recipients of a share"),
)
_TASKS: Final = ("scans and operations", "commits and their rules", "maintenance")


def overview() -> Drawing:
    """The readers and writers of tables."""
    drawing = Drawing("overview", 780, 262)
    for number, (where, who) in enumerate(_USERS):
        y = 14 + 84 * number
        drawing.labelled(10, y, 252, 62, where, who)
        drawing.arrow((262, y + 31), (330, 131 if number == 1 else 100 + 31 * number), both=True)
    drawing.box(332, 64, 170, 134, "f")
    drawing.text(417, 96, "deltalog", "h", "middle")
    for number, line in enumerate(_TASKS):
        drawing.text(417, 124 + 22 * number, line, "s", "middle")
    drawing.arrow((502, 131), (566, 131), both=True)
    drawing.box(568, 14, 202, 232, "o")
    drawing.text(669, 36, "any store", "h", "middle")
    drawing.text(582, 66, "_delta_log/", "m")
    for number, name in enumerate(("…000.json", "…001.json", "…010.checkpoint.parquet")):
        drawing.labelled(582, 76 + 30 * number, 176, 24, name, style="m")
    drawing.text(582, 186, "month=1/", "m")
    drawing.labelled(582, 196, 176, 24, "part-….parquet", style="m")
    drawing.text(582, 238, "deletion vectors, change data", "s")
    return drawing


def overview_narrow() -> Drawing:
    """The same from top to bottom, for phones."""
    drawing = Drawing("overview-narrow", 340, 552)
    for number, (where, who) in enumerate(_USERS):
        drawing.labelled(10, 10 + 62 * number, 320, 52, where, who)
    drawing.arrow((170, 186), (170, 218), both=True)
    drawing.box(10, 220, 320, 106, "f")
    drawing.text(170, 244, "deltalog", "h", "middle")
    for number, line in enumerate(_TASKS):
        drawing.text(170, 268 + 20 * number, line, "s", "middle")
    drawing.arrow((170, 326), (170, 358), both=True)
    drawing.box(10, 360, 320, 182, "o")
    drawing.text(170, 382, "any store", "h", "middle")
    drawing.text(26, 406, "_delta_log/", "m")
    for number, name in enumerate(("…000.json", "…010.checkpoint.parquet")):
        drawing.labelled(26, 414 + 30 * number, 288, 24, name, style="m")
    drawing.text(26, 490, "month=1/", "m")
    drawing.labelled(26, 498, 288, 24, "part-….parquet", style="m")
    drawing.text(26, 536, "deletion vectors, change data", "s")
    return drawing


# The outermost folder of each band of the picture, from the outside to the inside.
BANDS: Final = (
    ("__main__", "interfaces"),
    ("dask", "for users"),
    ("statements", "tables"),
    ("transaction", "versions"),
    ("protocol", "rules, no I/O"),
    ("storage", "foundation"),
)


def contract_folders() -> list[list[str]]:
    """The layers as `lint-imports` orders them: each may import only those after it."""
    settings = tomllib.loads((_HERE.parent / "pyproject.toml").read_text("utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            return [re.findall(r"\w+", layer) for layer in contract["layers"]]
    raise LookupError("pyproject.toml has no contract of layers")


def bands() -> list[tuple[str, list[list[str]]]]:
    """Title and layers of each band."""
    layers = contract_folders()
    firsts = [layer[0] for layer in layers]
    starts = [firsts.index(first) for first, _ in BANDS] + [len(layers)]
    if starts[0] != 0 or starts != sorted(starts):
        raise LookupError("the bands of docs/drawings.py are not in the contract's order")
    return [
        (title, layers[start:end])
        for (_, title), start, end in zip(BANDS, starts, starts[1:], strict=False)
    ]


def folders() -> Drawing:
    """The folders of the source, from the import contract."""
    drawing = Drawing("folders", 780, 0)
    left, right, step = 150, 768, 28
    y = 16.0
    for title, layers in bands():
        top = y
        y += 10
        for names in layers:
            x = float(left + 10)
            for name in names:
                width = 7.3 * len(name) + 14
                drawing.parts.append("")  # boxes come after the band below them
                drawing.labelled(x, y, width, 22, name, style="m")
                x += width + 6
            if len(names) == 1:
                drawing.text(left + 140, y + 15, _purpose(names[0]), "s")
            y += step
        y += 4
        drawing.parts.insert(0, _band(left, top, right - left, y - top))
        drawing.text(14, top + 25, title, "h")
        y += 8
    drawing.parts = [part for part in drawing.parts if part]
    drawing.arrow((774, 20), (774, y - 12))
    drawing.height = round(y + 22)
    drawing.text(768, y + 12, "imports go down only", "s", "end")
    return drawing


def _purpose(folder: str) -> str:
    """The first sentence of a package's docstring."""
    source = _HERE.parent / "src" / "deltalog" / folder
    file = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
    found = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return found.partition("\n")[0].rstrip(".")


def _band(x: float, y: float, w: float, h: float) -> str:
    return f'<rect class="o" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="5"/>'


def commit() -> Drawing:
    """Two writers, one version."""
    drawing = Drawing("commit", 780, 330)
    for number, who in enumerate(("your writer", "another writer")):
        y = 20 + 190 * number
        drawing.labelled(10, y, 124, 44, who, style="h")
        drawing.labelled(160, y, 150, 44, "data files", "not visible yet")
        drawing.arrow((134, y + 22), (158, y + 22))
    drawing.arrow((310, 42), (352, 42), (352, 130), (400, 130))
    drawing.arrow((310, 232), (352, 232), (352, 152), (400, 152))
    drawing.text(362, 96, "create …012.json", "s")
    drawing.text(362, 112, "if it does not exist", "s")
    drawing.labelled(402, 118, 130, 46, "the store", "accepts one", kind="f")
    drawing.arrow((532, 130), (582, 130), (582, 42), (610, 42))
    drawing.labelled(612, 20, 158, 44, "version 12", "readers see all of it", kind="f")
    drawing.arrow((691, 64), (691, 92))
    drawing.labelled(612, 94, 158, 44, "after the commit", "checksum, checkpoint")
    drawing.arrow((532, 152), (582, 152), (582, 232), (610, 232))
    drawing.labelled(612, 206, 158, 52, "the other writer", "reads version 12")
    drawing.labelled(402, 276, 160, 44, "no conflict", "commit version 13", kind="f")
    drawing.labelled(612, 276, 158, 44, "conflict", "run again, or error")
    drawing.arrow((640, 258), (640, 268), (482, 268), (482, 275))
    drawing.arrow((691, 258), (691, 275))
    return drawing


def merge_on_read() -> Drawing:
    """A delete that writes a deletion vector, and a delete that rewrites the file."""
    drawing = Drawing("merge-on-read", 780, 300)
    values = ["UA", "AA", "DL", "UA", "B6", "AA"]
    deleted = {2}
    drawing.text(10, 24, "DELETE … WHERE carrier = 'DL'", "m")
    drawing.text(10, 60, "merge on read", "h")
    drawing.text(10, 78, "with deletion vectors", "s")
    drawing.text(10, 196, "copy on write", "h")
    drawing.text(10, 214, "without deletion vectors", "s")

    def column(x: float, y: float, names: list[str], marked: set[int], kind: str) -> None:
        for number, name in enumerate(names):
            drawing.box(x + 34 * number, y, 30, 26, "o" if number in marked else kind)
            drawing.text(x + 34 * number + 15, y + 17, name, "m", "middle")

    for y, file in ((52, "part-1.parquet"), (188, "part-1.parquet")):
        drawing.text(240, y - 8, file, "s")
        column(240, y, values, set(), "b")
    # A vector of positions for the unchanged file.
    drawing.text(240, 100, "not changed", "s")
    drawing.arrow((450, 65), (486, 65))
    drawing.text(492, 44, "+ a few bytes: positions of deleted rows", "s")
    for number in range(len(values)):
        is_gone = number in deleted
        drawing.box(492 + 34 * number, 52, 30, 26, "f" if is_gone else "b")
        drawing.text(492 + 34 * number + 15, 69, "1" if is_gone else "0", "m", "middle")
    drawing.arrow((597, 80), (597, 104))
    drawing.text(492, 120, "reads skip the marked row", "s")
    column(492, 126, values, deleted, "f")
    # The rewritten file.
    drawing.text(240, 236, "removed; vacuum deletes it later", "s")
    drawing.arrow((450, 201), (486, 201))
    drawing.text(492, 180, "part-2.parquet: the other rows, rewritten", "s")
    column(492, 188, [value for value in values if value != "DL"], set(), "f")
    drawing.text(
        10,
        272,
        "In both cases, one commit adds the new file or vector and removes the old one.",
        "s",
    )
    drawing.text(10, 290, "Later, compact() and purge() rewrite files with marked rows.", "s")
    return drawing


def shared_query() -> Drawing:
    """The requests of a recipient that reads a shared table."""
    drawing = Drawing("shared-query", 780, 296)
    for x, who, what in (
        (10, "recipient", "client, or Spark"),
        (320, "sharing server", "deltalog share serve"),
        (630, "store", "S3, Azure, GCS, disk"),
    ):
        drawing.labelled(x, 12, 140, 46, who, what, kind="f" if x == 320 else "b")
        middle = x + 70
        drawing.parts.append(f'<line x1="{middle}" x2="{middle}" y1="58" y2="282" class="o"/>')
    steps = (
        (80, 390, "1  query: columns, predicate, limit, token"),
        (390, 700, "2  the table's log: which files may match"),
        (390, 80, "3  files with statistics, and short-lived URLs"),
        (80, 700, "4  only the bytes of the columns, from several files at once"),
    )
    for number, (start, end, words) in enumerate(steps):
        y = 96 + 46 * number
        away = 4 if end > start else -4
        drawing.arrow((start + away, y), (end - away, y), kind="l")
        drawing.text((start + end) / 2, y - 8, words, "s", "middle")
    drawing.labelled(10, 248, 290, 36, "5  predicate and limit are applied again", style="s")
    return drawing


def branches() -> Drawing:
    """A branch beside main: it starts at a version, and is published as one."""
    drawing = Drawing("branches", 780, 250)
    drawing.text(10, 38, "main", "h")
    drawing.text(10, 56, "what all readers see", "s")
    for number, version in enumerate((7, 8, 9, 10)):
        drawing.labelled(150 + 104 * number, 22, 78, 40, f"version {version}")
        if number:
            drawing.arrow((124 + 104 * number, 42), (148 + 104 * number, 42))
    drawing.labelled(640, 22, 130, 40, "version 11", kind="f")
    drawing.arrow((540, 42), (638, 42))
    drawing.text(10, 138, "branch nightly", "h")
    drawing.text(10, 156, "what its writers see", "s")
    drawing.arrow((293, 62), (293, 142), (316, 142))
    drawing.labelled(318, 122, 78, 40, "append")
    drawing.arrow((396, 142), (420, 142))
    drawing.labelled(422, 122, 78, 40, "delete")
    drawing.arrow((500, 142), (538, 142))
    drawing.labelled(540, 116, 110, 52, "checks", "and conflict rules")
    drawing.arrow((650, 142), (705, 142), (705, 64))
    drawing.text(714, 108, "publish", "s")
    drawing.box(150, 196, 620, 40, "o")
    drawing.text(164, 221, "data files of both, in the table's directory: nothing is copied", "s")
    return drawing


def key_index() -> Drawing:
    """A lookup: the log names the files, a pack the rows, and the reader checks them."""
    drawing = Drawing("key-index", 780, 250)
    drawing.labelled(10, 96, 110, 52, "id = 4711", "the key's hash")
    drawing.arrow((120, 122), (158, 122))
    drawing.box(160, 22, 250, 200, "o")
    drawing.text(174, 44, "pack: hashes of many files, sorted", "s")
    for number, (words, kind) in enumerate(
        (("bucket 0", "b"), ("bucket 1: hash → row", "f"), ("bucket 2", "b"), ("…", "b"))
    ):
        drawing.labelled(176, 58 + 38 * number, 218, 32, words, kind=kind, style="s")
    drawing.arrow((394, 112), (468, 62))
    drawing.arrow((394, 112), (468, 142))
    for number, (name, words) in enumerate(
        (("file 3", "rows 512 to 520"), ("file 8", "row 90,001"), ("other files", "not read"))
    ):
        kind = "o" if number == 2 else "b"
        drawing.labelled(470, 36 + 68 * number, 130, 52, name, words, kind=kind)
    drawing.arrow((600, 62), (650, 112))
    drawing.arrow((600, 130), (650, 122))
    drawing.labelled(652, 84, 118, 66, "check", "whole condition,", "deletion vector", kind="f")
    return drawing


PICTURES: Final[tuple[Callable[[], Drawing], ...]] = (
    overview,
    overview_narrow,
    folders,
    commit,
    merge_on_read,
    shared_query,
    branches,
    key_index,
)


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for draw in PICTURES:
        drawing = draw()
        (FOLDER / f"{drawing.name}.svg").write_text(drawing.svg(), "utf-8")


if __name__ == "__main__":
    main()
