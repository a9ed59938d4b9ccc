"""Send functions to Python workers, and check that workers have the driver's version of deltalog.

A function is pickled in an envelope: the pickled content, the driver's version of deltalog, and the
code that opens the envelope. That code does not import deltalog. So it reports a missing or
different version of deltalog clearly; otherwise unpickling would fail with an obscure error.

Protocol: none
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.cloudpickle import Pickler
from pyspark.errors import PySparkException

from deltalog._util.version import __version__
from deltalog.errors import AccessDeniedError
from deltalog.spark.session.environment import WorkerMismatchError
from deltalog.storage.options import pickled_for_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

CHECK_WORKERS: Final = "spark.deltalog.checkWorkers"
"""Session setting. If it is `false`, deltalog does not run the job that checks Python workers."""
_PROBES: Final = 4
"""The number of tasks of the job that checks Python workers. There are several tasks, because Spark
distributes them over several executors."""
_COMPILED: Final = ("pyarrow", "orjson", "pyroaring")
"""The packages with compiled code that deltalog needs, and which Python cannot load from a zip."""
_NEEDED: Final = ("deltalog", *_COMPILED, "fsspec", "sqlglot")
_MISMATCH: Final = re.compile(r"deltalog cannot work on this Python worker: ([^\n]+)")
_MISSING: Final = re.compile(rf"No module named '?((?:{'|'.join(_NEEDED)})\b[\w.]*)")
_TOO_OLD: Final = re.compile(r"(PyArrow >= \S+ must be installed; however, [^\n]+)")
_UNPLANNED: Final = re.compile(r"No module named '?deltalog|DATA_SOURCE_NOT_FOUND.*deltalog")
_OTHER_PYTHON: Final = re.compile(
    r"Python in worker has different version: (\S+) than that in driver: (\S+),"
)
_DENIED: Final = re.compile(r"AccessDeniedError: (a Python worker of Spark [^\n]+)")
_checked: set[str] = set()
_without: set[str] = set()
"""The applications whose workers lack deltalog, as far as `have_deltalog` has found out."""


class InEnvelope:
    """Base class of objects that are sent to workers in an envelope.

    `__getstate__` of a subclass returns the content of the envelope.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the object as a call of the function that opens the envelope.

        That function is nested, so that PySpark's cloudpickle sends its code.
        """
        content = pickled_for_tasks((type(self), self.__getstate__()), Pickler)
        return _opener(), (__version__, _COMPILED, content)

    def pickled(self) -> bytes:
        """Return the object as PySpark sends it to workers; `pickle.loads` opens it there."""
        data: bytes = cloudpickle.dumps(self)  # type: ignore[no-untyped-call]  # it has no types
        return data


class _SentFunction(InEnvelope):
    """A function that a task calls."""

    def __init__(self, do: Callable[[Any], Any]) -> None:
        self._do = do

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Call the function on a worker."""
        with naming_credentials():
            yield from self._do(batches)


def mapped(
    frame: DataFrame,
    work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: Any,
    *,
    what: str = "",
) -> DataFrame:
    """Return `frame.mapInArrow(work, schema)`, where `work` needs deltalog on the workers.

    Args:
        frame: the input of the tasks.
        work: the function, which maps batches to batches.
        schema: the schema of the result.
        what: the operator's name in Spark's plan; empty for the default.
    """
    names = frame.columns
    if any("." in name or "`" in name for name in names):
        # `mapInArrow` looks up columns by unquoted names, which fails for names such as `a.b`.
        frame = frame.toDF(*(f"c{number}" for number in range(len(names))))
        sent = _SentFunction(_naming(names, work))
    else:
        sent = _SentFunction(work)

    def on_worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from sent(batches)

    if what:
        on_worker.__name__ = what  # Spark shows this name in its plan
    return frame.mapInArrow(on_worker, schema)


