"""``doctor``: what is installed, what is used of the machine, and whether a definition runs."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import click
import torch
import triton
from tabulate import tabulate

from .. import devices, disk, options
from ..device import DeviceProperties
from ..errors import TritonFuserError
from ..frontend.definition import FusionDefinition
from ..frontend.vocabulary.version import version
from ..lowering.backend.triton_cache import directory, write_problem


@dataclass(frozen=True)
class Section:
    """A part of the report: a title, rows of name and text, and whether anything is wrong."""

    title: str
    rows: list[tuple[str, str]]
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.title, tabulate(self.rows, tablefmt="plain")]
        lines += [f"PROBLEM: {problem}" for problem in self.problems]
        return "\n  ".join("\n".join(lines).split("\n"))


@click.command(short_help="Say whether this machine is set up, and what is used of it.")
def doctor() -> None:
    """Say whether this machine is set up, and what is used of it.

    Versions, GPUs with the facts that heuristics use, the compiler, directories for compiled
    kernels, options that are set, and one small definition run. The exit status is 1 where
    something is wrong.
    """
    problems = 0
    for section in sections():
        click.echo(f"{section}\n")
        problems += len(section.problems)
    click.echo("All is well." if not problems else f"Problems: {problems}, marked above.")
    if problems:
        raise SystemExit(1)


def sections() -> Iterator[Section]:
    """The report, in order."""
    yield versions()
    yield gpus()
    yield compiler()
    yield directories()
    yield settings()
    yield tiny_run()


def versions() -> Section:
    """What is installed."""
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
    built = f"ROCm {torch.version.hip}" if torch.version.hip else built
    rows = [
        ("tritonfuser", version()),
        ("python", platform.python_version()),
        ("torch", f"{torch.__version__}, built for {built}"),
        ("triton", triton.__version__),
    ]
    return Section("Versions", rows)


def gpus() -> Section:
    """GPUs, with what heuristics know of them."""
    if not torch.cuda.is_available():
        text = "none: CPU tensors run in Triton's interpreter, fd.compile_for compiles for GPUs"
        return Section("GPUs", [("found", text)])
    rows, problems = [], []
    for index in range(torch.cuda.device_count()):
        try:
            text = facts_text(devices.of(torch.device("cuda", index)))
        except TritonFuserError as error:
            text = facts_text(devices.built_in(index))
            problems.append(error.message)
        rows.append((f"cuda:{index}", text))
    return Section("GPUs", rows, tuple(problems))


def facts_text(found: DeviceProperties) -> str:
    """The facts of a device on one line."""
    return (
        f"{found.name}, {found.arch}: {found.sm_count} multiprocessors, "
        f"{found.shared_bytes_per_sm >> 10} KiB shared memory each, "
        f"{found.l2_bytes / 2**20:.0f} MiB L2, "
        f"{found.bandwidth_bytes_per_s / 1e12:.2f} TB/s for a copy"
    )


def compiler() -> Section:
    """The C compiler, which Triton builds launchers with, as Triton looks for it."""
    found = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    path = shutil.which(found) if found else None
    if path is None:
        what = (
            f"CC is {found!r}, which is no program" if found else "neither gcc nor clang is there"
        )
        # Without a GPU nothing is launched.
        problems = (f"{what}: install gcc, or set CC",) if torch.cuda.is_available() else ()
        return Section("C compiler", [("found", f"none: {what}")], problems)
    command = [path, "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    first = (ran.stdout.splitlines() or ["no answer to --version"])[0]
    return Section("C compiler", [(path, first)])


def directories() -> Section:
    """Where compiled kernels are kept, and tuned schedules."""
    rows, problems = [], []
    folders = [("TRITON_CACHE_DIR", directory())]
    with suppress(TritonFuserError):  # options that are wrong have a section of their own
        folders.append(("TRITONFUSER_CACHE_DIR", disk.cache_folder()))
    for variable, folder in folders:
        problem = write_problem(folder)
        rows.append((str(folder), problem or "can be written to"))
        if problem:
            problems.append(f"set {variable} to a directory that can be written to: {problem}")
    return Section("Compiled kernels, tuned schedules", rows, tuple(problems))


def settings() -> Section:
    """The options that are set, and what each means."""
    try:
        current = options.refresh()
    except TritonFuserError as error:
        return Section("Options", [("set", "wrongly")], (error.message,))
    rows = [
        (f"{row.env}={os.environ[row.env]}", row.doc)
        for row in options.table()
        if getattr(current, row.name) != row.default
    ]
    return Section("Options", rows or [("set", "none; docs/options.md lists all")])


def tiny_run() -> Section:
    """A small definition on the GPU, or in the interpreter, with its result checked."""
    where = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        with FusionDefinition() as fd:
            x = fd.define_tensor([-1, -1], contiguity=True)
            fd.add_output(fd.ops.sum(x * 2.0 + 1.0, dims=[1]))
        given = torch.arange(8 * 32, dtype=torch.float32, device=where).reshape(8, 32)
        first, out = _timed(fd, given)
        again, out = _timed(fd, given)
    except Exception as error:
        return Section("A definition", [("ran", "no")], (f"{type(error).__name__}: {error}",))
    right = torch.equal(out, (given * 2.0 + 1.0).sum(1))
    place = "cuda" if where == "cuda" else "the CPU, by the interpreter"
    what = f"first run {first:.3f} s, next {again * 1e6:.0f} us on {place}"
    problems = () if right else ("its result is wrong",)
    return Section("A definition", [("sum(2 x + 1) of [8, 32]", what)], problems)


def _timed(fd: FusionDefinition, given: torch.Tensor) -> tuple[float, torch.Tensor]:
    started = time.perf_counter()
    (out,) = fd.run([given])
    if out.is_cuda:
        torch.cuda.synchronize(out.device)
    return time.perf_counter() - started, out
