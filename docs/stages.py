"""Writes the tour of ``architecture.md``: one definition through every stage, with real output.

``python docs/stages.py`` rewrites the part of the page between its two marks; a test compares.
"""

from __future__ import annotations

from pathlib import Path

import torch

from tritonfuser import DataType, FusionDefinition, devices
from tritonfuser.cache.keys.signature import signature
from tritonfuser.cache.plan.execution_plan import make_plan
from tritonfuser.ir import print_fusion
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.passes.simplify import simplify
from tritonfuser.lowering.pipeline import lower

PAGE = Path(__file__).with_name("architecture.md")
START = "<!-- stages: written by docs/stages.py -->"
END = "<!-- end of stages -->"


def definition() -> FusionDefinition:
    """A softmax over rows as a tracer records it: 16-bit in, computed in Float, 16-bit out."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.BFloat16)
        wide = fd.ops.cast(x, dtype=DataType.Float)
        top = fd.ops.broadcast(fd.ops.max(wide, dims=[1]), is_broadcast_dim=[False, True])
        exps = fd.ops.exp(fd.ops.sub(wide, top))
        total = fd.ops.broadcast(fd.ops.sum(exps, dims=[1]), is_broadcast_dim=[False, True])
        fd.add_output(fd.ops.cast(fd.ops.div(exps, total), dtype=DataType.BFloat16))
    return fd


def block(text: str, kind: str = "") -> str:
    return f"```{kind}\n{text.rstrip()}\n```"


def stages() -> str:
    """The tour as markdown."""
    fd = definition()
    inputs = [torch.empty(4096, 1000, dtype=torch.bfloat16, device="meta")]
    fusion = fd.fusion.ir
    cpu = torch.device("cpu")
    sizes = signature(fusion, inputs, cpu)
    concrete = concretize(fusion, sizes)
    here = devices.known("sm_90")
    lowered = lower(fusion, sizes, here)
    source = lowered.sources[0]
    assert source is not None
    report = fd.compile_for("sm_90", inputs)[0]
    facts = (
        f"registers {report.registers}, spilled bytes {report.spill_bytes}, "
        f"shared bytes {report.shared_bytes}, widest load {report.max_load_bytes} bytes, "
        f"widest store {report.max_store_bytes} bytes"
    )
    plan = make_plan(lowered, [torch.empty(4096, 1000, dtype=torch.bfloat16)], cpu, here)
    parts = [
        "**Recorded.** `repr(fd)` is the program that defines it.",
        block(repr(fd), "python"),
        "As IR, sizes still open:",
        block(print_fusion(fusion)),
        "**concretize**: called with a tensor of 4096 x 1000. Extents are numbers now; nothing "
        "else changed.",
        block(print_fusion(concrete)),
        "**simplify**: composites written out, copies and cast pairs gone, equal nodes one, dead "
        "ones dropped.\nSorts and scatters take what a lossless cast widened as it was before "
        "(`passes/narrow_operands.py`).",
        block(print_fusion(simplify(concrete))),
        "**segment** and **schedule**, for an H200: the loop nest `[rows; along]`, what is loaded "
        "and stored, why, and the params.",
        block(str(lowered.segmented)),
        "**emit**: a module that runs. The comments are the user's lines.",
        block(source.text, "python"),
        "**compile**, for `sm_90`, on any machine:",
        block(facts),
        "**bind**: the function a call runs. On a GPU the launch takes the place of `k0(...)`.",
        block(plan.text, "python"),
    ]
    return "\n\n".join(parts)


def page(text: str) -> str:
    """The page with the tour between its marks renewed."""
    head, rest = text.split(START)
    tail = rest.split(END)[1]
    return f"{head}{START}\n\n{stages()}\n\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
