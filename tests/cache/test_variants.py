"""Which variants a definition gets as its sizes vary, and what is told of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.cache.varying import cache_of, doubling, kinds, noise, run
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache import executor
from tritonfuser.cache.executor import FusionExecutorCache
from tritonfuser.cache.keys.recompiles import Recompiles
from tritonfuser.errors import InputShapeError
from tritonfuser.heuristics.params import PointwiseParams
from tritonfuser.lowering.product_policy import ProductPolicy
from tritonfuser.lowering.run_options import RunOptions

# --- what is compiled ----------------------------------------------------------------------------


def test_two_static_variants_then_one_for_all() -> None:
    cache = doubling()
    run(cache, (4, 5), (4, 6), (4, 7), (4, 9), (4, 70), (4, 5), (4, 2))
    assert kinds(cache) == ["static", "static", "dynamic"]
    assert [made.served for made in cache.recompiles()] == [1, 1, 4]
    assert cache.recompiles()[2].sizes == {"size0": "tv0.shape[1]"}


def test_another_dim_that_varies_takes_another_variant() -> None:
    cache = doubling()
    run(cache, (4, 5), (4, 6), (4, 7), (3, 7), (9, 10), (70, 90))
    assert kinds(cache) == ["static", "static", "dynamic", "dynamic"]
    last = cache.recompiles()[-1]
    assert last.sizes == {"size0": "tv0.shape[0]", "size1": "tv0.shape[1]"}
    assert last.reason == "tv0.shape[0] was 4, now 3"


def test_sizes_of_one_and_none_are_written_out() -> None:
    cache = doubling()
    run(cache, (4, 5), (4, 6), (4, 7), (4, 1), (4, 0), (1, 7))
    found = cache.recompiles()
    assert kinds(cache)[:3] == ["static", "static", "dynamic"]
    assert all("tv0.shape[1]" not in made.sizes.values() for made in found[3:5])
    assert found[3].reason == "size0 >= 2 does not hold: size0 is 1 (tv0.shape[1])"


def test_a_result_of_no_elements_has_the_strides_of_a_fresh_definition() -> None:
    """Whatever sizes were open before: a quotient of sizes may be 0 or not."""

    def strides(*numbers: int) -> tuple[int, ...]:
        with FusionDefinition() as fd:
            x, c = fd.define_tensor([-1, -1], contiguity=True), fd.define_scalar(DataType.Int)
            rows = fd.ops.broadcast(x, [True, False, False])
            fd.add_output(fd.ops.expand(rows, [fd.ops.div(x.size(0), c), -1, -1]))
        found = [fd.run([noise(40, 5), number])[0] for number in numbers]
        assert [len(out) for out in found] == [40 // number for number in numbers]
        return found[-1].stride()

    for last in (64, 2**63 - 1):
        assert strides(last) == strides(2, 3, 4, last) == strides(50, 51, 52, 5, last)


LARGEST = {
    "full": (2**62, lambda fd, c: fd.ops.full([c, 2], 1.0, DataType.Float)),
    "expanded": (2**60, lambda fd, c: fd.ops.expand(fd.ops.iota(8, dtype=DataType.Int), [c, 8])),
    "pad": (2**63 - 1, lambda fd, c: fd.ops.pad(fd.ops.full([4], True, DataType.Bool), [1, c])),
}


@pytest.mark.parametrize("name", LARGEST)
def test_what_no_memory_holds_is_refused_as_in_a_fresh_definition(name: str) -> None:
    """Whatever sizes were open before."""

    def refusal(*sizes: int) -> str:
        with FusionDefinition() as fd:
            fd.add_output(body(fd, fd.define_scalar(DataType.Int)))
        for size in sizes:
            fd.run([size])
        with pytest.raises(InputShapeError, match="less than 2\\*\\*63 bytes") as caught:
            fd.run([largest])
        return caught.value.message

    largest, body = LARGEST[name]
    assert refusal() == refusal(2, 3, 4)


def test_multiples_seen_so_far_are_counted_on() -> None:
    """Then an odd size takes one more variant, which takes all of them."""
    cache = doubling()
    run(cache, (4, 128), (4, 256), (4, 384), (4, 512), (4, 48), (4, 33), (4, 35))
    assert kinds(cache) == ["static", "static", "dynamic", "dynamic", "dynamic"]
    reasons = [made.reason for made in cache.recompiles()[3:]]
    assert reasons[0] == "size0 % 128 == 0 does not hold: size0 is 48 (tv0.shape[1])"
    assert reasons[1] == "size0 % 16 == 0 does not hold: size0 is 33 (tv0.shape[1])"
    run(cache, (4, 64), (4, 640), (4, 31))
    assert len(kinds(cache)) == 5


def test_aligned_sizes_have_a_variant_of_their_own() -> None:
    cache = doubling()
    run(cache, (4, 5), (4, 6), (4, 7), (4, 9), (4, 32))
    assert kinds(cache) == ["static", "static", "dynamic", "dynamic"]
    assert cache.recompiles()[-1].reason == "a better aligned variant is worth it"
    assert "size0 % 4 == 0" in cache.recompiles()[-1].guards


@pytest.mark.parametrize("step", [1, 3, 8, 16, 24, 100])
def test_lengths_of_any_step_take_an_aligned_variant_and_another(step: int) -> None:
    """The aligned one counts on it, though others were seen before: it takes all that come."""
    cache = doubling()
    run(cache, *((4, 3 + step * n) for n in range(60)), *((4, step * n) for n in range(1, 60)))
    assert kinds(cache).count("dynamic") <= 4
    shuffled = doubling()
    run(shuffled, *((4, 2 + step * (7 * n % 61)) for n in range(60)))
    assert kinds(shuffled).count("dynamic") <= 3


def test_a_better_aligned_variant_is_not_put_down_to_one_that_would_not_do() -> None:
    """48 fits the variant of 42, whose vectors are shorter; that of 28 ends at 32."""
    cache = cache_of(lambda fd, x: fd.ops.sum(x, [1]), (DataType.Float, 2))
    for size in (12, 20, 28, 42, 48):
        cache.execute([noise(4, size)])
    found = cache.recompiles()
    assert found[3].reason == "size0 % 4 == 0 does not hold: size0 is 42 (tv0.shape[1])"
    assert found[4].reason == "a better aligned variant is worth it"
    assert [made.guards[0] for made in found[2:]] == [f"size0 % {n} == 0" for n in (4, 2, 4)]


def test_rows_of_any_number_have_one_variant() -> None:
    """What begins at vectors does so whatever the number of rows is."""
    cache = doubling()
    run(cache, *((rows, 32) for rows in (5, 7, 8, 9, 16, 48, 33)))
    assert kinds(cache) == ["static", "static", "dynamic"]


def test_a_long_row_leaves_the_registers() -> None:
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.sub(x, fd.ops.max(x, dims=[1], keepdim=True))

    cache = cache_of(body, (DataType.Float, 2))
    for size in (41, 61, 51, 33, 63, 65, 101):
        x = noise(3, size)
        assert torch.equal(cache.execute([x])[0], x - x.amax(1, keepdim=True))
    assert kinds(cache) == ["static", "static", "dynamic", "dynamic"]
    assert "size0 <= 64" in cache.recompiles()[2].guards
    assert cache.recompiles()[3].reason.startswith("size0 <= 64 does not hold: size0 is 65")


def test_other_dtypes_are_another_kind() -> None:
    cache = cache_of(lambda fd, x: fd.ops.mul(x, 2), (DataType.Float, 1))
    for size in (4, 5, 6):
        cache.execute([noise(size)])
    strided = noise(8)[1:]
    cache.execute([strided])
    assert kinds(cache) == ["static", "static", "dynamic", "static"]
    assert "tv0's alignment to 16 bytes was True, now False" in cache.recompiles()[-1].reason


def test_numbers_that_shapes_depend_on_vary_too() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], contiguity=True)
        n = fd.define_scalar(None, dtype=DataType.Int)
        fd.add_output(fd.ops.neg(fd.ops.broadcast_in_dim(x, [n, x.size(0)], [1])))
    cache = FusionExecutorCache(fd.fusion.ir)
    for number in (3, 5, 7, 40, 2):
        (found,) = cache.execute([noise(6), number])
        assert torch.equal(found, -noise(6).expand(number, 6))
    assert kinds(cache) == ["static", "static", "dynamic"]
    assert cache.recompiles()[-1].sizes == {"size0": "c0"}


def test_products_and_params_are_kept_apart() -> None:
    cache = doubling()
    run(cache, (4, 5), (4, 6), (4, 7))
    x = noise(4, 8)
    params = [PointwiseParams(block_x=16)]
    assert torch.equal(cache.execute([x], RunOptions(params=tuple(params)))[0], x * 2)
    assert torch.equal(cache.execute([x], RunOptions(products=ProductPolicy.KERNELS))[0], x * 2)
    assert kinds(cache) == ["static", "static", "dynamic", "static", "static"]
    assert cache.recompiles()[3].reason == "other options were asked for"
    assert cache.recompiles()[4].reason == "other options were asked for"


def test_given_params_keep_sizes_open() -> None:
    cache = doubling()
    options = RunOptions(params=(PointwiseParams(block_x=16, axes=(0, 1)),))
    for rows in range(3, 9):
        x = noise(rows, 8)
        assert torch.equal(cache.execute([x], options)[0], x * 2)
    assert kinds(cache) == ["static", "static", "dynamic"]
    newest = cache.newest()
    assert newest is not None
    assert newest.lowered.segmented.segments[0].params == options.params[0]


def test_what_is_asked_about_is_what_the_next_run_takes() -> None:
    """The plan that is there, what a variant serves, what would be compiled; nothing is counted."""
    cache = doubling()
    run(cache, (4, 5))
    assert not cache.kernels([noise(4, 6)])[0].sizes  # a second signature has constant sizes
    run(cache, (4, 6))
    asked = [cache.kernels([noise(4, 7)])[0].text, cache.heuristics([noise(4, 7)])]
    assert kinds(cache) == ["static", "static"]
    assert "size0" in asked[0]
    plan = cache.plan([noise(4, 7)])
    ran = plan.lowered
    assert asked == [ran.sources[0].text, [s.params for s in ran.segmented.segments]]
    (kernel,) = cache.kernels([noise(4, 9)])  # the variant serves it
    assert kernel.text == asked[0]
    assert cache.segments([noise(4, 9)]).segments[0].bytes_read == 4 * 4 * 9
    assert cache.recompiles()[-1].served == 1 and not cache.is_compiled([noise(4, 9)])
    assert cache.newest() is plan
    (kernel,) = cache.kernels([noise(4, 5)])  # compiled with constant sizes
    assert not kernel.sizes and "20" in kernel.text
    assert cache.newest() is plan


def test_what_is_asked_about_has_the_options_of_the_run() -> None:
    cache = doubling()
    run(cache, (4, 5), (4, 6), (4, 7))
    given = RunOptions(params=(PointwiseParams(block_x=16),))
    assert cache.heuristics([noise(4, 8)], given) == [PointwiseParams(block_x=16, axes=(0, 1))]
    assert not cache.kernels([noise(4, 8)], RunOptions(arch="sm_90"))[0].sizes


def test_the_option_turns_it_off(setting: Callable[[str, str], None]) -> None:
    setting("TRITONFUSER_DYNAMIC_SIZES", "0")
    cache = doubling()
    run(cache, (4, 5), (4, 6), (4, 7), (4, 9))
    assert kinds(cache) == ["static"] * 4


def test_an_option_that_changes_drops_the_variants(setting: Callable[[str, str], None]) -> None:
    cache = doubling()
    run(cache, (4, 5), (4, 6), (4, 7))
    setting("TRITONFUSER_FMA", "0")
    run(cache, (4, 8))
    assert kinds(cache) == ["static", "static", "dynamic", "static"]


# --- where it does not pay -----------------------------------------------------------------------


def test_what_is_specialised_anyway_is_not_tried_for_ever() -> None:
    """A size that the definition turns into a float is written out, whatever is tried."""

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.mul(x, fd.ops.sqrt(fd.ops.cast(x.size(0), DataType.Double)))

    cache = cache_of(body, (DataType.Float, 1))
    for size in range(4, 12):
        (found,) = cache.execute([noise(size)])
        torch.testing.assert_close(found, noise(size) * size**0.5)
    assert kinds(cache) == ["static"] * 8


def test_a_lowering_that_fails_is_done_with_sizes_written_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, tries = executor.lower, []

    def failing(*args: Any) -> Any:
        *_, env, _ = args
        if env is not None:
            tries.append(1)
            raise TypeError("no such thing")
        return plain(*args)

    monkeypatch.setattr(executor, "lower", failing)
    cache = doubling()
    run(cache, *((4, size) for size in range(5, 15)))
    assert kinds(cache) == ["static"] * 10
    assert len(tries) == 3


def test_an_error_is_told_with_numbers() -> None:
    cache = cache_of(lambda fd, x, y: fd.ops.add(x, y), *[(DataType.Float, 1)] * 2)
    for size in (4, 5, 6):
        cache.execute([noise(size), noise(size)])
    with pytest.raises(Exception, match=r"7.*8"):
        cache.execute([noise(7), noise(8)])
    assert cache.execute([noise(7), noise(7)])[0].shape == (7,)


def test_sizes_that_are_refused_say_nothing_of_open_ones() -> None:
    cache = cache_of(lambda fd, x, y: fd.ops.add(x, y), *[(DataType.Float, 1)] * 2)
    for size in (4, 5):
        cache.execute([noise(size), noise(size)])
    for size in (7, 9, 11):
        with pytest.raises(InputShapeError):
            cache.execute([noise(size), noise(size + 1)])
    for size in (6, 7, 9, 11):
        cache.execute([noise(size), noise(size)])
    assert kinds(cache) == ["static", "static", "dynamic"]


# --- what is told --------------------------------------------------------------------------------


def test_explain_recompiles() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True)
        fd.add_output(fd.ops.mul(x, 2.0))
    assert str(fd.explain_recompiles()) == "nothing was compiled yet"
    for size in (5, 6, 7, 9, 10):
        fd.run([noise(4, size)])
    found = fd.explain_recompiles()
    assert isinstance(found, Recompiles)
    assert [made.reason for made in found] == [
        "first call",
        "tv0.shape[1] was 5, now 6",
        "tv0.shape[1] was 5, now 7",
    ]
    lines = str(found).splitlines()
    assert lines[0] == "3 variants, 3 kernels"
    assert lines[1].startswith("static, 1 kernel in ")
    assert lines[3].endswith(" s, 3 signatures: tv0.shape[1] was 5, now 7")
    assert lines[4] == "    size0 = tv0.shape[1]"
    assert lines[5].startswith("    guard size0 <= ")
