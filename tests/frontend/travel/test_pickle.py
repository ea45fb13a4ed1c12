"""copy, pickle and torch.save of definitions, handles, executors, and what holds them."""

from __future__ import annotations

import copy
import io
import json
import pickle
import pickletools

import pytest
import torch

from tests.frontend.travel.modules import CLASSES, Layer, Recorded, gelu
from tests.frontend.travel.round_trips import run, same, same_bits
from tests.lowering.graphs import noise
from tests.multidevice.cases import CASES
from tritonfuser import (
    ArgumentError,
    DefinitionError,
    Fusion,
    FusionDefinition,
    FusionExecutorCache,
    FusionGuard,
    KernelExecutor,
    LRUCache,
    LruFusionCache,
    ParamsError,
    Profiler,
    UndefinedFusionError,
    define_tensor,
    ops,
    options,
)
from tritonfuser.compat import nvfuser
from tritonfuser.frontend.run import portable
from tritonfuser.frontend.run.fusion import restored_fusion
from tritonfuser.frontend.run.portable import restored_definition


def saved(given):
    file = io.BytesIO()
    torch.save(given, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


WAYS = {
    **{f"pickle {n}": lambda x, n=n: pickle.loads(pickle.dumps(x, n)) for n in range(6)},
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "torch.save": saved,
}
by_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
whole_ways = pytest.mark.parametrize(
    "way", [WAYS[name] for name in WAYS if name != "copy"], ids=[n for n in WAYS if n != "copy"]
)


@pytest.fixture(autouse=True)
def fresh_caches(monkeypatch):
    """``NVF_CPU_AS_CUDA=1``, and an empty cache of the first frontend."""
    monkeypatch.setenv("NVF_CPU_AS_CUDA", "1")
    options.refresh()
    nvfuser.FusionCache.reset()
    yield
    monkeypatch.undo()
    options.refresh()
    nvfuser.FusionCache.reset()


@pytest.mark.covering
@by_way
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_a_definition(way, name, warm):
    fd = gelu(CLASSES[name]())
    inputs = [noise(3, 5)]
    wanted = run(fd, inputs) if warm else None
    again = way(fd)
    assert type(again) is type(fd)
    assert again is not fd
    assert repr(again) == repr(fd)
    assert again.fusion == fd.fusion
    assert again.fusion.cuda_only is fd.fusion.cuda_only
    assert [repr(value) for value in again.fusion.vals()] == [repr(v) for v in fd.fusion.vals()]
    with pytest.raises(AttributeError, match=r"fd\.fec exists after"):
        _ = again.fec
    same_bits(run(again, inputs), wanted or run(fd, inputs))


@whole_ways
def test_what_is_copied_belongs_to_the_copy(way):
    fd = gelu(FusionDefinition())
    again = way(fd)
    same(fd.fusion, again.fusion)
    assert again.ops.add.__self__._record.__self__ is again
    assert again.sched is not fd.sched
    (x,) = again.fusion.inputs()
    assert x.container is again.fusion


@pytest.mark.parametrize("name", CLASSES)
def test_no_attribute_is_forgotten(name):
    """What a definition or a fusion has is made again, or is written: say which of a new one."""
    fd = gelu(CLASSES[name]())
    fd.run([noise(3, 5)], save_repro_inputs=True)
    other = gelu(CLASSES[name]())
    other.run_kernel([noise(3, 5)])
    assert {*vars(fd), *vars(other)} <= portable._NOT_COPIED
    again = pickle.loads(pickle.dumps(fd)).fusion
    assert vars(again).keys() >= vars(fd.fusion).keys()


def test_a_pickle_is_plain_data():
    """Two functions and a class by name; all else strings, numbers, lists, dicts."""
    data = pickle.dumps(gelu(FusionDefinition()), 2)
    named = {arg for code, arg, _ in pickletools.genops(data) if code.name == "GLOBAL"}
    assert named == {
        "tritonfuser.frontend.definition FusionDefinition",
        "tritonfuser.frontend.run.portable restored_definition",
        "tritonfuser.frontend.run.fusion restored_fusion",
    }
    codes = {code.name for code, _, _ in pickletools.genops(data)}
    assert not codes & {"BUILD", "NEWOBJ", "OBJ", "INST", "PERSID"}


def test_torch_loads_weights_only_where_it_is_allowed():
    file = io.BytesIO()
    torch.save({"fd": gelu(FusionDefinition())}, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="restored_definition"):
        torch.load(file)
    file.seek(0)
    with torch.serialization.safe_globals([FusionDefinition, restored_definition, restored_fusion]):
        again = torch.load(file)["fd"]
    assert repr(again) == repr(gelu(FusionDefinition()))


def test_a_module():
    layer, x = Layer(), noise(3, 5)
    assert [*layer.state_dict()] == ["weight"]
    with torch.no_grad():
        wanted = layer(x)
    for way in (copy.deepcopy, saved, WAYS["pickle 5"]):
        again = way(layer)
        assert [*again.state_dict()] == ["weight"]
        assert again.result.container is again.fd.fusion
        assert again.fd.fusion.outputs()[0] is again.result
        with torch.no_grad():
            same_bits([again(x)], [wanted])
    again.load_state_dict(layer.state_dict())


@by_way
def test_a_class_of_the_users(way):
    fd = Recorded(3.0)
    fd.note = ["mine"]
    before = way(fd)  # not recorded yet
    (out,) = before.run([torch.ones(2)])
    assert out.tolist() == [3.0, 3.0]
    fd.run([torch.ones(2)])
    again = way(fd)
    assert type(again) is Recorded
    assert (again.factor, again.note) == (3.0, ["mine"])
    assert again.run([torch.ones(2)])[0].tolist() == [3.0, 3.0]


@by_way
def test_a_definition_without_ops(way):
    assert repr(way(FusionDefinition())) == "<FusionDefinition: nothing recorded>"
    with FusionDefinition() as fd:
        fd.define_tensor([-1])
    again = way(fd)
    assert repr(again) == repr(fd)
    with pytest.raises(UndefinedFusionError, match="Fusion is empty"):
        again.run([torch.ones(2)])


@by_way
def test_a_fusion(way):
    fusion = Fusion()
    with FusionGuard(fusion):
        t = define_tensor([-1], contiguity=True)
        fusion.add_input(t)
        fusion.add_output(ops.relu(t))
    again = way(fusion)
    same(fusion, again)
    assert again.id() != fusion.id()
    same_bits(again.execute([noise(4)]), fusion.execute([noise(4)]))


@whole_ways
def test_handles_stay_those_of_their_definition(way):
    fd = gelu(FusionDefinition())
    (x,), (y, total) = fd.fusion.inputs(), fd.fusion.outputs()
    one = total.definition().inputs()[0]
    again, values = way((fd, [x, y, total, one]))
    assert [*again.fusion.inputs(), *again.fusion.outputs(), again.fusion.outputs()[0]] == values
    assert all(value.container is again.fusion for value in values)


@by_way
def test_constants_among_handles(way):
    with FusionDefinition() as fd:
        x = fd.define_tensor([3])
        k = fd.define_scalar(float("nan"))
        fd.add_output(fd.ops.mul(x, k))
    assert repr(way(k)) == "nan"
    assert way(k).dtype() is k.dtype()


def test_a_copied_handle_is_the_handle():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1])
        assert copy.copy(x) is x
        with pytest.raises(DefinitionError, match="still being recorded"):
            copy.deepcopy(x)
        fd.add_output(fd.ops.neg(x))
    assert copy.copy(x) is x


