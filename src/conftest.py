"""Which modules have no examples to run: those of an engine that this environment lacks."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("daft") else ["deltalog/daft.py", "deltalog/integrations/daft.py"]
