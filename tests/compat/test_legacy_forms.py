"""compat.nvfuser: what the last versions of the first frontend had, and the direct one has not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings

import pytest
import torch
import torch.nn.functional as F

import tritonfuser
from tests.compat.programs import equal, noise
from tritonfuser import disk, options
from tritonfuser.compat import nvfuser
from tritonfuser.compat.nvfuser import DataType, FusionCache, FusionDefinition
from tritonfuser.errors import ArgumentError, DefinitionError, InputError, UndefinedFusionError

ROOT = os.path.dirname(os.path.dirname(tritonfuser.__file__))


pytestmark = pytest.mark.usefixtures("empty_fusion_cache")


def ran(make, *inputs, **given):
    """The outputs of ``make(fd, *handles)`` for tensors, and the definition."""
    with FusionDefinition() as fd:
        found = make(fd, *[fd.from_pytorch(x) for x in inputs])
        for out in found if isinstance(found, list | tuple) else [found]:
            fd.add_output(out)
    return fd.execute([*inputs], **given), fd


# --- vectors -------------------------------------------------------------------------------------


def test_vectors():
    x = noise(24)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        given = fd.define_vector(2)
        assert isinstance(given, nvfuser.Vector) and given.size == 2
        fd.add_output(fd.ops.reshape(t, new_shape=given))
        fd.add_output(fd.ops.reshape(t, fd.define_vector([4, 6], dtype=DataType.Int)))
        turned = [fd.ops.at(given, 1), given[0]]
        fd.add_output(fd.ops.reshape(t, fd.define_vector(turned)))
    for sizes in ([3, 8], (2, 12)):
        found = fd.execute([x, sizes])
        assert [tuple(one.shape) for one in found] == [tuple(sizes), (4, 6), tuple(sizes[::-1])]


def test_shapes_are_vectors():
    with FusionDefinition() as fd:
        t = fd.define_tensor(2)
        for shape in (fd.ops.shape(t), t.shape()):
            assert isinstance(shape, nvfuser.Vector) and shape.size == 2
        fd.add_output(fd.ops.reshape(t, [fd.ops.size(t, 1), fd.ops.at(t.shape(), 0)]))
    assert fd.execute([noise(2, 3)])[0].shape == (3, 2)


def test_places_of_a_vector():
    with FusionDefinition() as fd:
        t = fd.define_tensor(2)
        shape = fd.ops.shape(t)
        assert fd.ops.at(shape, -1) is shape[1]
        for wrong in (2, -3):
            with pytest.raises(ArgumentError, match=f"an index of 2 scalars, got {wrong}"):
                fd.ops.at(shape, wrong)
        for vector, place in ((t, 0), (shape, 1.0)):
            with pytest.raises(ArgumentError):
                fd.ops.at(vector, place)
        fd.add_output(t)


# --- outputs, forms ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["by name", "by place"])
def test_outputs_have_a_stride_order(how):
    x = noise(2, 3, 4)
    with FusionDefinition() as fd:
        out = fd.ops.neg(fd.from_pytorch(x))
        if how == "by name":
            fd.add_output(out, stride_order=[0, 2, 1])
        else:
            fd.add_output(out, [0, 2, 1])
        fd.add_output(out, stride_order=[])
    turned, plain = fd.execute([x])
    equal(turned, -x)
    assert turned.stride() == (1, 8, 2) and plain.stride() == x.stride()


def test_an_input_that_is_written_has_no_other_stride_order():
    with FusionDefinition() as fd:
        t = fd.define_tensor(2)
        with pytest.raises(ArgumentError, match="has its own stride order"):
            fd.add_output(fd.ops.neg(t), t, [0, 1])
        fd.add_output(fd.ops.neg(t))


OLDER = {
    "reshape": lambda o, t: o.reshape(t, original_shape=[4, 1], new_shape=[2, 2]),
    "reshape by place": lambda o, t: o.reshape(t, [4, 1], [2, 2]),
    "view": lambda o, t: o.view(t, original_shape=[4, 1], new_shape=[2, 2]),
    "squeeze": lambda o, t: o.squeeze(t, original_shape=[4, 1], dims=[1]),
    "squeeze by place": lambda o, t: o.squeeze(t, [4, 1], [1]),
    "squeeze as it is": lambda o, t: o.squeeze(t, [1], False),
    "broadcast_in_dim": lambda o, t: o.broadcast_in_dim(
        t, output_shape=[4, 3], broadcast_dims=[0, 1]
    ),
    "full": lambda o, t: o.mul(t, o.full(size=[4, 1], arg=1.0, dtype=DataType.Float)),
}


@pytest.mark.parametrize("what", OLDER)
def test_parameters_under_older_names(what):
    x = noise(4, 1)
    (found,), _ = ran(lambda fd, t: OLDER[what](fd.ops, t), x)
    assert torch.equal(found.flatten()[:: found.numel() // 4], x.flatten())


def test_both_names_of_contiguity():
    x = noise(2, 1, 4)
    with FusionDefinition() as fd:
        for name in ("contiguity", "contiguous"):
            t = fd.define_tensor(
                symbolic_sizes=[-1, 1, -1], **{name: [True, True, True]}, dtype=DataType.Float
            )
            fd.add_output(fd.ops.neg(t))
        with pytest.raises(ArgumentError, match="given twice"):
            fd.define_tensor(symbolic_sizes=[-1], contiguity=[True], contiguous=[True])
    for found in fd.execute([x, x]):
        equal(found, -x)


# --- batch norm ----------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(training, channels_last, affine):
    x, weight, bias = noise(4, 3, 5), noise(3, seed=1), noise(3, seed=2)
    mean, var = noise(3, seed=3), noise(3, seed=4).abs() + 0.5
    given = [mean.clone(), var.clone()]
    parts = [weight, bias] if affine else [None, None]
    wanted = F.batch_norm(x, *given, *parts, training=training, momentum=0.2, eps=1e-3)
    laid = x.movedim(1, -1).contiguous() if channels_last else x
    with FusionDefinition() as fd:
        t, m, v = (fd.from_pytorch(one) for one in (laid, mean, var))
        w, b = (fd.from_pytorch(one) if affine else None for one in (weight, bias))
        momentum, eps = fd.define_scalar(0.2), fd.define_scalar(1e-3)
        found = fd.ops.batch_norm(t, w, b, m, v, momentum, eps, training, channels_last)
        for out in found:
            fd.add_output(out)
    inputs = [laid, mean, var, *([weight, bias] if affine else [])]
    out, used, inverse = fd.execute(inputs)
    equal(out.movedim(-1, 1) if channels_last else out, wanted, within=1e-5)
    equal(mean, given[0], within=1e-6)
    equal(var, given[1], within=1e-6)
    assert used.shape == inverse.shape == (3,)


def test_batch_norm_of_halves_without_running_statistics():
    x = noise(8, 3).half()

    def normed(fd, t):
        return fd.ops.batch_norm(t, None, None, None, None, 0.1, 1e-5, True)[0]

    (found,), _ = ran(normed, x)
    equal(found, F.batch_norm(x.float(), None, None, training=True), within=1e-5)
    with pytest.raises(ArgumentError, match="are needed where training is False"):
        ran(lambda fd, t: fd.ops.batch_norm(t, None, None, None, None, 0.1, 1e-5, False)[0], x)


# --- options of execute --------------------------------------------------------------------------


def negated(fd, t):
    return fd.ops.neg(t)


@pytest.mark.parametrize(
    "given",
    [
        {"device": None},
        {"override_user_schedule": True},
        {"save_repro_inputs": True, "profile": True},
        {"_enable_options": [], "_disable_options": ["expr_simplify"], "print_repro": False},
    ],
)
def test_options_of_execute(given):
    x = noise(3)
    (found,), fd = ran(negated, x, **given)
    equal(found, -x)
    if "save_repro_inputs" in given:
        assert "fd.execute(inputs)" in fd.last_repro_script()


def test_a_profile():
    (_,), fd = ran(negated, noise(3))
    with pytest.raises(InputError, match="nothing was executed with profile=True"):
        fd.profile()
    fd.execute([noise(3)], profile=True)
    assert fd.profile().segments == 1 and fd.profile().kernel_profiles[0].scheduler == "pointwise"


def test_debug_output(monkeypatch, capsys):
    monkeypatch.setenv("TRITONFUSER_DUMP", "python_definition")
    options.refresh()
    (_,), fd = ran(negated, noise(3), capture_debug_output=True)
    assert "fd.ops.neg(" in fd.debug_output()
    assert capsys.readouterr().out == ""
    fd.execute([noise(4)])
    assert fd.debug_output() is None


def test_a_repro_is_printed(capsys):
    x = noise(3)
    (_,), fd = ran(negated, x, print_repro=True)
    assert capsys.readouterr().out == f"{fd.repro_script_for([x])}\n"


def test_texts_for_inputs():
    x = noise(3)
    (_,), fd = ran(negated, x)
    assert fd.cuda_code_for([x], intrinsic_code=True) == fd.last_cuda_code()
    assert fd.scheduled_fusion_ir_for([x], override_user_schedule=False) == str(fd.segments([x]))
    assert fd.getValTolerances([x]) == nvfuser.get_val_tolerances(fd.fusion, [x])


# --- definitions that are kept -------------------------------------------------------------------


def test_a_clone():
    x = noise(3)
    (wanted,), fd = ran(negated, x)
    with FusionDefinition() as other:
        nvfuser.clone(fd, other)
    assert torch.equal(other.execute([x])[0], wanted) and repr(other) == repr(fd)
    with pytest.raises(ArgumentError):
        nvfuser.clone(fd, 3)


def test_a_clone_without_a_with_block():
    x = noise(3)
    (wanted,), fd = ran(negated, x)
    other = FusionDefinition()
    nvfuser.clone(fd, other)
    assert torch.equal(other.execute([x])[0], wanted) and repr(other) == repr(fd)
    assert FusionCache.get().num_fusions() == 1
    with pytest.raises(DefinitionError, match="recorded already"):
        nvfuser.clone(fd, other)
    with pytest.raises(UndefinedFusionError):
        nvfuser.clone(FusionDefinition(), empty := FusionDefinition())
    nvfuser.clone(fd, empty)
    assert torch.equal(empty.execute([x])[0], wanted)


def test_a_cache_prints_what_it_holds():
    ran(negated, noise(3))
    assert repr(FusionCache.get()) == "<FusionCache: 1 of at most 8192 fusions>"


def test_definitions_go_through_a_file(tmp_path):
    x = noise(3)
    (wanted,), _ = ran(negated, x)
    ran(lambda fd, t: fd.ops.exp(t), x)
    file = tmp_path / "definitions.json"
    FusionCache.get().serialize(file)
    FusionCache.reset()
    cache = FusionCache.get(max_fusions=4, selected_device=0, load_from_default_workspace=False)
    assert cache.num_fusions() == 0
    cache.deserialize(os.fspath(file))
    assert cache.num_fusions() == 2
    (found,), _ = ran(negated, x)
    assert torch.equal(found, wanted) and cache.num_fusions() == 2
    assert "Cache Hits: 1" in cache.stats()


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"format": 3}', '{"format": '])
def test_a_file_of_something_else_is_refused(text, tmp_path):
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(DefinitionError, match=r"expected definitions that serialize\(\) wrote"):
        FusionCache.get().deserialize(file)
    with pytest.raises(OSError):
        FusionCache.get().deserialize(tmp_path / "none")


@pytest.mark.parametrize("wrong", [None, 3, {}, [3], [{"version": 99}], "one more"])
def test_definitions_that_are_none_are_refused(wrong):
    """All of a file or nothing."""
    ran(negated, noise(3))
    nvfuser.serialize()
    (file,) = disk.cache_folder().glob("*.json")
    data = json.loads(file.read_text())
    wrong = [*data["definitions"], 3] if wrong == "one more" else wrong
    file.write_text(json.dumps({**data, "definitions": wrong}))
    FusionCache.reset()
    cache = FusionCache.get(load_from_default_workspace=False)
    with pytest.raises(DefinitionError):
        cache.deserialize(file)
    assert cache.num_fusions() == 0
    FusionCache.reset()
    assert FusionCache.get().num_fusions() == 0, "a workspace that cannot be read has nothing"


SERIALIZED = """
import torch, sys
from tritonfuser.compat import nvfuser
with nvfuser.FusionDefinition() as fd:
    fd.add_output(fd.ops.neg(fd.define_tensor(1)))