@by_way
def test_half_a_definition(way):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1])
        with pytest.raises(DefinitionError, match="after the `with` block"):
            way(fd)
        fd.add_output(fd.ops.neg(x))
    assert repr(way(fd)) == repr(fd)


@by_way
def test_an_executor(way):
    fd = gelu(FusionDefinition())
    executor = FusionExecutorCache(fd.fusion, 7, max_plans=3)
    inputs = [noise(3, 5)]
    wanted = executor.execute(inputs)
    again = way(executor)
    assert again.fusion() == fd.fusion
    assert not again.is_compiled(inputs)
    for rows in range(1, 6):
        again.execute([noise(rows, 5)])
    assert len(again.core._plans) == 3
    same_bits(again.execute(inputs), wanted)


@whole_ways
def test_definitions_that_share_an_executor(way):
    cached = LruFusionCache(max_fusions=4)(lambda: gelu(FusionDefinition()))
    one, other = way([cached(), cached()])
    assert one.fusion is other.fusion
    same_bits(run(one, [noise(3, 5)]), run(other, [noise(3, 5)]))


def test_the_first_frontends_cache_has_what_arrives():
    fd = gelu(nvfuser.FusionDefinition())
    data = pickle.dumps(fd)
    nvfuser.FusionCache.reset()
    cache = nvfuser.FusionCache.get(load_from_default_workspace=False)
    first, second = pickle.loads(data), pickle.loads(data)
    assert nvfuser.FusionCache.get() is cache
    assert cache.num_fusions() == 1
    assert "Cache Hits: 1" in cache.stats()
    x = noise(3, 5)
    first.execute([x])
    second.execute([x])
    assert first.fec is second.fec


def test_a_definition_over_a_mesh():
    for case in CASES:
        fd = case.definition()
        again = pickle.loads(pickle.dumps(fd))
        assert again.fusion.shardings == fd.fusion.shardings


def test_bound_methods():
    fd = gelu(FusionDefinition())
    again = pickle.loads(pickle.dumps(fd.run))
    same_bits(again([noise(3, 5)]), fd.run([noise(3, 5)]))
    assert repr(pickle.loads(pickle.dumps(fd.ops))._record.__self__) == repr(fd)