def _naming(
    names: Sequence[str], work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from work(batch.rename_columns(list(names)) for batch in batches)

    return named


def check_workers(spark: SparkSession) -> None:
    """Check, once per application, that workers have the driver's version of deltalog.

    Executors that start later are not checked, but their tasks report a mismatch.

    Raises:
        WorkerMismatchError: a worker has no deltalog, or another version of it.

    Cost: one small job, at most once per application; no job if `CHECK_WORKERS` is `false`.
    """
    key = application_of(spark)
    if key in _checked or spark.conf.get(CHECK_WORKERS, "true") == "false":
        return
    numbers = spark.range(0, _PROBES, 1, _PROBES)
    with naming_workers(spark):
        mapped(numbers, _nothing, "id long").collect()
    _checked.add(key)


def have_deltalog(spark: SparkSession) -> bool:
    """Return whether the workers have the driver's version of deltalog.

    False if it is unknown, because `CHECK_WORKERS` is `false`.

    Cost: see `check_workers`.
    """
    key = application_of(spark)
    if key in _without or spark.conf.get(CHECK_WORKERS, "true") == "false":
        return False
    try:
        check_workers(spark)
    except WorkerMismatchError:
        _without.add(key)
        return False
    return True


@contextmanager
def naming_workers(spark: SparkSession) -> Iterator[None]:
    """Raise a clear error if a job of this block fails because of the setup of a worker.

    Args:
        spark: the session of the job.

    Raises:
        WorkerMismatchError: a worker lacks deltalog or another module, or has another version of
            deltalog or Python. Spark's error is the cause.
        AccessDeniedError: a worker has no valid credentials; see `naming_credentials`.
    """
    try:
        yield
    except Exception as error:
        text = str(error)
        found = _MISMATCH.search(text)
        if found is not None:
            raise WorkerMismatchError(
                f"deltalog cannot work on a Python worker: {found[1]}{_on_local_python(spark)}"
            ) from error
        if (missing := _MISSING.search(text)) is not None:
            raise WorkerMismatchError(
                f"a Python worker has no {missing[1]}: install deltalog {__version__} in the "
                f"Python of every worker, as on the driver{_on_local_python(spark)}"
            ) from error
        if (old := _TOO_OLD.search(text)) is not None:
            raise WorkerMismatchError(
                f"deltalog cannot work on a Python worker: {old[1]}; install deltalog "
                f"{__version__} in the Python of every worker, as on the driver"
                f"{_on_local_python(spark)}"
            ) from error
        if (versions := _OTHER_PYTHON.search(text)) is not None:
            raise WorkerMismatchError(
                f"a Python worker has Python {versions[1]}, but the driver has Python "
                f"{versions[2]}: use the same minor version on both, and set PYSPARK_PYTHON to "
                "the Python of the workers"
            ) from error
        if (denied := _DENIED.search(text)) is not None:
            raise AccessDeniedError(denied[1]) from error
        raise


def _on_local_python(spark: SparkSession) -> str:
    """Return the remedy if a local session starts another Python than this one, else nothing.

    This is so if the driver runs in a virtual environment that is not activated.
    """
    context = _context_of(spark)
    if context is None or not _LOCAL.match(context.master) or os.environ.get("PYSPARK_PYTHON"):
        return ""
    started = shutil.which(context.pythonExec) or context.pythonExec
    if started == sys.executable:
        return ""
    return (
        f"; this local session starts {started}: activate the virtual environment, or set "
        f"os.environ['PYSPARK_PYTHON'] = {sys.executable!r} before the session is made"
    )


@contextmanager
def naming_credentials() -> Iterator[None]:
    """Raise an error that states the remedy if the store rejects this Python worker.

    Raises:
        AccessDeniedError: the worker has no credentials for the store, or invalid ones.
    """
    try:
        yield
    except AccessDeniedError as error:
        # The message must be a single line, because the driver searches Spark's error for it.
        reason = " ".join(str(error).split())
        raise AccessDeniedError(
            f"a Python worker of Spark {reason}; pass storage_options, which are sent with each "
            "task, or set the credentials in the environment of every executor "
            "(spark.executorEnv.…)"
        ) from error


# --- the processes in which Spark runs the formats


_LOCAL: Final = re.compile(r"local(\[|$)")
_REMEDY: Final = (
    "unpack the workers' environment in the driver's working directory, and set PYSPARK_PYTHON and "
    "PYSPARK_DRIVER_PYTHON to one path of Python that exists on the driver and on every executor"
)


def objection_to_source(spark: SparkSession, *, is_registered: bool = True) -> str | None:
    """Return the reason why Spark cannot run deltalog's Python data sources; None if it may.

    Spark starts one Python for all processes of a data source: on the driver to plan, and on
    executors to read and write.

    Args:
        spark: the session. Nothing is known about the processes of a remote session.
        is_registered: whether `register` has registered the data source. Spark then starts the
            workers' Python, else the driver's.
    """
    context = _context_of(spark)
    if context is None or _LOCAL.match(context.master):
        return None
    python = context.pythonExec
    if is_registered:
        if shutil.which(python) is not None:
            return None
        return f"Spark plans the format with the workers' Python {python!r}, which the driver lacks"
    here = os.environ.get("PYSPARK_DRIVER_PYTHON", python)
    return None if here == python else _starts_here(here, python)


def check_source(spark: SparkSession, *, is_registered: bool = True) -> None:
    """Check that Spark can run deltalog's data sources; see `objection_to_source`.

    Raises:
        WorkerMismatchError: Spark cannot, or the workers cannot; see `check_workers`.

    Cost: see `check_workers`.
    """
    objection = objection_to_source(spark, is_registered=is_registered)
    if objection is not None:
        raise WorkerMismatchError(f"cannot use deltalog's formats: {objection}; {_REMEDY}")
    check_workers(spark)


def check_planned_here() -> None:
    """Check, in the process that plans a data source, that executors can start the same Python.

    Raises:
        WorkerMismatchError: executors have another Python, which this machine lacks.
    """
    python = os.environ.get("PYSPARK_PYTHON")
    if python and shutil.which(python) is None:
        objection = _starts_here(sys.executable, python)
        raise WorkerMismatchError(f"cannot use deltalog's formats: {objection}; {_REMEDY}")


def _starts_here(here: str, python: str) -> str:
    return (
        f"executors would start the driver's Python {here!r}, not PYSPARK_PYTHON={python!r}, "
        "because deltalog.spark.register has not registered the format"
    )


def loaded(load: Callable[[], DataFrame]) -> DataFrame:
    """Return a frame that one of deltalog's data sources reads.

    Args:
        load: a function that returns the frame.

    Raises:
        WorkerMismatchError: see `naming_planner`.
    """
    with naming_planner():
        frame = load()
        frame.schema  # noqa: B018  # makes Spark Connect plan the format now
    return frame


@contextmanager
def naming_planner() -> Iterator[None]:
    """Raise a clear error if Spark cannot plan one of deltalog's formats in this block.

    Raises:
        WorkerMismatchError: the Python that plans formats, which is the server's with Spark
            Connect, has no deltalog.
    """
    try:
        yield
    except Exception as error:
        if _UNPLANNED.search(str(error)) is None:
            raise
        raise WorkerMismatchError(
            "cannot use deltalog's formats: the Python with which Spark plans them has no "
            f"deltalog; install deltalog {__version__} in the Python of the Spark Connect server, "
            "or use deltalog.spark.read and deltalog.spark.write"
        ) from error


def _context_of(spark: SparkSession) -> Any:
    try:
        return spark.sparkContext
    except (AttributeError, PySparkException):  # a remote session has no Spark context
        return None


def application_of(spark: SparkSession) -> str:
    """Return an id of the session's application; of the session if it is remote."""
    context = _context_of(spark)
    if context is None:
        return str(getattr(spark, "session_id", id(spark)))
    return str(context.applicationId)


def _nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, 0)


