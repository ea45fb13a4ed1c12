"""The check that indices are inside their dim, for ops that torch computes."""

from __future__ import annotations

import torch

from ...errors import IndexRangeError


def in_range(
    op: str, index: torch.Tensor, arg: torch.Tensor, dim: int, least: int = 0
) -> torch.Tensor:
    """The indices, every one of which is one of a dim of ``arg``.

    torch's own errors differ by op and device, and some of its ops take any index. Where ``arg``
    has no elements though the dim has positions, nothing is read, and all indices are right: they
    are 0 then, since torch may look at them.

    Parameters
    ----------
    op : str
        The op that indexes, for the message.
    least : int
        The least index: -1 for minus the size of the dim, where negative ones count from the end.

    Raises
    ------
    IndexRangeError
        Names the op, the first wrong index and the size.
    """
    size = arg.shape[dim] if arg.dim() else 1
    if size and not arg.numel():
        return torch.zeros_like(index)
    wrong = (index < least * size) | (index >= size)
    if wrong.any():
        raise IndexRangeError(
            f"{op}: index {int(index[wrong][0])} is out of range for a dim of {size} elements"
        )
    return index
