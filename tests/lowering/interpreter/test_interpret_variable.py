"""Where the user has Triton interpret everything, by its environment variable."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import torch
from tritonfuser import FusionDefinition
x = torch.randn(5, 40)
with FusionDefinition() as fd:
    t = fd.from_pytorch(x)
    fd.add_output(fd.ops.cumsum(t, 1))
    fd.add_output(fd.ops.max(t, [1]))
    fd.add_output(fd.ops.tanh(t))
found = fd.run([x])
wanted = [x.cumsum(1), x.amax(1), x.tanh()]
for one, true in zip(found, wanted, strict=True):
    torch.testing.assert_close(one, true)
"""


def test_functions_of_the_library_are_found():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True)


COMPILED = """
import torch
from tritonfuser import FusionDefinition
from tritonfuser.errors import OptionError
x = torch.empty(64, 1 << 20, device="meta")
with FusionDefinition() as fd:
    t = fd.from_pytorch(x)
    fd.add_output(fd.ops.sum(fd.ops.div(t, t), [1]))
try:
    fd.compile_for("sm_90", [x])
except OptionError as error:
    assert "TRITON_INTERPRET" in str(error), error
else:
    raise AssertionError("nothing was refused")
"""


def test_what_cannot_be_compiled_then_says_why():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", COMPILED], env=environment, check=True)
