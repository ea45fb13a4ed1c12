"""Input signatures as plain data, and strictly back."""

from __future__ import annotations

from typing import Any

from ...ir import Const
from ...lowering.passes.concretize import InputSignature, InputSpec, ScalarSpec, TensorSpec
from . import plain_data
from .operands import const_data, const_from

_TENSOR = ("sizes", "strides", "dtype", "aligned", "is_cpu_scalar")


def signature_data(signature: InputSignature) -> list[dict[str, Any]]:
    """A dict for each input: of a tensor its sizes and strides, of a number its dtype."""
    return [_spec_data(spec) for spec in signature]


def _spec_data(spec: InputSpec) -> dict[str, Any]:
    if isinstance(spec, TensorSpec):
        return {
            "sizes": [*spec.sizes],
            "strides": [*spec.strides],
            "dtype": spec.dtype.name,
            "aligned": spec.aligned,
            "is_cpu_scalar": spec.is_cpu_scalar,
        }
    if spec.value is None:
        return {"dtype": spec.dtype.name}
    return {"dtype": spec.dtype.name, "value": const_data(Const(spec.value, spec.dtype))}


def signature_from(given: Any, where: str) -> InputSignature:
    """The signature that ``signature_data`` described.

    Raises
    ------
    DefinitionError
        It is something else; the error has the path, which begins with ``where``.
    """
    found = enumerate(plain_data.items(given, where))
    return tuple(_spec_from(item, f"{where}[{place}]") for place, item in found)


def _spec_from(given: Any, where: str) -> InputSpec:
    if not isinstance(given, dict) or "sizes" not in given:
        data = plain_data.record(given, where, ["dtype"], ["value"])
        dtype = plain_data.dtype(data["dtype"], f"{where}.dtype")
        if "value" not in data:
            return ScalarSpec(dtype)
        return ScalarSpec(dtype, const_from(data["value"], f"{where}.value").value)
    data = plain_data.record(given, where, _TENSOR)
    sizes = _numbers(data["sizes"], f"{where}.sizes")
    strides = _numbers(data["strides"], f"{where}.strides")
    if len(sizes) != len(strides):
        plain_data.refuse(f"{where}.strides", f"{len(sizes)} numbers", given["strides"])
    return TensorSpec(
        sizes,
        strides,
        plain_data.dtype(data["dtype"], f"{where}.dtype"),
        plain_data.flag(data["aligned"], f"{where}.aligned"),
        plain_data.flag(data["is_cpu_scalar"], f"{where}.is_cpu_scalar"),
    )


def _numbers(given: Any, where: str) -> tuple[int, ...]:
    found = tuple(plain_data.integer(item, where) for item in plain_data.items(given, where))
    if any(number < 0 for number in found):
        plain_data.refuse(where, "numbers that are not negative", given)
    return found
