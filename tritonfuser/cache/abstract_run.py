"""A run on fake or meta tensors: outputs with shapes, strides, dtypes and aliases, without data."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .. import devices
from ..device import DeviceProperties
from ..errors import InputError
from ..ir import Fusion, Value
from ..lowering.access.aliases import BufferView
from ..lowering.lowered import Lowered
from ..lowering.pipeline import lower
from ..lowering.run_options import RunOptions
from .calls.diagnosis import InputMismatch, explain_mismatch
from .keys.run_device import device_of
from .keys.signature import key_maker, signature
from .keys.storage import is_abstract
from .lru import LRU
from .plan.copies import put

ABSENT_GPU = "sm_90"
"""The architecture that fake tensors on a GPU are lowered for where torch has no GPU."""

Tensors = dict[Value, torch.Tensor]


class AbstractRun:
    """Runs a definition on fake or meta inputs: it is lowered, and nothing is compiled.

    Parameters
    ----------
    fusion : Fusion
        The recorded definition.
    max_kept : int
        Signatures of inputs whose segments are kept.
    """

    def __init__(self, fusion: Fusion, max_kept: int) -> None:
        self._fusion = fusion
        self._key = key_maker(fusion, abstract=True)
        self._lowered: LRU[Any, Lowered] = LRU(max_kept)

    def __call__(self, inputs: Sequence[Any], options: RunOptions) -> list[torch.Tensor]:
        """The outputs, without data, that are not hidden.

        Raises
        ------
        InputError
            The inputs do not fit the definition, or tensors with memory are among them.
        """
        fusion = self._fusion
        error = explain_mismatch(fusion, inputs, abstract=True) or _mixed(fusion, inputs)
        if error is not None:
            raise error
        where = device_of(inputs, options.device)
        lowered = self._lowered.get_or_make(
            (self._key(inputs), where, options),
            lambda: lower(fusion, signature(fusion, inputs, where), _properties(where), options),
        )
        return abstract_outputs(fusion, lowered, inputs, where)

    def clear(self) -> None:
        """Drop what is kept."""
        self._lowered.clear()


def abstract_outputs(
    fusion: Fusion, lowered: Lowered, inputs: Sequence[Any], device: torch.device
) -> list[torch.Tensor]:
    """What a run returns for fake or meta inputs.

    Buffers are fake where the inputs are, of the same FakeTensorMode, else meta. An output that
    is a view of an input is a view of the tensor given for it. An output that is written into an
    input is copied there, and that input is returned.

    Parameters
    ----------
    fusion : Fusion
        The recorded definition.
    lowered : Lowered
        Its segments for inputs of this signature.
    inputs : sequence
        Flat inputs that fit.
    device : torch.device
        Where the run would be; outputs for meta inputs are on the meta device.

    Returns
    -------
    list of Tensor
        The outputs that are not hidden.
    """
    fakes = [given for given in inputs if isinstance(given, FakeTensor)]
    where = torch.device("meta") if _all_meta(inputs) else device
    with fakes[0].fake_mode if fakes else contextlib.nullcontext():
        return _outputs(fusion, lowered, inputs, where)


def _outputs(
    fusion: Fusion, lowered: Lowered, inputs: Sequence[Any], where: torch.device
) -> list[torch.Tensor]:
    segmented = lowered.segmented
    pairs = [*zip(segmented.fusion.inputs, inputs, strict=False)][: len(fusion.inputs)]
    given: Tensors = {value: tensor for value, tensor in pairs if value.is_tensor}
    for part in lowered.parts:
        if part.value.is_tensor:
            given[part.value] = torch.view_as_real(given[part.source])
    buffers: Tensors = {}
    for root in (view.root for view in segmented.results):
        if root not in given and root not in buffers:
            sizes, strides = root.tensor.sizes, segmented.layouts[root]
            dtype = root.dtype.info.torch
            buffers[root] = torch.empty_strided(sizes, strides, dtype=dtype, device=where)
    found = [_tensor_of(view, given, buffers) for view in segmented.results]
    outputs = segmented.fusion.outputs
    for output, made in zip(outputs, found, strict=True):
        if output.alias_of is not None:
            put(given[output.alias_of], made)
    return [
        made if output.alias_of is None else given[output.alias_of]
        for output, made in zip(outputs, found, strict=True)
        if not output.hidden
    ]


def _tensor_of(view: BufferView, given: Tensors, buffers: Tensors) -> torch.Tensor:
    """The view of an input or of a buffer, as a tensor without data."""
    is_given = view.root in given
    tensor = given[view.root] if is_given else buffers[view.root]
    if view.pairs:
        tensor = torch.view_as_complex(tensor)
    if view.memory is None:
        return tensor
    start = tensor.storage_offset() if is_given else 0
    return tensor.as_strided(view.memory.sizes, view.memory.strides, start + view.memory.offset)


def _properties(where: torch.device) -> DeviceProperties:
    absent = where.type == "cuda" and not torch.cuda.is_available()
    return devices.known(ABSENT_GPU) if absent else devices.of(where)


def _all_meta(inputs: Sequence[Any]) -> bool:
    tensors = [given for given in inputs if isinstance(given, torch.Tensor)]
    return bool(tensors) and all(tensor.device.type == "meta" for tensor in tensors)


def _mixed(fusion: Fusion, inputs: Sequence[Any]) -> InputError | None:
    """The error for inputs of several kinds: with memory, fake, meta. None for one kind."""
    tensors = [(p, given) for p, given in enumerate(inputs) if isinstance(given, torch.Tensor)]
    abstract = next((_kind(given) for _, given in tensors if is_abstract(given)), None)
    for place, given in tensors:
        if _kind(given) == abstract:
            continue
        name = fusion.inputs[place].name
        return InputMismatch(
            f"Expected {InputMismatch.named(place, name)} to have no memory, as others have none, "
            f"but got {_kind(given)} beside {abstract}",
            hint="Pass fake tensors of one FakeTensorMode, or meta tensors, or none of them.",
            place=place,
            name=name,
        )
    return None


def _kind(given: torch.Tensor) -> str:
    if isinstance(given, FakeTensor):
        return "a FakeTensor"
    return "a meta tensor" if given.is_meta else f"a {type(given).__name__} with memory"
