"""The cases of Daft pass with the real Daft, which has an environment of its own.

Its newest release needs an older pyarrow than the other tests, so that no environment has both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow("Daft has an environment of its own")

ROOT = Path(__file__).resolve().parents[2]


def _python() -> str:
    """The interpreter of an environment with Daft."""
    if find_spec("daft") is not None:
        return sys.executable
    python = Path(os.environ.get("DELTALOG_DAFT") or ROOT / ".cache" / "daft" / "bin" / "python")
    if not python.exists():
        pytest.skip("there is no environment with Daft: make .cache/daft/.ready")
    return str(python)


def test_the_cases_pass_in_daft_s_environment() -> None:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    command = [_python(), "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "tests/interop/cases_daft.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
