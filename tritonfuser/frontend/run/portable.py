"""``to_dict``, ``from_dict``, copy and pickle of definitions.

The data names ops, values and numbers. Reading it records the ops again through the op table, and
executes nothing. Plans and kernels do not travel: they are made again by the first run.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ...errors import ArgumentError, DefinitionError
from ..serialization.encode import refuse_open
from ..vocabulary.location import user_line
from .fusion import Fusion
from .reproducible import Reproducible

Definition = TypeVar("Definition", bound="Portable")

_NOT_COPIED = frozenset(
    (
        "_cache",
        "_device_input",
        "_devices",
        "_fast_path",
        "_fec",
        "_fusion",
        "_given",
        "_guard",
        "_ke",
        "_repro_inputs",
        "ops",
        "sched",
    )
)
"""Attributes that a copy gets anew; what else a program set on a definition is copied with it."""


class Portable(Reproducible):
    """A definition that can be copied, pickled, and written as plain data."""

    _given: Fusion | None

    def to_dict(self) -> dict[str, Any]:
        """The definition as plain data that JSON can hold: inputs, ops with arguments, outputs.

        Returns
        -------
        dict
            Of dicts, lists, strings, numbers, booleans and None. ``version`` says which versions
            of the package can read it. Lines of the program that recorded it are in it.

        Raises
        ------
        UndefinedFusionError
            Nothing was recorded, or no output.
        DefinitionError
            It is still being recorded.

        Examples
        --------
        >>> text = json.dumps(fd.to_dict())
        >>> again = FusionDefinition.from_dict(json.loads(text))
        """
        return self._ready().to_dict()

    @classmethod
    def from_dict(cls: type[Definition], data: dict[str, Any]) -> Definition:
        """A definition of this class, recorded again from the data of ``to_dict``.

        Every op is recorded again: an op of the data has to be in the op table and to take its
        arguments. Nothing in the data is executed, and no file that it names is opened.

        Parameters
        ----------
        data : dict
            From ``to_dict()`` of this or of an older version; it may have been through JSON.

        Raises
        ------
        DefinitionError
            A RuntimeError: the data is no definition; it says where and what was expected.
        ArgumentError
            A TypeError: an op does not take an argument of such a type.
        """
        fusion = Fusion.from_dict(data)
        if not fusion.defined():
            raise DefinitionError(
                "from_dict: outputs: expected at least one output, got []",
                loc=user_line(),
                hint="to_dict() refuses a definition without outputs: add them to the data.",
            )
        fusion.cuda_only = cls.cuda_only
        fusion.namespace = cls.namespace
        return restored_definition(cls, fusion)

    def __reduce__(self) -> tuple[Any, ...]:
        fusion = self._fusion
        if fusion is None and self._fec is not None:
            fusion = self._fec.fusion()
        for recording in (fusion, self._given):
            if recording is not None:
                refuse_open(recording)
        state = {key: value for key, value in vars(self).items() if key not in _NOT_COPIED}
        given = self._given if fusion is None else None
        return restored_definition, (type(self), fusion, given), state or None

    def _start(self, given: Fusion | None) -> None:
        """Set what a new definition has."""
        raise NotImplementedError

    def _restored(self) -> None:
        """For subclasses: called when a recorded definition was made of data."""


def restored_definition(
    cls: type[Definition], fusion: Fusion | None = None, given: Fusion | None = None
) -> Definition:
    """A definition with a recorded fusion. Copies and pickles of definitions call it.

    Parameters
    ----------
    cls : type
        FusionDefinition or a class derived from it; its ``__init__`` is not called.
    fusion : Fusion, optional
        What was recorded.
    given : Fusion, optional
        What it is to record into.

    Raises
    ------
    ArgumentError
        An argument is of another type.
    DefinitionError
        ``fusion`` is still being recorded.
    """
    fits = isinstance(cls, type) and issubclass(cls, Portable)
    if not fits or not all(one is None or isinstance(one, Fusion) for one in (fusion, given)):
        raise ArgumentError(
            "restored_definition(): incompatible function arguments: expected a class derived "
            f"from FusionDefinition, a Fusion and a Fusion, got {cls!r}, {fusion!r}, {given!r}",
            loc=user_line(),
        )
    made = cls.__new__(cls)
    made._start(given)
    if fusion is not None:
        refuse_open(fusion)
        made._fusion = fusion
        made._restored()
    return made
