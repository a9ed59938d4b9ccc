"""Whether what was built holds what it should and nothing else: `python .ci/check_dist.py dist`.

Needs the standard library alone, so that the release workflow runs it beside hashed tools.
"""

from __future__ import annotations

import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 3_000_000  # of the wheel; it is text


def main(dist: Path) -> int:
    """Print what is wrong; 1 if anything is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    stem = f"{project['name']}-{project['version']}"
    wheel, source = dist / f"{stem}-py3-none-any.whl", dist / f"{stem}.tar.gz"
    found = {path.name for path in dist.iterdir()}
    wrong = [f"{name} is no part of {stem}" for name in found - {wheel.name, source.name}]
    if missing := {wheel.name, source.name} - found:
        wrong += [f"{name} was not built" for name in missing]
    else:
        wrong += _of_wheel(wheel, stem) + _of_source(source, stem)
    for one in wrong:
        sys.stderr.write(f"{one}\n")
    if not wrong:
        sys.stdout.write(f"{wheel.name}: {wheel.stat().st_size:,} bytes, as it should be\n")
    return bool(wrong)


def _packaged() -> set[str]:
    """What belongs into the wheel: every file below `src` that git would not ignore."""
    source = ROOT / "src"
    return {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }


def _of_wheel(wheel: Path, stem: str) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        entry_points = archive.read(f"{stem}.dist-info/entry_points.txt").decode()
    facts = {name for name in names if name.startswith(f"{stem}.dist-info/")}
    code, packaged = names - facts, _packaged()
    wrong = [f"the wheel lacks {name}" for name in sorted(packaged - code)]
    wrong += [f"the wheel holds {name}, which is not in src" for name in sorted(code - packaged)]
    wrong += [
        f"the wheel lacks {name}"
        for name in ("METADATA", "RECORD", "WHEEL", "licenses/LICENSE")
        if f"{stem}.dist-info/{name}" not in facts
    ]
    if "deltalog/py.typed" not in names:
        wrong.append("the wheel lacks deltalog/py.typed: checkers would not see its types")
    if "deltalog = deltalog.__main__:main" not in entry_points:
        wrong.append("the wheel lacks the command deltalog")
    if wheel.stat().st_size > MOST_BYTES:
        wrong.append(f"the wheel has {wheel.stat().st_size:,} bytes, more than {MOST_BYTES:,}")
    return wrong


def _of_source(source: Path, stem: str) -> list[str]:
    with tarfile.open(source) as archive:
        names = {member.name for member in archive.getmembers() if member.isfile()}
    needed = ["pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"]
    needed += [f"src/{name}" for name in _packaged()]
    wrong = [f"the source archive lacks {name}" for name in needed if f"{stem}/{name}" not in names]
    built = [name for name in names if "/_build/" in name or "__pycache__" in name]
    return wrong + [f"the source archive holds {name}" for name in built]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
