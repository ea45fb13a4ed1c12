"""Tensors without memory of their own: fake and meta ones give such outputs, others an error."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.two_tensor import TwoTensor

from tritonfuser import DataType, FusionDefinition, InputError, options
from tritonfuser.cache import abstract_run, executor, kernels
from tritonfuser.cache.calls.guarded_calls import _guard
from tritonfuser.cache.keys.signature import key_maker
from tritonfuser.lowering import pipeline


def recorded(define, shape=(-1, -1), dtype=DataType.Float, contiguity=True):
    with FusionDefinition() as fd:
        define(fd, fd.define_tensor(list(shape), contiguity=contiguity, dtype=dtype))
    return fd


def relu():
    return recorded(lambda fd, x: fd.add_output(fd.ops.relu(fd.ops.mul(x, 2.0))))


def views(fd, x):
    """A new tensor and a permuted view of it, a view of the input, a sum."""
    y = fd.ops.exp(x)
    for out in (y, fd.ops.permute(y, [1, 0]), fd.ops.permute(x, [1, 0]), fd.ops.sum(y, [0])):
        fd.add_output(out)


def written(fd, x):
    """An output written into the input, and returned too."""
    y = fd.ops.add(x, 1.0)
    fd.add_output(y, x)
    fd.add_output(fd.ops.sum(y, [1]))


def complex_parts(fd, x):
    fd.add_output(fd.ops.mul(x, x))
    fd.add_output(fd.ops.permute(x, [1, 0]))
    fd.add_output(fd.ops.real(x))


DEFINITIONS = {
    "views": (views, DataType.Float),
    "written": (written, DataType.Float),
    "complex": (complex_parts, DataType.ComplexFloat),
}


def facts(tensor):
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.storage_offset()


def aliases(tensors):
    """For each tensor the first that shares its storage."""
    storages = [tensor.untyped_storage()._cdata for tensor in tensors]
    return [storages.index(storage) for storage in storages]


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("kind", ["fake", "meta"])
def test_outputs_without_data_are_laid_out_as_those_of_a_run(name, kind, monkeypatch):
    define, dtype = DEFINITIONS[name]
    fd = recorded(define, dtype=dtype)
    real = torch.randn(3, 5, dtype=dtype.info.torch)
    expected = fd.run([real])
    monkeypatch.setattr(kernels, "interpret_kernel", None)  # nothing may be compiled
    given = torch.empty(3, 5, dtype=real.dtype, device="meta")
    given = given if kind == "meta" else FakeTensorMode().from_tensor(real)
    found = fd.run([given])
    assert [*map(facts, found)] == [*map(facts, expected)]
    assert aliases([given, *found]) == aliases([real, *expected])
    for tensor in found:
        assert isinstance(tensor, FakeTensor) == (kind == "fake")
        assert tensor.device == given.device


def test_a_view_of_a_view_begins_where_the_input_does():
    fd = recorded(lambda fd, x: fd.add_output(fd.ops.permute(x, [1, 0])), contiguity=False)
    given = torch.empty(8, 8, device="meta")[2:, 3:]
    (found,) = fd.run([given])
    assert facts(found) == facts(given.t())


def test_a_signature_is_lowered_once(monkeypatch):
    fd, seen = relu(), []
    monkeypatch.setattr(
        abstract_run, "lower", lambda *args: seen.append(args) or pipeline.lower(*args)
    )
    for rows in (2, 2, 3):
        fd.run([torch.empty(rows, 4, device="meta")])
    assert len(seen) == 2


@pytest.mark.parametrize("first", ["real", "meta"])
def test_abstract_and_real_runs_do_not_share_plans(first):
    fd, x = relu(), torch.randn(3, 5)
    runs = [x, torch.empty(3, 5, device="meta")]
    for given in runs if first == "real" else runs[::-1]:
        for _ in range(3):
            (out,) = fd.run([given])
            assert out.device == given.device
            if given is x:
                torch.testing.assert_close(out, torch.relu(x * 2))


def test_fake_tensors_on_an_absent_gpu():
    with FakeTensorMode():
        (out,) = relu().run([torch.empty(3, 5, device="cuda")])
    assert out.device.type == "cuda"


def test_factories_inside_a_fake_mode():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.full([3, 5], fd.define_scalar(1.0), DataType.Float))
    fd.run([])
    with FakeTensorMode():
        (out,) = fd.run([])
    assert isinstance(out, FakeTensor)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_random_masks_inside_a_fake_mode(dtype: torch.dtype) -> None:
    """A dropout compares words with the number that the probability is of."""
    with FusionDefinition() as fd:
        x = fd.from_pytorch(torch.empty(3, 5, dtype=dtype))
        drawn = fd.ops.uniform(0.25, 1.0, [3, 5], dtype=x.dtype())
        unit = fd.ops.uniform(0.0, 1.0, [3, 5], dtype=x.dtype())
        fd.add_output(fd.ops.where(fd.ops.lt(unit, 0.9), drawn, x))
    with FakeTensorMode():
        (out,) = fd.run([torch.empty(3, 5, dtype=dtype)])
    assert isinstance(out, FakeTensor) and out.dtype is dtype


def batched(fd, x):
    return torch.vmap(lambda row: fd.run([row])[0])(x.expand(2, 3, 5))


REFUSED = {
    "vmap": (batched, "batched by torch.vmap"),
    "grad": (
        lambda fd, x: torch.func.grad(lambda t: fd.run([t])[0].sum())(x),
        r"torch\.func\.grad",
    ),
    "jvp": (lambda fd, x: torch.func.jvp(lambda t: fd.run([t])[0], (x,), (x,)), r"jvp"),
    "functionalize": (
        lambda fd, x: torch.func.functionalize(lambda t: fd.run([t])[0])(x),
        "functional",
    ),
    "functional": (lambda fd, x: fd.run([torch._to_functional_tensor(x)]), "functional"),
    "subclass": (lambda fd, x: fd.run([TwoTensor(x, x)]), "TwoTensor"),
    "coo": (lambda fd, x: fd.run([x.to_sparse()]), "sparse_coo"),
    "csr": (lambda fd, x: fd.run([x.to_sparse_csr()]), "sparse_csr"),
    "nested": (lambda fd, x: fd.run([torch.nested.nested_tensor([x[0], x[1]])]), "nested"),
    "jagged": (
        lambda fd, x: fd.run([torch.nested.nested_tensor([x[0], x[1]], layout=torch.jagged)]),
        "nested NestedTensor",
    ),
    "mkldnn": (lambda fd, x: fd.run([x.to_mkldnn()]), "_mkldnn"),
    "freed": (lambda fd, x: fd.run([freed(x)]), "storage holds 0 bytes"),
    "made smaller": (lambda fd, x: fd.run([freed(x, 20)]), "storage holds 20 bytes"),
    "a shape of its own": (lambda fd, x: fd.run([x.as_subclass(OtherShape)]), "whose shape"),
    "an address of its own": (
        lambda fd, x: fd.run([x.as_subclass(OtherAddress)]),
        r"whose data_ptr\(\)",
    ),
    "attributes by __torch_function__": (
        lambda fd, x: fd.run([x.as_subclass(OtherSizes)]),
        r"whose .*size\(\)",
    ),
    "torch.jit": (lambda fd, x: torch.jit.trace(lambda t: fd.run([t])[0], (x,)), r"torch\.jit"),
    "torch.export": (lambda fd, x: torch.export.export(Runs(fd), (x,)), r"torch\.export"),
    "make_fx before autograd": (
        lambda fd, x: make_fx(lambda t: fd.run([t])[0], pre_dispatch=True)(x),
        "make_fx",
    ),
    "make_fx": (lambda fd, x: make_fx(lambda t: fd.run([t])[0])(x), "make_fx"),
    "make_fx fake": (
        lambda fd, x: make_fx(lambda t: fd.run([t])[0], tracing_mode="fake")(x),
        "make_fx",
    ),
    "real in a fake mode": (lambda fd, x: in_fake_mode(lambda: fd.run([x])), "FakeTensorMode"),
    "plan of meta": (lambda fd, x: fd.plan([x.to("meta")]), "but got a meta tensor"),
    "plan of fake": (
        lambda fd, x: fd.plan([FakeTensorMode().from_tensor(x)]),
        "but got a FakeTensor",
    ),
    "kernel of meta": (lambda fd, x: relu().run_kernel([x.to("meta")]), "but got a meta tensor"),
}


def freed(x, size=0):
    x = x.clone()
    x.untyped_storage().resize_(size)
    return x


class OnGpu(torch.Tensor):
    """A tensor that takes the path of those on a GPU, whose storages are not asked each time."""

    is_cpu = False


@pytest.fixture
def asks_storages(monkeypatch):
    """Sets the option when it is called."""

    def ask():
        monkeypatch.setenv("TRITONFUSER_CHECK", "storage")
        options.refresh()

    yield ask
    monkeypatch.undo()
    options.refresh()


def test_a_storage_made_smaller_is_found_where_it_is_asked_for(asks_storages):
    fd = relu()
    x, shorter = torch.ones(300, 500), freed(torch.ones(300, 500), 64)
    plan = SimpleNamespace(device=torch.device("cuda"))
    given = shorter.as_subclass(OnGpu)
    assert key_maker(fd.fusion.ir)([given]) and _guard(plan, 1, [x])(shorter)
    asks_storages()
    guard = _guard(plan, 1, [x])
    assert guard(torch.ones(300, 500))
    for check in (lambda: key_maker(fd.fusion.ir)([given]), lambda: guard(shorter)):
        with pytest.raises(TypeError, match="storage was resized"):
            check()


def test_a_definition_that_ran_before_asks_after_the_option_is_set(monkeypatch, asks_storages):
    fd = relu()
    key = mock.Mock(wraps=executor.key_maker)
    monkeypatch.setattr(executor, "key_maker", key)
    fd.run([torch.ones(3, 5)])
    made = key.call_count
    asks_storages()
    fd.run([torch.ones(3, 5)])
    assert key.call_count == made + 1


class OtherShape(torch.Tensor):
    @property
    def shape(self):
        return torch.Size((300, 500))

    def stride(self):
        return (500, 1)


class OtherAddress(torch.Tensor):
    def data_ptr(self):
        return 64


class OtherSizes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.Tensor.size, torch.Tensor.shape.__get__):
            return torch.Size((300, 500))
        return super().__torch_function__(func, types, args, kwargs or {})


class Runs(torch.nn.Module):
    def __init__(self, fd):
        super().__init__()
        self.fd = fd

    def forward(self, x):
        return self.fd.run([x])[0]


def in_fake_mode(run):
    with FakeTensorMode():
        return run()


@pytest.mark.filterwarnings("ignore")  # torch's own about nested and CSR tensors
@pytest.mark.parametrize("ran", [False, True], ids=["first", "after a run"])
@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused_with_what_they_are(name, ran):
    call, text = REFUSED[name]
    fd, x = relu(), torch.randn(3, 5)
    if ran:
        for _ in range(2):
            fd.run([x])
    with pytest.raises(InputError, match=text):
        call(fd, x)


IN_PYTHON = [
    "vmap",
    "functional",
    "real in a fake mode",
    "subclass",
    "made smaller",
    "a shape of its own",
    "torch.jit",
]


@pytest.mark.parametrize("name", IN_PYTHON)
def test_a_guard_in_python_refuses_them_too(name):
    """A tensor given twice has no guard of torch's."""
    with FusionDefinition() as fd:
        x, y = (fd.define_tensor([-1, -1], contiguity=True) for _ in range(2))
        fd.add_output(fd.ops.add(x, y))

    class Twice:
        run = staticmethod(lambda inputs: fd.run([inputs[0], inputs[0]]))

    x = torch.randn(3, 5)
    for _ in range(3):
        Twice.run([x])
    call, text = REFUSED[name]
    with pytest.raises(InputError, match=text):
        call(Twice, x)


