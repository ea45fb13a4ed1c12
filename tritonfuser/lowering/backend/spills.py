"""Registers and spilled bytes of a thread, as a cubin states them."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

_LOCAL = re.compile(r"\.local\s.*__local_depot\d+\[(\d+)\]")

_FRAME_SIZE, _REGISTERS = 0x11, 0x2F
"""Attributes of a function in a binary: bytes of its frame, registers of a thread."""

_FRAME_UNIT = 8
"""Bytes that the parts of a frame are rounded up to."""

_HAS_VALUE = 4
"""The form of attributes that are longer than a word: their bytes follow."""


def spilled_bytes(ptx: str, cubin: bytes) -> int:
    """Spilled bytes of a thread: its local frame without arrays.

    The assembler tells it in the binary, so nothing is assembled once more. 0 for a binary whose
    layout is another one.
    """
    arrays = sum(-(-int(size) // _FRAME_UNIT) * _FRAME_UNIT for size in _LOCAL.findall(ptx))
    return max(_largest(cubin, _FRAME_SIZE) - arrays, 0)


def registers_of(cubin: bytes) -> int:
    """Registers of a thread; 0 where the binary has an unknown layout."""
    return _largest(cubin, _REGISTERS)


def _largest(cubin: bytes, attribute: int) -> int:
    """The largest value of an attribute of all functions."""
    try:
        return max((value for kind, value in _attributes(cubin) if kind == attribute), default=0)
    except (struct.error, IndexError, ValueError):
        return 0


def _attributes(cubin: bytes) -> Iterator[tuple[int, int]]:
    """The attributes of functions, each with its value, of the section ``.nv.info`` of an ELF."""
    (sections,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, sections + n * size) for n in range(count)]
    text = headers[names][4]
    for name, _, _, _, place, length in headers:
        if cubin[text + name : cubin.index(b"\0", text + name)] == b".nv.info":
            yield from _of_section(cubin[place : place + length])


def _of_section(data: bytes) -> Iterator[tuple[int, int]]:
    place = 0
    while place + 4 <= len(data):
        form, kind, length = struct.unpack_from("<BBH", data, place)
        place += 4
        if form == _HAS_VALUE:
            if length == 8:
                # The number of the function, and the value.
                yield kind, struct.unpack_from("<II", data, place)[1]
            place += length
