"""Which modules have no examples to run: those of an engine that this environment lacks."""

from __future__ import annotations

from importlib.util import find_spec

_DAFT = ["daft.py", "integrations/daft.py"]
collect_ignore = [] if find_spec("daft") else [f"deltalog/{name}" for name in _DAFT]
