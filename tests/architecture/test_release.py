"""What looks at a release before it is published: `.ci/check_dist.py`."""

from __future__ import annotations

import email
import importlib.util
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hatchling.build import prepare_metadata_for_build_wheel

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checker() -> Any:
    spec = importlib.util.spec_from_file_location("check_dist", ROOT / ".ci" / "check_dist.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _build(dist: Path, checker: Any, *, without: str = "", beside: str = "") -> None:
    """Archives as hatchling makes them, of empty files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    stem = f"deltalog-{project['version']}"
    packaged = checker._packaged() - {without}
    facts = ["METADATA", "RECORD", "WHEEL", "licenses/LICENSE"]
    with zipfile.ZipFile(dist / f"{stem}-py3-none-any.whl", "w") as wheel:
        for name in [*packaged, *(f"{stem}.dist-info/{fact}" for fact in facts), beside]:
            if name:
                wheel.writestr(name, b"")
        command = "[console_scripts]\ndeltalog = deltalog.__main__:main\n"
        wheel.writestr(f"{stem}.dist-info/entry_points.txt", command)
    with tarfile.open(dist / f"{stem}.tar.gz", "w:gz", compresslevel=1) as source:
        for name in ["pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"]:
            source.add(ROOT / name, f"{stem}/{name}")
        for name in packaged:
            source.add(ROOT / "src" / name, f"{stem}/src/{name}")


def test_what_is_whole_passes(checker: Any, tmp_path: Path) -> None:
    _build(tmp_path, checker)
    assert checker.main(tmp_path) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"without": "deltalog/py.typed"}, "the wheel lacks deltalog/py.typed: checkers"),
        (
            {"without": "deltalog/_util/paths.py"},
            "the source archive lacks src/deltalog/_util",
        ),
        ({"beside": "tests/conftest.py"}, "the wheel holds tests/conftest.py"),
    ],
)
def test_what_is_missing_or_too_much_is_named(
    change: dict[str, str],
    message: str,
    checker: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _build(tmp_path, checker, **change)
    assert checker.main(tmp_path) == 1
    assert message in capsys.readouterr().err


def test_a_leftover_of_another_version_is_named(
    checker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _build(tmp_path, checker)
    (tmp_path / "deltalog-0.0.1.tar.gz").touch()
    assert checker.main(tmp_path) == 1
    assert "deltalog-0.0.1.tar.gz is no part of" in capsys.readouterr().err


def _metadata(directory: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], str]:
    """The URLs and the README of the package's metadata, as hatchling writes them."""
    monkeypatch.chdir(ROOT)
    name = prepare_metadata_for_build_wheel(str(directory))
    found = email.message_from_bytes((directory / name / "METADATA").read_bytes())
    return found.get_all("Project-URL", []), str(found.get_payload())


def test_links_of_the_published_readme_lead_to_the_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "some/fork")
    monkeypatch.setenv("GITHUB_REF_NAME", "v1.2.3")
    urls, readme = _metadata(tmp_path, monkeypatch)
    links = re.findall(r"\]\(([^)#\s]+)", readme)
    assert "https://example.org/some/fork/blob/v1.2.3/docs/features.md" in links
    assert not [link for link in links if not link.startswith("https://")]
    for image in re.findall(r"!\[[^\]]*\]\(([^)\s]+)", readme):
        assert image.startswith("https://example.org/some/fork/raw/v1.2.3/")
    assert urls == [
        "Source, https://example.org/some/fork",
        "Issues, https://example.org/some/fork/issues",
    ]


def test_elsewhere_the_readme_is_packaged_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    urls, readme = _metadata(tmp_path, monkeypatch)
    assert "](docs/features.md)" in readme
    assert urls == []