nvfuser.enable_automatic_serialization()
if sys.argv[1:]:
    nvfuser.disable_automatic_serialization()
"""


def test_a_process_leaves_its_definitions_if_it_was_asked_to():
    for word, count in (("no", 0), ("", 1)):
        command = [sys.executable, "-c", SERIALIZED, *word.split()]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": ROOT})
        FusionCache.reset()
        assert FusionCache.get().num_fusions() == count
    FusionCache.reset()
    assert FusionCache.get(load_from_default_workspace=False).num_fusions() == 0


def test_what_cannot_be_written_is_said():
    environment = {**os.environ, "PYTHONPATH": ROOT, "TRITONFUSER_CACHE_DIR": "/dev/null/x"}
    command = [sys.executable, "-c", SERIALIZED]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert done.stderr.startswith("the definitions are not written: ")
    assert len(done.stderr.splitlines()) == 1


def test_the_private_module_has_the_definition():
    assert nvfuser._C._FusionDefinition is FusionDefinition


# --- schedules of a subclass ---------------------------------------------------------------------


class Doubled(FusionDefinition):
    def definition(self):
        self.add_output(self.ops.mul(self.define_tensor(1), 2.0))


class Scheduled(Doubled):
    def schedule(self):
        raise AssertionError("called")


def test_a_schedule_of_a_subclass_is_warned_of():
    fd, x = Scheduled(), noise(5)
    with pytest.warns(UserWarning, match=r"^Scheduled\.schedule\(\) is not called") as caught:
        assert torch.equal(fd.execute([x])[0], x * 2)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fd.execute([x], override_user_schedule=True)
        Doubled().execute([x])
