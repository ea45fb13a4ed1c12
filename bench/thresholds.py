"""``python -m bench.thresholds``: how many comparisons of a fact with a number heuristics have.

A comparison counts where one side is a number (``rows < 64``, ``moved >= MIDDLING``) or scales the
other (``4 * own >= total``). Numbers are literals, names in capitals, arithmetic of those, and
names of a function that stand for such: ``low, high = SPAN``, ``for most, step in STEPS``,
``wanted = 16 * sms``. 0 and 1 alone do not count: they ask whether there is something, or more
than one.

With ``--base REV`` those of a revision stand beside those of the working tree.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .tables.formatting import table

FOLDER = "tritonfuser/heuristics"
ROOT = Path(__file__).parents[1]

_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_SCALES = (ast.Mult, ast.Div, ast.FloorDiv, ast.LShift, ast.RShift)
_PLAIN = (0, 1)


@dataclass(frozen=True)
class Comparison:
    """One comparison of a fact with a number.

    Attributes
    ----------
    line : int
        Where it begins.
    text : str
        As it is written.
    scaled : bool
        Whether the number scales a fact, and is not a side by itself.
    """

    line: int
    text: str
    scaled: bool


def comparisons(text: str) -> Iterator[Comparison]:
    """The comparisons of facts with numbers in the text of a module."""
    for scope in _scopes(ast.parse(text)):
        names = _meanings(scope)
        for node in scope:
            if isinstance(node, ast.Compare):
                yield from _of_one(node, names)


def _of_one(node: ast.Compare, names: Mapping[str, ast.expr]) -> Iterator[Comparison]:
    """Those of one chain."""
    written = [node.left, *node.comparators]
    sides = [(side, _written_out(side, names)) for side in written]
    for left, order, right in zip(sides, node.ops, sides[1:], strict=False):
        found = None
        if isinstance(order, _ORDERS):
            found = _kind(left[0], right[0]) or _kind(left[1], right[1])
        if found is not None:
            yield Comparison(node.lineno, ast.unparse(node), found == "scaled")


def _kind(left: ast.expr, right: ast.expr) -> str | None:
    """ "number" or "scaled"; None where no number counts."""
    numbers = [side for side in (left, right) if _is_number(side)]
    if len(numbers) == 2:
        return None
    if len(numbers) == 1:
        return None if _is_plain(numbers[0]) else "number"
    return "scaled" if _scales(left) or _scales(right) else None


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.IfExp):
        return _is_number(node.body) and _is_number(node.orelse)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return bool(name) and name.isupper()


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _PLAIN


def _scales(side: ast.expr) -> bool:
    """Whether a side is a fact times or by a number."""
    if not isinstance(side, ast.BinOp):
        return False
    if isinstance(side.op, _SCALES):
        numbers = [part for part in (side.left, side.right) if _is_number(part)]
        if numbers and not _is_plain(numbers[0]):
            return True
    return _scales(side.left) or _scales(side.right)


# --- names of a function -------------------------------------------------------------------------


def _scopes(module: ast.Module) -> Iterator[list[ast.AST]]:
    """The nodes of each function, and those of the module outside of functions."""
    left: list[ast.AST] = [module]
    while left:
        scope = [left.pop()]
        for node in scope:
            for child in ast.iter_child_nodes(node):
                (left if isinstance(child, ast.FunctionDef) else scope).append(child)
        yield scope


def _meanings(scope: list[ast.AST]) -> dict[str, ast.expr]:
    """What names that are bound once stand for."""
    found: dict[str, ast.expr | None] = {}
    for node in scope:
        for name, value in _bound(node):
            found[name] = value if name not in found else None
    return {name: value for name, value in found.items() if value is not None}


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Names that a node binds, and what to; None where that is not plain."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield from _pairs(node.targets[0], node.value)
    elif isinstance(node, ast.For | ast.comprehension):
        yield from _pairs(node.target, _rows(node.iter))
    elif isinstance(node, ast.NamedExpr | ast.AnnAssign):
        yield from _pairs(node.target, node.value)
    elif isinstance(node, ast.AugAssign):
        yield from _pairs(node.target, None)
    elif isinstance(node, ast.arg):
        yield node.arg, None


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    """Names of a target with their parts of a value."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        values = [_entry(value)] * len(target.elts)
        if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            values = list(value.elts)
        for each, of in zip(target.elts, values, strict=True):
            yield from _pairs(each, of)


