"""Runs every Python block of the README and of these pages, and compares what they print.

Pages use the table `flights` that the first block of `how-to/index.md` makes, but for those that
begin with one of their own. Pages that name the profile `flights.share` have a server that shares
it.

Blocks of one page share their names, as a reader would type them one after the other. What is not
run or not shown says why: see `docs/outputs.py`. With `DOCS_OUTPUTS=write` the pages are brought
up to date.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path

import pytest
from docs.outputs import Block, disagreement, find_blocks, is_same, with_outputs

from deltalog.sharing.server import app
from tests.support.asgi import serving
from tests.support.sharing import config_of, write_profile

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
]
# Pages whose reader begins with an empty directory.
MAKE_THEIR_OWN = {"README.md", "docs/index.md", "docs/tutorial.md", "docs/how-to/index.md"}
HERE = "/data"  # where the examples are said to run


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _make_flights() -> None:
    first = find_blocks((DOCS / "how-to" / "index.md").read_text("utf-8"))[0]
    exec(first.code, {})  # noqa: S102 - what a reader types to follow the pages


@contextmanager
def _sharing() -> Iterator[None]:
    """The table as `travel.default.flights` of the profile `flights.share`."""
    table = {"location": "flights", "historyShared": True}
    with serving(app(config_of({"travel.default.flights": table}))) as url:
        write_profile(Path("flights.share"), f"{url}/delta-sharing/")
        yield


def _run(page: Path, block: Block, names: dict[str, object]) -> str:
    """What a block prints; nothing if it is not run."""
    if not block.is_run:
        return ""
    # Line numbers of a traceback are the page's.
    code = compile("\n" * block.line + block.code, str(page), "exec")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, names)  # noqa: S102 - running the page is the test
    return printed.getvalue().replace(str(Path.cwd()), HERE)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page does what it shows, and prints what stands below."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "88")  # programs fit their tables to the terminal
    if _name(page) not in MAKE_THEIR_OWN:
        _make_flights()
    text = page.read_text("utf-8")
    blocks = find_blocks(text)
    names: dict[str, object] = {"__name__": "__main__"}
    with _sharing() if "flights.share" in text else nullcontext():
        printed = [_run(page, block, names) for block in blocks]
    if os.environ.get("DOCS_OUTPUTS") == "write":
        page.write_text(with_outputs(text, printed), "utf-8")
        return
    wrong = [disagreement(block, output) for block, output in zip(blocks, printed, strict=True)]
    assert not any(wrong), "\n".join(one for one in wrong if one)


def test_only_what_needs_something_else_is_not_run() -> None:
    """A reader does not see the comment, so a block that fails as typed needs other lines."""
    reasons = {
        (_name(page), reason)
        for page in PAGES
        if "adr" not in page.parts
        for reason in re.findall(
            r"^ *<!-- not run: (.*?) -->$", page.read_text("utf-8"), re.MULTILINE
        )
    }
    assert len(reasons) > 20
    assert not [one for one in reasons if not re.search(r"\bneeds\b|^starting|^an excerpt", one[1])]


_CONSOLE = re.compile(
    r"(<!-- not run: .*? -->\n)?^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def _commands(text: str) -> list[tuple[str, str]]:
    """The commands of a page's console blocks, each with the output that stands below it."""
    blocks = [block for reason, block in _CONSOLE.findall(text) if not reason]
    found: list[tuple[str, str]] = []
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, output = found.pop()
            found.append((command, f"{output}{line}\n"))
    return [(command, output) for command, output in found if "~/" not in command]


def test_the_commands_of_the_command_line_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader can type the page from top to bottom; completion scripts are not installed."""
    monkeypatch.chdir(tmp_path)
    _make_flights()
    commands = _commands((DOCS / "how-to" / "cli.md").read_text("utf-8"))
    assert len(commands) > 20
    between = "---8<---"
    script = f"set -e\ndeltalog() {{ '{sys.executable}' -m deltalog \"$@\"; }}\n" + "".join(
        f"{command}\necho '{between}'\n" for command, _ in commands
    )
    done = subprocess.run(  # noqa: S603 - what a reader types
        ["/bin/sh", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.replace(str(tmp_path), HERE).split(f"{between}\n")
    for (command, shown), output in zip(commands, printed, strict=False):
        assert not shown or is_same(shown, output), f"{command} prints\n{output}"


FIRST, SECOND = "0a1b2c3d-1111-4222-8333-0123456789ab", "ffffffff-9999-4888-b777-abcdefabcdef"
PAGE = """\
# A page

```python
print(1 + 1)
```

<!-- output -->
```text
3
```

```python
x = 5
```

<!-- output not shown: it is long -->
```python
print("long")
```

<!-- not run: it needs a server -->
```python
connect()
```
"""


def test_a_typed_output_is_noticed_and_put_right() -> None:
    """A page cannot say what its code does not print."""
    blocks = find_blocks(PAGE)
    wrong = [disagreement(*pair) for pair in zip(blocks, ["2\n", "", "long\n", ""], strict=True)]
    assert wrong[0] is not None
    assert "--- printed\n2\n--- shown\n3\n" in wrong[0]
    assert wrong[1:] == [None, None, None]
    written = with_outputs(PAGE, ["2\n", "", "long\n", ""])
    assert written == PAGE.replace("3\n", "2\n")


def test_the_outputs_of_a_page_are_of_one_run() -> None:
    """A page does not show two days as one."""
    page = PAGE.replace(
        "x = 5\n```", "x()\n```\n\n<!-- output -->\n```text\n2026-11-23 10:00Z\n```"
    )
    other = "2026-11-24 11:00Z\n"
    assert with_outputs(page, ["3\n", other, "long\n", ""]) == page
    assert other in with_outputs(page, ["2\n", other, "long\n", ""])


def test_a_block_that_begins_or_ends_to_print_is_noticed() -> None:
    """An output that is missing is as wrong as one that is too many."""
    blocks = find_blocks(PAGE)
    assert disagreement(blocks[1], "5\n")
    assert disagreement(blocks[0], "")
    longer = with_outputs(PAGE, ["", "5\n", "", ""])
    assert "```python\nprint(1 + 1)\n```\n\n```python\nx = 5\n```\n\n<!-- output -->" in longer
    assert with_outputs(longer, ["", "5\n", "", ""]) == longer


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("2026-11-23 13:31:07.5 WRITE", "2031-01-02 03:04:05 WRITE"),
        ("2026-11-23T13:31Z | 3", "2031-01-02T03:04Z | 3"),
        ("name  size\n----  --------\na     1.2 KiB", "name  size\n----  -----\na     900 bytes"),
        ("{'execution_time_ms': 12, 'n': 1}", "{'execution_time_ms': 7, 'n': 1}"),
        ("{'timestamp': 1795440667123}", "{'timestamp': 1995440667123}"),
        (f"part-0-{FIRST}.parquet", f"part-0-{SECOND}.parquet"),
    ],
)
def test_what_varies_is_compared_by_its_kind(shown: str, printed: str) -> None:
    """Moments, sizes, durations and ids are other ones in each run."""
    assert is_same(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("3 rows", "4 rows"),
        ("{'num_deleted_rows': 1}", "{'num_deleted_rows': 2}"),
        ("2026-11-23 13:31:07 WRITE", "2026-11-23 13:31:07 DELETE"),
        ("2026-11-23", "2026-11-24"),
        ("0.5", "0.25"),
        ("a\nb", "a"),
    ],
)
def test_what_does_not_vary_is_compared_to_the_letter(shown: str, printed: str) -> None:
    """Everything else is not forgiven."""
    assert not is_same(shown, printed)
