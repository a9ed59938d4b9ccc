"""pyarrow's compute kernels under one type.

The stubs of pyarrow know few kernels over arrays of any type, none over chunked arrays beside a
Python scalar, and not `arange`, `repeat` and `concat_batches`. So callers take kernels from here.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["arrow", "compute"]

compute: Final[Any] = pc
arrow: Final[Any] = pa
