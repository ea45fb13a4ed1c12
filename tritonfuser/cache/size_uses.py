"""How kernels of one constant size differ from those with open sizes."""

from __future__ import annotations

import ast

from ..lowering.kernel_source import KernelSource
from ..lowering.lowered import Lowered


def differs_in_masks_alone(opened: Lowered, alone: Lowered) -> bool:
    """Whether kernels for one size differ from those with open sizes in nothing but masks.

    The same schedule, and sizes that say where masks end and are in no address and no loop. Such
    flat kernels take as long (1.00 times at the median of 24 sizes, 1.07 at most, on an H200).
    """
    pairs = list(zip(opened.segmented.segments, alone.segmented.segments, strict=False))
    if len(opened.sources) != len(alone.sources) or any(a.params != b.params for a, b in pairs):
        return False
    return all(source is None or _ends_masks_alone(source) for source in opened.sources)


def has_other_kernels(opened: Lowered, alone: Lowered) -> bool:
    """Whether a size alone is cut into other kernels: one of them has no form for open sizes."""
    one, other = ([p.scheduler for p in side.segmented.segments] for side in (opened, alone))
    return one != other


def _ends_masks_alone(source: KernelSource) -> bool:
    """Whether the functions of a kernel only compare with its sizes."""
    names = {arg.name for arg in source.sizes}
    functions = [f for f in ast.parse(source.text).body if isinstance(f, ast.FunctionDef)]
    kernels = [f for f in functions if f.name != "launch"]
    return not source.inverses and not any(_uses(f, names) for f in kernels)


def _uses(node: ast.AST, names: set[str]) -> bool:
    """Whether sizes are used otherwise than in comparisons and in hints of what divides them."""
    if isinstance(node, ast.Compare):
        return False
    if isinstance(node, ast.Assign) and any(_is_one(target, names) for target in node.targets):
        return False
    if isinstance(node, ast.Name):
        return node.id in names
    return any(_uses(part, names) for part in ast.iter_child_nodes(node))


def _is_one(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names