def _entry(value: ast.expr | None) -> ast.expr | None:
    """An entry of a constant table, of which no more is known than that it is constant."""
    return value if value is not None and _is_number(value) else None


def _rows(table: ast.expr) -> ast.expr | None:
    """A row of a constant table: ``STEPS``, ``STEPS.items()``."""
    if isinstance(table, ast.Call) and isinstance(table.func, ast.Attribute):
        return _entry(table.func.value)
    return _entry(table)


def _written_out(side: ast.expr, names: Mapping[str, ast.expr], depth: int = 4) -> ast.expr:
    """A side with the values of its names in their place."""
    if isinstance(side, ast.Name) and depth and side.id in names:
        return _written_out(names[side.id], names, depth - 1)
    if isinstance(side, ast.BinOp):
        left, right = (_written_out(part, names, depth) for part in (side.left, side.right))
        return ast.BinOp(left, side.op, right)
    return side


# --- files ---------------------------------------------------------------------------------------


def here() -> dict[str, str]:
    """The texts of the modules of the working tree, by path below the folder."""
    folder = ROOT / FOLDER
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*.py"))}


def at(revision: str) -> dict[str, str]:
    """The texts of the modules of a revision.

    Raises
    ------
    SystemExit
        git knows no such revision.
    """
    listed = _git("ls-tree", "-r", "--name-only", "--end-of-options", revision, "--", FOLDER)
    names = [name for name in listed.splitlines() if name.endswith(".py")]
    return {
        name.removeprefix(f"{FOLDER}/"): _git("show", "--end-of-options", f"{revision}:{name}")
        for name in names
    }


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"python -m bench.thresholds: {done.stderr.strip()}")
    return done.stdout


def counted(texts: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """By module: comparisons with a number, and those scaled by one; none without either."""
    found = {}
    for name, text in texts.items():
        scaled = [comparison.scaled for comparison in comparisons(text)]
        if scaled:
            found[name] = (len(scaled) - sum(scaled), sum(scaled))
    return found


def report(now: Mapping[str, str], before: Mapping[str, str] | None = None) -> str:
    """A table of the modules, and the totals."""
    counts = {"now": counted(now)}
    if before is not None:
        counts = {"before": counted(before), **counts}
    names = sorted({name for found in counts.values() for name in found})
    rows = [_row(name, counts) for name in names]
    totals = {when: sum(map(sum, found.values())) for when, found in counts.items()}
    lines = [table(rows), ", ".join(f"{when} {total}" for when, total in totals.items())]
    if before is not None and totals["before"]:
        lines.append(f"{totals['now'] / totals['before']:.0%} of before")
    return "\n\n".join(lines)


def _row(name: str, counts: Mapping[str, Mapping[str, tuple[int, int]]]) -> dict[str, Any]:
    cells: dict[str, Any] = {"module": name}
    for when, found in counts.items():
        with_number, scaled = found.get(name, (0, 0))
        cells |= {f"{when}: with a number": with_number, f"{when}: scaled by one": scaled}
    return cells


def main() -> None:
    """Parse the command line, count, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.thresholds", description=__doc__)
    parser.add_argument("--base", metavar="REV", help="a revision to compare with")
    parser.add_argument("--list", action="store_true", help="print each comparison")
    options = parser.parse_args()
    now = here()
    if options.list:
        for name, text in now.items():
            for found in comparisons(text):
                print(f"{FOLDER}/{name}:{found.line}: {found.text}")
        return
    print(report(now, None if options.base is None else at(options.base)))


if __name__ == "__main__":
    main()
