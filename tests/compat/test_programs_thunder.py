"""What Lightning Thunder's executor does: descriptors, constants as Vals, tuples, in-place."""

from __future__ import annotations

from numbers import Number

import pytest
import torch
import torch.nn.functional as F

from tests.compat.programs import equal, noise, printed
from tritonfuser.cache.plan.copies import copied
from tritonfuser.compat.nvfuser_direct import (
    DataType,
    FusionDefinition,
    compute_tensor_descriptor,
    version,
)
from tritonfuser.compat.nvfuser_direct.pytorch_utils import torch_dtype_to_nvfuser_dtype

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType


def descriptor(x):
    """What a definition is cached by: the type of a number, the layout of a tensor."""
    if isinstance(x, Number):
        return type(x)
    contiguity, order = compute_tensor_descriptor(x.shape, x.stride())
    sizes = tuple(1 if size == 1 else -1 for size in x.shape)
    return sizes, tuple(contiguity), tuple(order), x.dtype


def define(fd, described):
    if isinstance(described, type):
        return fd.define_scalar(torch_dtype_to_nvfuser_dtype(described))
    sizes, contiguity, order, dtype = described
    return fd.define_tensor(
        shape=sizes,
        contiguity=contiguity,
        dtype=torch_dtype_to_nvfuser_dtype(dtype),
        stride_order=order,
        is_cpu=False,
    )


X, Y = noise(4, 1, 6), noise(4, 5, 6, seed=1).permute(0, 2, 1)
ROWS, MASK = torch.tensor([1, 3, 0]), noise(4, 6, seed=2) > 0
WEIGHT, TOKENS = noise(10, 3, seed=3), torch.tensor([[1, 9, 0], [4, 4, 2]])
INPUTS = (X, Y, ROWS, MASK, WEIGHT, TOKENS, 3, 0.5, True)
GATHERED = ROWS[None, :, None].expand(4, 3, 5)


def symbols(fd, x, y, rows, mask, weight, tokens, n, half, flag):
    """Each op as its translation calls it, with what torch gives."""
    ops, val = fd.ops, fd.define_scalar
    flat = ops.squeeze(x, (1,))
    gathered = ops.broadcast_in_dim(rows, (4, 3, 5), (1,))
    bf16 = ops.cast(x, D.BFloat16)
    var, mean = ops.var_mean(y, [2], 0)
    values, indices = ops.topk(y, val(2), 1, True, True)
    fx = X[:, 0]
    return [
        (ops.add(x, val(2.0, D.Double)), X + 2),
        (ops.mul(bf16, bf16), X.bfloat16().float().square()),
        (ops.sum(mask), MASK.sum()),
        (ops.sum(x, (0, 2)), X.sum((0, 2))),
        (ops.max(x, 1), X[:, 0]),
        (ops.prod(x, (1, 2)), X.prod(2).prod(1)),
        (ops.reshape(y, (4, 30)), Y.reshape(4, 30)),
        (ops.broadcast_in_dim(rows, [-1, x.size(2)], [0]), ROWS[:, None].expand(3, 6)),
        (ops.broadcast_in_dim(flat, (4, 5, 6), (0, 2)), X.expand(4, 5, 6)),
        (ops.full((4, n), val(1.5, D.Double), D.Float), torch.full((4, 3), 1.5)),
        (ops.full((), val(1.5), D.Float), torch.tensor(1.5)),
        (ops.slice(y, (0, 1, 2), (4, 6, 5), (1, 1, 1)), Y[:, 1:, 2:]),
        (ops.iota(y.shape()[-1], val(0), val(1), dtype=D.Int), torch.arange(5)),
        (ops.cat([flat, flat], -1), torch.cat([fx, fx], -1)),
        (ops.stride_order(y, (0, 1, 2)), Y),
        (ops.permute(y, (2, 0, 1)), Y.permute(2, 0, 1)),
        (ops.index_select(y, rows, 1), Y[:, ROWS]),
        (ops.take_along_axis(y, gathered, 1), Y.gather(1, GATHERED)),
        (ops.gather(y, gathered, 1), Y.gather(1, GATHERED)),
        (var, Y.var(2, correction=0)),
        (mean, Y.mean(2)),
        (ops.var(y, [2], 1), Y.var(2)),
        (
            ops.embedding_fwd(tokens, weight, None, None, val(2.0), val(False), val(False)),
            WEIGHT[TOKENS],
        ),
        (ops.where(mask, flat, val(0.0, D.Double)), fx * MASK),
        (ops.where(flag, x, val(0.0)), X),
        (ops.mul(x, half), X * 0.5),
        (ops.pad(flat, [1, 2], val(0.0)), F.pad(fx, [1, 2])),
        (ops.triu(flat, val(1)), fx.triu(1)),
        (ops.set(x), X),
        (ops.bitwise_not(mask), ~MASK),
        (ops.cumsum(y, 1), Y.cumsum(1)),
        (ops.matmul(y, ops.permute(y, (0, 2, 1))), Y @ Y.mT),
        (ops.linear(weight, weight), WEIGHT @ WEIGHT.T),
        (ops.remainder(x, val(0.3)), X.remainder(0.3)),
        (values, Y.topk(2, 1).values),
        (indices, Y.topk(2, 1).indices),
        (ops.argsort(y, 1, True, False), Y.argsort(1, True)),
        (ops.pow(x, val(2)), X.square()),
        (ops.div(ops.neg(x), val(3)), -X / 3),
        (ops.sign(x), X.sign()),
    ]


