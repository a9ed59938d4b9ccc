"""How PySpark sends objects to its Python workers."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

from pyspark.serializers import CloudPickleSerializer

Sent = TypeVar("Sent")
_serializer: Any = CloudPickleSerializer()  # it has no types


def packed(what: object) -> bytes:
    """An object as it goes to a worker."""
    data: bytes = _serializer.dumps(what)
    return data


def sent(what: Sent) -> Sent:
    """An object as a worker gets it."""
    found: Sent = pickle.loads(packed(what))
    return found
