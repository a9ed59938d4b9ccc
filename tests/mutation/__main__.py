"""Change the source in small ways, and say which changes no test notices.

`make mutants` draws some of each package that decides about rows, files and rights. Survivors that
change nothing anybody can see are listed in `equivalent.toml`, each with its reason.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.mutation.equivalents import equivalents, identity
from tests.mutation.operators import Mutant, mutants_of
from tests.mutation.running import PACKAGE, ROOT, MutatedTree, Outcome

PACKAGES: Final = (
    "data/scan",
    "data/write",
    "expressions",
    "log",
    "operations",
    "protocol/actions",
    "protocol/deletion_vectors",
    "protocol/features",
    "protocol/partition_values",
    "protocol/stats",
    "sharing/server",
    "storage",
    "transaction",
)


def main(arguments: Sequence[str]) -> int:
    """Test the mutants that the arguments ask for; return 1 if one survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--seed", default="0", help="draws the same mutants again")
    parser.add_argument("--per-package", type=int, default=20, help="how many of each package")
    parser.add_argument(
        "--packages",
        nargs="*",
        default=PACKAGES,
        help="packages (log, sharing/server), modules (log/history.py) or lines (…:97)",
    )
    parser.add_argument(
        "--second-line-seconds",
        type=float,
        default=180,
        help="how long a mutant that its module's own tests let pass meets others",
    )
    asked = parser.parse_args(arguments)
    counts = {}
    with tempfile.TemporaryDirectory() as directory:
        tree = MutatedTree(Path(directory), second_line_seconds=asked.second_line_seconds)
        known = equivalents()
        for package in asked.packages:
            mutants = [
                mutant for mutant in _mutants(tree, package) if identity(mutant) not in known
            ]
            drawn = random.Random(f"{asked.seed}:{package}").sample(
                mutants, min(asked.per_package, len(mutants))
            )
            counts[package] = Counter(_outcome(tree, mutant) for mutant in drawn)
    _report(counts)
    return int(any(count[Outcome.SURVIVED] for count in counts.values()))


def _mutants(tree: MutatedTree, asked: str) -> list[Mutant]:
    name, _, line = asked.partition(":")
    path = ROOT / PACKAGE / name
    modules = [path] if path.is_file() else sorted(path.rglob("*.py"))
    if not modules:
        raise SystemExit(f"there is no package or module {name!r} in {PACKAGE}")
    return [
        mutant
        for module in modules
        for name in [module.relative_to(ROOT / PACKAGE).as_posix()]
        if module.name != "__init__.py"
        for mutant in mutants_of(name, tree.read(name))
        if not line or mutant.line == int(line)
    ]


def _outcome(tree: MutatedTree, mutant: Mutant) -> Outcome:
    """Test one mutant, and say what became of it."""
    began = time.monotonic()
    outcome = tree.outcome(mutant)
    took = time.monotonic() - began
    print(f"{outcome:8} {took:5.1f} s  {mutant.module}:{mutant.line}  {mutant.function}")
    print(f"    - {mutant.was}\n    + {mutant.now}", flush=True)
    return outcome


def _report(counts: dict[str, Counter[Outcome]]) -> None:
    print(f"\n{'package':24}" + "".join(f"{outcome:>10}" for outcome in Outcome))
    for package, count in counts.items():
        print(f"{package:24}" + "".join(f"{count[outcome]:>10}" for outcome in Outcome))
    total = sum(counts.values(), Counter())
    tested = total.total()
    if tested:
        noticed = tested - total[Outcome.SURVIVED]
        print(f"\n{noticed} of {tested} mutants were noticed ({noticed / tested:.1%})")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
