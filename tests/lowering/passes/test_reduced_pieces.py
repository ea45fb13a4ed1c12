"""Reductions of concatenated tensors, each of which is reduced by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record
from tritonfuser import DataType, ParamsError
from tritonfuser.ir import Fusion
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.fuse.segmentation import Choice
from tritonfuser.lowering.passes.concatenations.reduced_pieces import pieces_of

Body = Callable[..., Any]
REDUCERS = ("sum", "prod", "max", "min")


def wide(fd: Any, x: Any) -> Any:
    return fd.ops.cast(x, DataType.Float)


def pieced(reduce: str, dims: list[int], dim: int = 1) -> Body:
    """A reduction of two computed tensors side by side, with a factor behind them."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        both = fd.ops.cat([fd.ops.sin(wide(fd, x)), fd.ops.exp(wide(fd, y))], dim)
        return getattr(fd.ops, reduce)(fd.ops.mul(both, 0.75), dims)

    return body


def inputs() -> list[torch.Tensor]:
    return [noise(9, 5, 20), noise(9, 12, 20, seed=1)]


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Reduces all that can be in pieces; the names of what was, for each fusion."""
    found: list[tuple[str, ...]] = []

    def refined(fusion: Fusion, _: object, make: Callable[[Choice], Any]) -> Any:
        names = (node.outs[0].name for node in fusion.nodes if pieces_of(fusion, node))
        found.append(tuple(names))
        return make(Choice(pieces=found[-1]))

    monkeypatch.setattr(segment_choice, "refined", refined)
    return found


@pytest.mark.parametrize("dims", ([0], [1], [2], [0, 2], [1, 2], [0, 1], [0, 1, 2]), ids=str)
@pytest.mark.parametrize("reduce", REDUCERS)
def test_over_any_dims(in_pieces: list[tuple[str, ...]], reduce: str, dims: list[int]) -> None:
    found = check(pieced(reduce, dims), *inputs())
    assert in_pieces[-1] == found.segmented.rewrites.pieces != ()


def test_special_numbers_are_those_of_the_piece(in_pieces: list[tuple[str, ...]]) -> None:
    x, y = inputs()
    x[2, 1, 3], x[4], y[3, 2, 1] = float("nan"), -0.0, float("inf")
    check(pieced("max", [0]), x, y)
    check(pieced("sum", [0, 1]), x, y)
    assert all(in_pieces)


def test_through_views_and_another_concatenation(in_pieces: list[tuple[str, ...]]) -> None:
    """The pieces end where those of either concatenation do."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        one = fd.ops.cat([fd.ops.exp(x), fd.ops.neg(y)], 1)
        other = fd.ops.cat([fd.ops.sin(y), fd.ops.cos(x)], 1)
        turned = fd.ops.permute(fd.ops.mul(one, other), [1, 0])
        return fd.ops.sum(turned, [1]), fd.ops.sum(turned, [0])

    check(body, noise(30, 8).float(), noise(30, 24, seed=1).float())
    assert [len(names) for names in in_pieces] == [2] * len(in_pieces)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dims", ([0], [1], [0, 1]), ids=str)
def test_along_one_of_merged_dims(
    in_pieces: list[tuple[str, ...]], dims: list[int], dim: int
) -> None:
    """The outermost, a middle and the innermost of three dims that are one behind them."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        both = fd.ops.cat([fd.ops.exp(x), fd.ops.neg(y)], dim)
        sizes = [3, 4, 5, 6]
        sizes[dim] *= 3
        merged = fd.ops.reshape(both, [sizes[0] * sizes[1] * sizes[2], 6])
        return fd.ops.sum(fd.ops.mul(merged, merged), dims), fd.ops.max(merged, dims)

    shape = [3, 4, 5, 6]
    longer = [size * 2 if place == dim else size for place, size in enumerate(shape)]
    check(body, noise(*shape).float(), noise(*longer, seed=1).float())
    assert [len(names) for names in in_pieces] == [2] * len(in_pieces)


def test_integers_keep_their_dtypes(in_pieces: list[tuple[str, ...]]) -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        both = fd.ops.cat([fd.ops.mul(x, 3), fd.ops.neg(y)], 0)
        return fd.ops.sum(both, [0]), fd.ops.max(both, [0, 1])

    x = torch.randint(-9, 9, (7, 40), dtype=torch.int32)
    check(body, x, torch.randint(-9, 9, (50, 40), dtype=torch.int32))
    assert all(in_pieces)


@pytest.mark.parametrize(
    "body",
    [
        lambda fd, x, y: fd.ops.sum(fd.ops.cat([fd.ops.exp(x)], 1), [0]),
        lambda fd, x, y: fd.ops.sum(fd.ops.exp(x), [0]),
        lambda fd, x, y: fd.ops.sum(
            fd.ops.reshape(fd.ops.cat([fd.ops.exp(x), y], 1), [9, 20]), [0]
        ),
        lambda fd, x, y: fd.ops.cumsum(fd.ops.cat([fd.ops.exp(x), y], 1), 0),
    ],
    ids=("one", "none", "across pieces", "scan"),
)
def test_what_has_no_pieces(in_pieces: list[tuple[str, ...]], body: Body) -> None:
    check(body, noise(6, 10).float(), noise(6, 20).float())
    assert in_pieces[-1] == ()


def softmaxes(fd: Any, x: Any) -> Any:
    """The columns of two functions of a softmax, one beside the other, summed up."""
    shifted = fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True))
    powers = fd.ops.exp(shifted)
    found = fd.ops.div(powers, fd.ops.sum(powers, [1], keepdim=True))
    return fd.ops.sum(fd.ops.cat([found, fd.ops.sqrt(found)], 1), [0])


def test_the_model_chooses_pieces_where_these_are_faster() -> None:
    """The sums of columns join the kernel of the softmax."""
    given = [torch.empty(60000, 200, device="meta")]
    fd = record(softmaxes, given)
    schedule = fd.schedule(given, arch="sm_90")
    assert len(schedule.rewrites.pieces) == 1
    assert [piece.scheduler for piece in schedule.segments] == [
        "inner_outer_persistent",
        "reduction",
    ]


def test_a_schedule_with_pieces_is_plain_data(in_pieces: list[tuple[str, ...]]) -> None:
    given = [noise(300, 40).float()]
    fd = record(softmaxes, given)
    data = json.loads(json.dumps(fd.schedule(given).to_dict()))
    assert data["pieces"]
    found = lowered(softmaxes, given)
    in_pieces.clear()
    again = fd.schedule(given, schedule=data)
    assert again.to_dict() == data and not in_pieces
    assert again.rewrites.pieces == found.segmented.rewrites.pieces
    for names, why in ((["tv0"], "expected a reduction"), (data["pieces"] * 2, "there already")):
        with pytest.raises(ParamsError, match=rf"pieces\[\d\]: .*{why}"):
            fd.run(given, schedule={**data, "pieces": names})


def test_a_schedule_with_pieces_is_for_other_sizes_too(in_pieces: list[tuple[str, ...]]) -> None:
    fd = record(softmaxes, [noise(300, 40).float()])
    data = fd.schedule([noise(300, 40).float()]).to_dict()
    x = noise(130, 40, seed=3).float()
    (got,) = fd.run([x], schedule=data)
    soft = torch.softmax(x.double(), 1)
    want = torch.cat([soft, soft.sqrt()], 1).sum(0)
    torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-5)