@pytest.mark.parametrize("name", ["plan", "kernel", "lru", "cache", "expression", "domain", "axis"])
def test_what_is_tied_to_its_process_says_what_to_send(name):
    fd, x = gelu(FusionDefinition()), noise(3, 5)
    y = fd.fusion.outputs()[0]
    made = {
        "plan": lambda: (fd.plan([x]), r"fd\.plan\(inputs\) where it arrives"),
        "kernel": lambda: (KernelExecutor(), r"fd\.run_kernel\(inputs\) where it arrives"),
        "lru": lambda: (LRUCache(3), "Send the definitions"),
        "cache": lambda: (nvfuser.FusionCache.get(), "send the definitions"),
        "expression": lambda: (y.definition(), "Send the TensorView"),
        "domain": lambda: (y.domain(), "Send the TensorView"),
        "axis": lambda: (y.axis(0), "Send the TensorView"),
    }
    refused, text = made[name]()
    for protocol in range(2, 6):
        with pytest.raises(ArgumentError, match=text):
            pickle.dumps(refused, protocol)


def test_a_plan_is_shared_by_copies_of_what_holds_it():
    fd, x = gelu(FusionDefinition()), noise(3, 5)
    plan = fd.plan([x])
    again, plans = copy.deepcopy((fd, [plan, copy.copy(plan)]))
    assert plans == [plan, plan]
    same_bits(plans[0]([x]), again.run([x]))


def test_reports_travel_as_they_are():
    fd, x = gelu(FusionDefinition()), noise(3, 5)
    with Profiler(show=False) as profiler:
        fd.run([x])
    fd.run([noise(4, 5)])
    fd.run([noise(6, 5)])
    given = [
        fd.heuristics([x]),
        fd.kernels([x]),
        fd.explain([noise(9, 5)]),
        fd.segments([x]),
        fd.audit([x]),
        fd.explain_recompiles(),
        profiler.profiles,
        fd.fusion.ir,
    ]
    again = pickle.loads(pickle.dumps(given))
    assert [str(report) for report in again] == [str(report) for report in given]
    assert again[-1] == fd.fusion.ir
    assert again[0] == given[0]


@pytest.mark.parametrize("name", CLASSES)
def test_data_is_read_by_the_class_that_is_asked(name):
    made = CLASSES[name].from_dict(gelu(FusionDefinition()).to_dict())
    wanted = gelu(CLASSES[name]())
    assert type(made) is CLASSES[name]
    assert [repr(value) for value in made.fusion.vals()] == [repr(v) for v in wanted.fusion.vals()]
    assert made.fusion.cuda_only is wanted.fusion.cuda_only
    assert made.to_dict() == wanted.to_dict()


def test_restoring_takes_definitions_only():
    for wrong in (dict, "FusionDefinition", None, torch.nn.Module):
        with pytest.raises(ArgumentError, match="a class derived from FusionDefinition"):
            restored_definition(wrong)
    with pytest.raises(ArgumentError, match="a Fusion"):
        restored_definition(FusionDefinition, {"version": 1})
    with pytest.raises(ArgumentError, match="a namespace"):
        restored_fusion(gelu(FusionDefinition()).to_dict(), False, "os")


# --- params and schedules of other versions ------------------------------------------------------


def plain(made):
    """What a pickle of params or of a schedule has: a function, and plain data for it."""
    function, (data,) = made.__reduce__()
    return function, data


def chosen():
    x = torch.randn(4, 8)
    fd = gelu(FusionDefinition())
    return fd.heuristics([x])[0], fd.schedule([x])


@pytest.mark.parametrize("way", WAYS)
def test_params_and_schedules_travel(way):
    params, schedule = chosen()
    for made in (params, schedule, schedule.segments[0], schedule.rewrites):
        again = WAYS[way](made)
        assert again == made and type(again) is type(made) and hash(again) == hash(made)


def test_fields_of_a_pickle_have_names():
    """One with fewer fields has their defaults, one with more is refused; none moves to another."""
    params, schedule = chosen()
    function, data = plain(params)
    less = {name: value for name, value in data.items() if name != "num_stages"}
    assert function(less).num_stages == 1
    with pytest.raises(ParamsError, match="num_wraps"):
        function({**data, "num_wraps": 4})
    with pytest.raises(ParamsError, match="num_warps"):
        function({**data, "num_warps": 3})
    for made in (schedule, schedule.segments[0]):
        function, data = plain(made)
        assert function(json.loads(json.dumps(data))) == made
        with pytest.raises(ParamsError, match="unheard"):
            function({**data, "unheard": 4})
    segments = [
        {k: v for k, v in s.items() if k != "loads"} for s in plain(schedule)[1]["segments"]
    ]
    assert plain(schedule)[0]({**plain(schedule)[1], "segments": segments}) == schedule