def test_a_bound_plan_refuses_them():
    fd, x = relu(), torch.randn(3, 5)
    plan = fd.plan([x])
    for given in (x.to("meta"), FakeTensorMode().from_tensor(x), x.to_sparse(), TwoTensor(x, x)):
        with pytest.raises(InputError, match="input 0"):
            plan([given])
    with pytest.raises(InputError, match="FakeTensorMode"):
        in_fake_mode(lambda: plan([x]))


@pytest.mark.filterwarnings("ignore")
def test_a_bound_plan_refuses_them_as_out():
    fd, x = relu(), torch.randn(3, 5)
    plan = fd.plan([x])
    plan([x], out=plan.allocate())
    nested = torch.nested.nested_tensor([x[0], x[1]])
    for given in (x.to("meta"), x.to_sparse(), nested, freed(x), freed(x, 20)):
        with pytest.raises(InputError, match=r"out\[0\]"):
            plan([x], out=[given])


def test_fake_and_real_tensors_together_are_refused():
    with FusionDefinition() as fd:
        x, y = (fd.define_tensor([-1, -1], contiguity=True) for _ in range(2))
        fd.add_output(fd.ops.add(x, y))
    real = torch.randn(3, 5)
    fake = FakeTensorMode().from_tensor(real)
    meta = real.to("meta")
    for given, beside in (
        ([fake, real], "a Tensor with memory beside a FakeTensor"),
        ([real, meta], "a Tensor with memory beside a meta tensor"),
        ([fake, meta], "a meta tensor beside a FakeTensor"),
    ):
        with pytest.raises(InputError, match=rf"input [01].*to have no memory.*got {beside}"):
            fd.run(given)


