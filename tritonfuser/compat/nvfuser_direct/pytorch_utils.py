"""``nvfuser_direct.pytorch_utils``: dtypes of torch and Python as DataTypes, and test helpers."""

from __future__ import annotations

import functools
import gc
import unittest
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch

from ... import devices
from ...dtypes import DataType, from_torch, of_python
from ...errors import ArgumentError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_PYTHON: dict[Any, DataType] = {
    bool: DataType.Bool,
    int: DataType.Int,
    float: DataType.Double,
    complex: DataType.ComplexDouble,
}


def torch_dtype_to_nvfuser_dtype(dtype: torch.dtype | type) -> DataType:
    """The DataType of a torch dtype, or of bool, int, float or complex.

    Raises
    ------
    TypeError
        There is none.
    """
    try:
        return _PYTHON[dtype] if isinstance(dtype, type) else from_torch(dtype)
    except (KeyError, TypeError):
        raise ArgumentError(
            f"Translating from {dtype} to a Fusion data type is not supported"
        ) from None


def python_scalar_to_nvfuser_dtype(number: bool | int | float | complex) -> DataType:
    """The DataType of a Python number.

    Raises
    ------
    TypeError
        It is no number.
    """
    if not isinstance(number, bool | int | float | complex):
        raise ArgumentError(f"Unsupported dtype: {type(number)}")
    return of_python(number)


def retry_on_oom_or_skip_test(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Run a test once more when the GPU's memory ran out, then skip it."""

    @functools.wraps(function)
    def wrapper(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except torch.OutOfMemoryError:
            gc.collect()
            torch.cuda.empty_cache()
        try:
            return function(*args, **kwargs)
        except torch.OutOfMemoryError as error:
            raise unittest.SkipTest(f"out of memory: {error}") from error

    return wrapper


def get_device_properties() -> dict[str, Any]:
    """Facts of the current GPU, under nvFuser's keys.

    Returns
    -------
    dict
        Units are in the names: ``_bytes``, ``_khz``, ``_bps`` and ``_gbps`` for bytes and 1e9 bytes
        a second. The bandwidth is that of a copy (``DeviceProperties.bandwidth_bytes_per_s``).
        Clocks are 0 where torch does not report them.
    """
    found = torch.cuda.get_device_properties(torch.cuda.current_device())
    facts = devices.from_torch(found)
    return {
        "gpu_name": found.name,
        "gpu_compute_capability_major": found.major,
        "gpu_compute_capability_minor": found.minor,
        "gpu_gmem_bytes": found.total_memory,
        "gpu_sm_count": facts.sm_count,
        "gpu_l2_bytes": facts.l2_bytes,
        "gpu_clock_rate_khz": getattr(found, "clock_rate", 0),
        "gpu_mem_clock_khz": getattr(found, "memory_clock_rate", 0),
        "gpu_peak_bandwidth_bps": facts.bandwidth_bytes_per_s,
        "gpu_peak_bandwidth_gbps": facts.bandwidth_bytes_per_s * 1e-9,
    }


def __getattr__(name: str) -> Any:
    """``DEVICE_PROPERTIES``: ``get_device_properties()``; None without a GPU."""
    if name != "DEVICE_PROPERTIES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return get_device_properties() if torch.cuda.is_available() else None
