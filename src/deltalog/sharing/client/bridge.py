"""Coroutines run from plain functions, in fsspec's event loop.

Its thread is the one that every asynchronous fsspec file system of the process uses already; a
forked child makes its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import fsspec.asyn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from concurrent.futures import Future

P = ParamSpec("P")
T = TypeVar("T")


def start(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Let a coroutine run; its result is to be asked for later."""
    return asyncio.run_coroutine_threadsafe(coroutine, fsspec.asyn.get_loop())


def run(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the coroutine function gives; its exception is raised here."""
    return cast("T", fsspec.asyn.sync(fsspec.asyn.get_loop(), function, *args, **kwargs))