def _opener() -> Callable[[str, tuple[str, ...], bytes], Any]:
    """Return the function that opens an envelope.

    The function is nested, so cloudpickle sends its code instead of a reference to this module.
    """

    def open_envelope(version: str, compiled: tuple[str, ...], content: bytes) -> Any:
        import pickle  # noqa: PLC0415  # imported on the worker, which may lack this module
        import sys  # noqa: PLC0415
        from importlib import import_module  # noqa: PLC0415

        # The messages must be single lines, because the driver searches Spark's error for them.
        cannot = "deltalog cannot work on this Python worker"
        try:
            found = import_module("deltalog").__version__
        except ImportError as error:
            found = f"none ({error})"
        if found != version:
            raise RuntimeError(
                f"{cannot}: expected deltalog {version}, as the driver has, found {found} in "
                f"{sys.executable}; install one version on the driver and on every worker"
            )
        try:
            for name in compiled:
                import_module(name)
        except ImportError as error:
            where = import_module("deltalog").__file__
            raise RuntimeError(
                f"{cannot}: deltalog, found in {where}, needs {name} ({error}); addPyFile and "
                f"--py-files do not ship compiled packages, so install deltalog in "
                f"{sys.executable}, or ship an environment with --archives"
            ) from error
        kind, state = pickle.loads(content)  # noqa: S301  # the driver wrote these bytes
        one = kind.__new__(kind)
        one.__dict__.update(state)
        return one

    return open_envelope
