"""Inputs as nvFuser names them in errors, for programs that import its modules."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir import Dim, Fusion, TensorType


def input_names(fusion: Fusion) -> list[str]:
    """The inputs as nvFuser names them: ``T0_g_float[iS0{i0}]``, ``d2``.

    Scalars are numbered with the extents and with the zero and the one that dims share.
    """
    return list(_names(fusion))


def _names(fusion: Fusion) -> Iterator[str]:
    numbered, dims, tensors = 0, 0, 0
    shared: set[int] = set()
    for value in fusion.inputs:
        if not isinstance(value.type, TensorType):
            yield f"{value.dtype.info.letter}{numbered}"
            numbered += 1
            continue
        texts: list[str] = []
        for dim in value.type.dims:
            known = isinstance(dim.size, int)
            extent = f"{dim.size}" if known else f"i{numbered}"
            if dim.size != 1 or 1 not in shared:
                numbered += 1
            if dim.size == 1:
                shared.add(1)
            texts.append(_dim_text(dim, dims, extent))
            dims += 1
        if texts and 0 not in shared:
            shared.add(0)
            numbered += 1
        yield f"T{tensors}_g_{value.dtype.value}[{', '.join(texts)}]"
        tensors += 1


def _dim_text(dim: Dim, number: int, extent: str) -> str:
    if dim.expanded:
        return f"bS{number}{{1 ex {extent}}}"
    return f"{'bS' if dim.size == 1 else 'iS'}{number}{{{extent}}}"
