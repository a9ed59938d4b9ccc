"""pyarrow's kernels, with type hints for arrays and chunked arrays of any type.

pyarrow's stubs lack most kernels for arrays of any type, all kernels for a chunked array and a
Python scalar, and `arange`, `repeat` and `concat_batches`. So all modules import these from here.

The import of `pyarrow.compute` creates a Python function for each kernel, and would take a third of
deltalog's import time. So this module imports it when a kernel is called for the first time.
"""

from __future__ import annotations

import sys
from functools import lru_cache, partial
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

import pyarrow as pa

from deltalog._util.small_arrays import small_scalar

if TYPE_CHECKING:
    import pyarrow.compute as pc  # noqa: TID251  # only this module may import it
else:

    class _Kernels:
        """`pyarrow.compute`, which is imported when a kernel is called for the first time."""

        def __getattr__(self, name: str) -> Any:
            if name.islower() and _COMPUTE not in sys.modules:
                return partial(_call, name)
            found = getattr(import_module(_COMPUTE), name)
            if name in _WITH_CONSTANTS and "pandas" not in sys.modules:
                found = _with_constants(name, found)
            setattr(self, name, found)
            return found

    def _call(name: str, *values: Any, **options: Any) -> Any:
        import_module(_COMPUTE)
        return getattr(pc, name)(*values, **options)

    def _with_constants(name: str, kernel: Any) -> Any:
        """Return a kernel that converts numbers and strings; Arrow would import pandas for it."""
        if name == "fill_null":

            def converted(values: Any, constant: Any) -> Any:
                if type(constant) in _KINDS:
                    return pc.coalesce(values, small_scalar(constant, values.type))
                return kernel(values, constant)
        else:

            def converted(*values: Any) -> Any:
                return kernel(*[
                    _constant(type(value), value) if type(value) in _KINDS else value
                    for value in values
                ])  # fmt: skip

        def call(*values: Any, **options: Any) -> Any:
            if "pandas" in sys.modules:
                setattr(pc, name, kernel)
            elif not options:
                return converted(*values)
            return kernel(*values, **options)

        return call

    @lru_cache(maxsize=256)
    def _constant(kind: type, value: Any) -> Any:
        try:
            return small_scalar(value, _KINDS[kind])
        except (pa.ArrowException, ValueError, OverflowError):
            return value  # Arrow converts it, or raises its own error

    _KINDS = {bool: pa.bool_(), int: pa.int64(), str: pa.string()}
    # Further arguments of these kernels are values, not options.
    _WITH_CONSTANTS = frozenset({
        "add", "and_", "and_kleene", "binary_join_element_wise", "bit_wise_and", "bit_wise_or",
        "divide", "equal", "fill_null", "greater", "greater_equal", "if_else", "less", "less_equal",
        "multiply", "not_equal", "or_", "or_kleene", "shift_left", "shift_right", "subtract",
    })  # fmt: skip
    _COMPUTE = "pyarrow.compute"
    pc = _Kernels()

__all__ = ["FALSE", "TRUE", "Array", "Datum", "arrow", "compute", "exact_sum", "numbered", "pc"]

Array: TypeAlias = Any  # an array or a chunked array of any type
Datum: TypeAlias = Any  # an array, a chunked array or a scalar

compute: Final = cast("_Compute", pc)
arrow: Final = cast("_Arrow", pa)
TRUE, FALSE = (cast("pa.BooleanScalar", small_scalar(value, pa.bool_())) for value in (True, False))
_TOO_LARGE: Final = 2**63


def exact_sum(numbers: Array) -> int:
    """Return the exact sum of integers, which may have more than 64 bits; NULLs are skipped.

    Arrow's own sum overflows silently. The sum of no values is 0.
    """
    bounds = compute.min_max(numbers)
    most = max(abs(bounds[name].as_py() or 0) for name in ("min", "max"))
    if most * len(numbers) < _TOO_LARGE:
        return compute.sum(numbers).as_py() or 0
    return int(compute.sum(numbers.cast(pa.decimal128(38, 0))).as_py() or 0)


