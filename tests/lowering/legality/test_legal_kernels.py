"""Whether one kernel can hold an anchor with what a group has: the answers, one by one."""

from __future__ import annotations

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, lowered
from tritonfuser.lowering.fuse.grouper import Grouper
from tritonfuser.lowering.fuse.rewritten import Rewritten
from tritonfuser.lowering.fuse.rules import Rules
from tritonfuser.lowering.legality.kernel import CIRCLE, why_not_one_kernel
from tritonfuser.lowering.legality.loop_nests import Nesting, nesting_of


def grouper_of(body, *inputs):
    """A grouping of a definition, as the compiler ends with."""
    found = lowered(body, inputs, H200, two_steps=False).segmented.fusion
    return Grouper(Rewritten(found), Rules(H200))


def maker_of(grouper, op):
    """The first node of an op."""
    return next(node for node in grouper.fusion.nodes if node.op == op)


def answer(grouper, anchor, group):
    """How the anchor lies in the group, and why the two are no kernel."""
    nesting = nesting_of(anchor, group, co_reduces=False)
    assert nesting is not None
    home_index = grouper.maker.home_index
    return nesting, why_not_one_kernel(anchor, group, nesting, home_index, grouper.graph)


def test_what_is_computed_from_the_rows_of_a_kernel_can_be_in_it():
    def body(fd, x):
        return fd.ops.mul(x, fd.ops.sum(x, [1], keepdim=True))

    grouper = grouper_of(body, noise(64, 32))
    (group,) = grouper.groups
    store = grouper.maker.store(maker_of(grouper, "mul").out)
    assert answer(grouper, store, group) == (Nesting.SAME_AXES, None)


def test_what_reads_a_later_groups_result_cannot_join_the_kernel_before_it():
    def body(fd, x):
        sums = fd.ops.sum(x, [1])
        order = fd.ops.broadcast_in_dim(fd.ops.argsort(sums, 0), [64, 32], [0])
        return fd.ops.mul(x, order)

    grouper = grouper_of(body, noise(64, 32))
    first = grouper.groups[0]
    store = grouper.maker.store(maker_of(grouper, "mul").out)
    assert answer(grouper, store, first) == (Nesting.SAME_AXES, CIRCLE)


def test_a_result_is_read_where_it_is_computed_or_by_another_kernel():
    def body(fd, x):
        sums = fd.ops.sum(x, [1])
        return fd.ops.mul(x, fd.ops.broadcast_in_dim(sums, [32, 32], [1]))

    grouper = grouper_of(body, noise(32, 32))
    first = grouper.groups[0]
    store = grouper.maker.store(maker_of(grouper, "mul").out)
    nesting, reason = answer(grouper, store, first)
    assert nesting is Nesting.SAME_AXES
    assert reason is not None and reason.endswith("another index than where the kernel computes it")


def test_reductions_along_other_memory_directions_are_apart():
    def body(fd, x, y):
        return fd.ops.sum(x, [1]), fd.ops.sum(y, [0])

    grouper = grouper_of(body, noise(64, 32), noise(32, 64))
    first = grouper.groups[0]
    sums = [node for node in grouper.fusion.nodes if node.op == "sum"]
    (apart,) = (node for node in sums if node != first.members[0].node)
    other = grouper.maker.reducer(apart)
    assert nesting_of(other, first, co_reduces=False) is Nesting.SAME_EXTENTS
    reason = grouper.joining.joined(other, first, grouper.graph)
    assert reason == "it reduces along the other memory direction"
