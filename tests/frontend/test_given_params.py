"""Params given to a run: as objects, as dicts, and what is said of those that do not fit."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import DataType, FusionDefinition, ParamsError


def softmax():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        e = fd.ops.exp(x)
        s = fd.ops.broadcast(fd.ops.sum(e, [1]), [False, True])
        fd.add_output(fd.ops.div(e, s))
    return fd


def product():
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor([-1, -1], contiguity=True, dtype=DataType.Half) for _ in "ab")
        fd.add_output(fd.ops.relu(fd.ops.matmul(a, b)))
    return fd


@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: [d], lambda d: (d,)])
def test_dicts_are_taken(wrap):
    fd, x = softmax(), torch.randn(4, 20)
    (chosen,) = fd.heuristics([x])
    plain = {**chosen.to_dict(), "num_warps": 8}
    (out,) = fd.run([x], params=wrap(plain))
    torch.testing.assert_close(out, x.softmax(1))
    assert fd.plan([x], params=wrap(plain)).params[0].num_warps == 8


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"num_warps": 4}, "missing key 'scheduler'"),
        ([{"scheduler": "pointwise"}], "missing key 'block_x'"),
        ([{"scheduler": "pointwise", "block_y": 3}], "unknown key 'block_y'"),
        ("pointwise", "one HeuristicParams for each segment, got 'pointwise'"),
        ([4], "one HeuristicParams for each segment, got 4"),
    ],
)
def test_others_are_refused_with_the_line(params, text):
    with pytest.raises(ParamsError, match=text) as caught:
        softmax().run([torch.randn(4, 20)], params=params)
    assert caught.value.loc.file == __file__


def test_a_wrong_number_of_params_lists_the_segments_of_this_run():
    fd = product()
    inputs = [torch.randn(16, 16, dtype=torch.float16) for _ in "ab"]
    apart = fd.heuristics(inputs)
    with pytest.raises(ParamsError, match=rf"{len(apart)} params for 1 segments") as caught:
        fd.run(inputs, params=apart, _enable_options=["fuse_matmul"])
    assert "(MatmulParams); fd.heuristics" in caught.value.hint
    assert len(fd.heuristics(inputs, _enable_options=["fuse_matmul"])) == 1


def test_hints_name_fields_that_the_params_have():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        w = fd.define_tensor([-1], contiguity=True)
        y = fd.ops.mul(x, fd.ops.broadcast_in_dim(w, [x.size(0), x.size(1)], [1]))
        s = fd.ops.broadcast(fd.ops.sum(y, [1]), [False, True])
        fd.add_output(fd.ops.mul(x, s))
        fd.add_output(fd.ops.sum(fd.ops.mul(x, s), [0]))
    inputs = [torch.randn(64, 256), torch.randn(256)]
    for place, chosen in enumerate(params := fd.heuristics(inputs)):
        if not hasattr(chosen, "block_r"):
            continue
        small = [*params]
        small[place] = type(chosen).from_dict({**chosen.to_dict(), "block_r": 16, "tails": []})
        if not small[place].row_tiling.in_registers:
            continue
        with pytest.raises(ParamsError, match="is too small") as caught:
            fd.run(inputs, params=small)
        assert ("persistent=False" in caught.value.hint) == hasattr(chosen, "persistent")