def test_a_subclass_without_dispatch_runs():
    class Named(torch.Tensor):
        pass

    x = torch.randn(3, 5)
    (out,) = relu().run([x.as_subclass(Named)])
    torch.testing.assert_close(torch.Tensor(out), torch.relu(x * 2))


def test_a_subclass_that_watches_functions_runs():
    class Watching(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    fd, x = relu(), torch.randn(3, 5)
    for _ in range(3):
        (out,) = fd.run([x.as_subclass(Watching)])
        torch.testing.assert_close(torch.Tensor(out), torch.relu(x * 2))


@pytest.mark.parametrize("twice", [False, True], ids=["", "twice"])
def test_signs_that_are_off_whatever_the_strides(twice):
    """torch's mark that a tensor is negated stays on views of any strides."""
    z = torch.view_as_complex(torch.randn(15, 2))
    marked = z.conj().imag.as_strided((3, 5), (5, 1))
    plain = torch.empty(3, 5).copy_(marked)
    with FusionDefinition() as fd:
        x, y = (fd.define_tensor([-1, -1], contiguity=True) for _ in range(2))
        fd.add_output(fd.ops.add(x, fd.ops.mul(y, 2.0)))
    assert marked.is_neg()
    for given in (marked, plain, plain, plain, marked, marked, marked):
        other = given if twice else plain
        torch.testing.assert_close(fd.run([given, other])[0], given + other * 2)
    plan = fd.plan([plain, plain])
    with pytest.raises(InputError, match="marked as negated"):
        plan([marked, plain])
    plan = fd.plan([marked, plain])
    for given in (marked, plain):
        torch.testing.assert_close(plan([given, plain])[0], given + plain * 2)


def test_a_mode_that_watches_ops_does_not_disturb():
    from torch.utils.flop_counter import FlopCounterMode

    fd, x = relu(), torch.randn(3, 5)
    with FlopCounterMode(display=False):
        for _ in range(20):
            fd.run([x])
    (out,) = fd.run([x])
    torch.testing.assert_close(out, torch.relu(x * 2))


# --- torch.compile -------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["run", "fec", "plan"])
def test_compiled_by_torch_with_a_break_of_the_graph(call):
    fd = relu()
    fd.run([torch.randn(2, 8)])
    run = {"run": fd.run, "fec": fd.fec.execute, "plan": fd.plan([torch.randn(4, 8)])}[call]
    compiled = torch.compile(lambda t: run([t + 1])[0].sin(), backend="aot_eager")
    for rows in (4,) if call == "plan" else (4, 5, 6):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(compiled(x), torch.relu((x + 1) * 2).sin())


def test_as_an_op_of_torch_library_it_is_in_the_graph():
    fd = relu()

    @torch.library.custom_op("tritonfuser_test::relu", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return fd.run([x])[0]

    op.register_fake(lambda x: fd.run([x])[0])
    x = torch.randn(3, 5)
    expected = torch.relu(x * 2)
    compiled = torch.compile(lambda t: op(t) + 1, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), expected + 1)
    for mode in ("real", "fake", "symbolic"):
        graph = make_fx(lambda t: op(t), tracing_mode=mode)(x)
        torch.testing.assert_close(graph(x), expected)
        assert any("tritonfuser_test" in str(node.target) for node in graph.graph.nodes)
    module = torch.nn.Module()
    module.forward = lambda t: op(t)
    exported = torch.export.export(module, (x,))
    torch.testing.assert_close(exported.module()(x), expected)