def numbered(columns: Sequence[pa.ChunkedArray[Any]]) -> pa.Table:
    """Return the columns as a table with numbers as column names."""
    return pa.Table.from_arrays(list(columns), [str(number) for number in range(len(columns))])


# These classes are only for type checkers, because pyarrow's classes have type parameters only in
# the stubs.
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    _Flat: TypeAlias = pa.Array[Any]
    _Chunked: TypeAlias = pa.ChunkedArray[Any]
    _Column: TypeAlias = _Flat | _Chunked
    _Mask: TypeAlias = pa.BooleanArray
    _ChunkedMask: TypeAlias = pa.ChunkedArray[pa.BooleanScalar]
    _Constant: TypeAlias = pa.Scalar[Any] | bool | int | float | str | bytes
    _Operand: TypeAlias = _Column | _Constant

    _P = ParamSpec("_P")
    _A_co = TypeVar("_A_co", bound=_Column, covariant=True)
    _C_co = TypeVar("_C_co", bound=_Column, covariant=True)
    _T = TypeVar("_T", bound=_Column)

    class _Kernel(Protocol[_P, _A_co, _C_co]):
        """A kernel that returns an array for an array, and a chunked array for a chunked array."""

        @overload
        def __call__(self, values: _Flat, /, *args: _P.args, **kwargs: _P.kwargs) -> _A_co: ...
        @overload
        def __call__(self, values: _Chunked, /, *args: _P.args, **kwargs: _P.kwargs) -> _C_co: ...
        @overload
        def __call__(
            self, values: pa.Scalar[Any], /, *args: _P.args, **kwargs: _P.kwargs
        ) -> Any: ...

    class _Pairwise(Protocol[_A_co, _C_co]):
        """A kernel with two arguments, which returns a chunked array if an argument is chunked."""

        @overload
        def __call__(self, x: _Chunked, y: _Operand, /) -> _C_co: ...
        @overload
        def __call__(self, x: _Operand, y: _Chunked, /) -> _C_co: ...
        @overload
        def __call__(self, x: _Flat, y: _Flat | _Constant, /) -> _A_co: ...
        @overload
        def __call__(self, x: _Flat | _Constant, y: _Flat, /) -> _A_co: ...
        @overload
        def __call__(self, x: _Constant, y: _Constant, /) -> pa.Scalar[Any]: ...

    class _Lookup(Protocol[_A_co, _C_co]):
        @overload
        def __call__(self, values: _Flat, /, value_set: _Column) -> _A_co: ...
        @overload
        def __call__(self, values: _Chunked, /, value_set: _Column) -> _C_co: ...

    _Test: TypeAlias = _Kernel[_P, _Mask, _ChunkedMask]
    _Map: TypeAlias = _Kernel[_P, _Flat, _Chunked]
    _Compare: TypeAlias = _Pairwise[_Mask, _ChunkedMask]
    _Arithmetic: TypeAlias = _Pairwise[_Flat, _Chunked]

    class _Compute(Protocol):
        InversePermutationOptions: type[Any]
        ScatterOptions: type[Any]
        abs: _Map[[]]
        add: _Arithmetic
        add_checked: _Arithmetic
        and_: _Compare
        ascii_ltrim: _Map[[str]]
        ascii_rtrim: _Map[[str]]
        bit_wise_and: _Arithmetic
        bit_wise_or: _Arithmetic
        cumulative_max: _Map[[]]
        cumulative_sum: _Map[[]]
        divide: _Arithmetic
        drop_null: _Map[[]]
        ends_with: _Test[[str]]
        equal: _Compare
        greater: _Compare
        greater_equal: _Compare
        index_in: _Lookup[pa.Int32Array, _Chunked]
        invert: _Test[[]]
        is_finite: _Test[[]]
        is_in: _Lookup[_Mask, _ChunkedMask]
        is_nan: _Test[[]]
        is_null: _Test[[]]
        is_valid: _Test[[]]
        less: _Compare
        less_equal: _Compare
        list_flatten: _Map[[]]
        list_parent_indices: _Map[[]]
        list_value_length: _Map[[]]
        local_timestamp: _Map[[]]
        match_substring_regex: _Test[[str]]
        multiply: _Arithmetic
        multiply_checked: _Arithmetic
        negate: _Map[[]]
        not_equal: _Compare
        or_: _Compare
        replace_substring: _Map[[str, str]]
        replace_substring_regex: _Map[[str, str]]
        replace_with_mask: _Map[[_Column, _Operand]]
        shift_left: _Arithmetic
        shift_right: _Arithmetic
        run_end_decode: _Map[[]]
        starts_with: _Test[[str]]
        struct_field: _Map[[str | int | list[int] | list[str]]]
        subtract: _Arithmetic
        unique: _Kernel[[], Any, Any]  # Any: in the stubs, the values may be None
        utf8_lower: _Map[[]]
        year: _Map[[]]

        def all(self, values: _Operand, /, *, min_count: int = 1) -> pa.BooleanScalar: ...
        def any(self, values: _Operand, /, *, min_count: int = 1) -> pa.BooleanScalar: ...
        def array_sort_indices(self, values: _Column, /) -> pa.UInt64Array: ...
        def assume_timezone(
            self, values: _T, /, timezone: str, *, ambiguous: str, nonexistent: str
        ) -> _T: ...
        def binary_join_element_wise(self, *texts: _Operand, null_handling: str = ...) -> Any: ...
        def call_function(self, name: str, values: Sequence[_Flat], options: Any) -> _Flat: ...
        def cast(self, values: _Operand, target_type: pa.DataType, *, safe: bool = True) -> Any: ...
        def coalesce(self, value: _T, /, *values: _Operand) -> _T: ...
        def count_distinct(self, values: _Column, /, mode: str) -> pa.Int64Scalar: ...
        def fill_null(self, values: _T, fill_value: Any) -> _T: ...
        def floor_temporal(self, values: _T, /, *, unit: str) -> _T: ...
        def if_else(self, condition: _Operand, yes: Any, no: Any, /) -> Any: ...
        def index(self, values: _Column, value: pa.Scalar[Any]) -> pa.Int64Scalar: ...
        def indices_nonzero(self, values: _Column, /) -> pa.UInt64Array: ...
        def max(self, values: _Column, /) -> pa.Scalar[Any]: ...
        def max_element_wise(
            self, value: _T, /, *values: _Operand, skip_nulls: bool = ...
        ) -> _T: ...
        def min(self, values: _Column, /) -> pa.Scalar[Any]: ...
        def min_max(self, values: _Operand, /) -> Any: ...
        def rank(self, values: _Column, /, *, tiebreaker: str) -> pa.UInt64Array: ...
        def run_end_encode(self, values: _Flat, /) -> Any: ...
        def select_k_unstable(
            self, values: _Column | pa.Table, /, k: int, sort_keys: Sequence[tuple[str, str]]
        ) -> Any: ...
        def sort_indices(
            self, values: _Column | pa.Table, /, sort_keys: Sequence[tuple[str, str]] = ()
        ) -> pa.UInt64Array: ...
        def sum(self, values: _Column, /) -> pa.Scalar[Any]: ...
        def utf8_slice_codeunits(
            self, texts: _Operand, start: int, stop: int | None = ...
        ) -> Any: ...
        def value_counts(self, values: _Column, /) -> Any: ...

    class _Arrow(Protocol):
        def arange(self, start: int, stop: int, step: int = 1) -> pa.Int64Array: ...
        def chunked_array(self, arrays: Sequence[_Flat], type: pa.DataType) -> _Chunked: ...  # noqa: A002
        def concat_batches(self, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch: ...
        def map_(self, key: Any, item: Any) -> pa.DataType: ...
        def nulls(self, size: int, type: pa.DataType) -> _Flat: ...  # noqa: A002
        def repeat(self, value: pa.Scalar[Any], size: int) -> Any: ...
        def table(self, columns: Mapping[str, _Column]) -> pa.Table: ...