def translated(device=None):
    """A definition made as Thunder makes it, and what it should give."""
    fd = FusionDefinition(max_length=9999)
    with fd:
        pairs = symbols(fd, *(define(fd, descriptor(x)) for x in INPUTS))
        for result, _ in pairs:
            fd.add_output(result)
    if device is not None:
        fd._selected_device = device
    return fd, [wanted for _, wanted in pairs]


def test_every_symbol_is_translated():
    fd, wanted = translated()
    for one, other in zip(fd.execute(INPUTS), wanted, strict=True):
        equal(one, other, within=1e-5)
    for one, other in zip(printed(fd).execute(INPUTS), fd.execute(INPUTS), strict=True):
        assert torch.equal(one, other)
        assert one.stride() == other.stride()


def test_a_definition_runs_on_the_selected_device():
    fd, wanted = translated(torch.device("cpu"))
    options = {"device": fd._selected_device, "_enable_options": [], "_disable_options": []}
    for save in (False, True):
        found = fd.execute(INPUTS, **options, save_repro_inputs=save)
        equal(found[0], wanted[0])
    assert fd.last_repro_script() == fd.repro_script_for(INPUTS)


def test_other_sizes_of_the_same_descriptors():
    fd, _ = translated()
    fd.execute(INPUTS)
    x, y = noise(4, 1, 7), noise(4, 9, 7).permute(0, 2, 1)
    others = (x, y, ROWS, noise(4, 7) > 0, *INPUTS[4:])
    assert [descriptor(one) for one in others] == [descriptor(one) for one in INPUTS]
    with pytest.raises(RuntimeError, match="expected a shape of 252 elements"):
        fd.execute(others)
    again, _ = translated()
    assert again.fusion == fd.fusion


def test_a_copy_into_an_input():
    """copy_ gives back the input it wrote."""
    fd = FusionDefinition()
    with fd:
        a, b = (define(fd, descriptor(x)) for x in (Y, Y))
        fd.add_output(fd.ops.add(a, b), alias_input=a)
        fd.add_output(a)
    inputs = copied([Y, Y])
    (found,) = fd.execute(tuple(inputs))
    assert found.data_ptr() == inputs[0].data_ptr()
    equal(inputs[0], Y + Y)


def test_uniform_of_a_seed_and_an_offset():
    fd = FusionDefinition()
    with fd:
        n, val = fd.define_scalar(D.Int), fd.define_scalar
        seed, offset = fd.define_scalar(D.Int), fd.define_scalar(D.Int)
        shape = [n, val(4)]
        fd.add_output(
            fd.ops.uniform(
                val(0.0), val(1.0), shape, dtype=D.Float, rng_seed=seed, rng_offset=offset
            )
        )
    (found,) = fd.execute((5, 1234, 8), device="cpu")
    assert found.shape == (5, 4)
    assert torch.equal(found, fd.execute((5, 1234, 8))[0])


def test_the_version_is_new_enough():
    assert version() >= "0.2.34"
