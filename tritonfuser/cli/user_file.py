"""``FILE.py:function``: a function of a user's file, loaded from its path."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from ..errors import TritonFuserError
from ..frontend.definition import FusionDefinition
from .error_text import complaint

CONTRACT = "it must return (fd, inputs): a FusionDefinition, and a list for fd.run"

MODULE = "tritonfuser_user_file"
"""The name that the file has as a module: not ``__main__``, so what a script does is not done."""


def load_function(given: str) -> Callable[..., Any]:
    """The function that ``FILE.py:function`` names. The file is executed, as an import does.

    Raises
    ------
    click.BadParameter
        There is no such file, or no such function in it.
    click.ClickException
        The file cannot be imported.
    """
    file, colon, name = given.rpartition(":")
    if not colon or not name.isidentifier():
        raise click.BadParameter(f"{given!r} is not of the form FILE.py:function")
    path = Path(file)
    if not path.is_file():
        raise click.BadParameter(f"there is no file {file!r}")
    module = _loaded(path)
    found = getattr(module, name, None)
    if not callable(found):
        known = [key for key, item in vars(module).items() if _is_own(item, module)]
        hint = f"; it has {', '.join(known)}" if known else ""
        raise click.BadParameter(f"{file} has no function {name!r}{hint}")
    function: Callable[..., Any] = found
    return function


def _is_own(item: object, module: ModuleType) -> bool:
    return callable(item) and getattr(item, "__module__", None) == module.__name__


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE, path.resolve())
    loader = None if spec is None else spec.loader
    if spec is None or loader is None:
        raise click.BadParameter(f"{path} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    # As `python FILE.py` does, so that the file finds its neighbours.
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[MODULE] = module
    called(lambda: loader.exec_module(module), f"{path} cannot be imported")
    return module


def made_by(
    function: Callable[..., Any], sizes: tuple[int, ...], name: str
) -> tuple[FusionDefinition, Any]:
    """The definition and the inputs that a function of the user's returns for given sizes.

    Raises
    ------
    click.ClickException
        It cannot be called with them, raises, or returns something else.
    """
    _check_arguments(function, sizes, name)
    made = called(lambda: function(*sizes), f"{name} failed")
    if not isinstance(made, tuple) or len(made) != 2:
        raise click.ClickException(f"{name} returned {type(made).__name__}: {CONTRACT}")
    fd, inputs = made
    if not isinstance(fd, FusionDefinition):
        raise click.ClickException(f"{name} returned a {type(fd).__name__} first: {CONTRACT}")
    if not isinstance(inputs, list | tuple):
        got = type(inputs).__name__
        raise click.ClickException(f"{name} returned a {got} second: {CONTRACT}")
    return fd, inputs


def _check_arguments(function: Callable[..., Any], sizes: tuple[int, ...], name: str) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:  # of a function that is not written in Python
        return
    try:
        signature.bind(*sizes)
    except TypeError as error:
        took = "the sizes" if sizes else "no arguments: --sizes gives some"
        raise click.ClickException(
            f"{name} cannot be called: its parameters are {signature}, and it is given {took}. "
            f"It makes the definition itself; {CONTRACT}"
        ) from error


def called(function: Callable[[], Any], what: str) -> Any:
    """What the user's code returns; where it raises, its traceback and ``what`` was tried.

    Raises
    ------
    click.ClickException
        It raised. An error of ours has the user's line already.
    """
    try:
        return function()
    except TritonFuserError as error:
        told = f"{what}: {type(error).__name__}: {complaint(error)}"
        raise click.ClickException(told) from error
    except (Exception, SystemExit) as error:
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        click.echo("".join(lines).rstrip(), err=True)
        raise click.ClickException(f"{what}: {type(error).__name__}") from error
