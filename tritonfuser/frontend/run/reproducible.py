"""Repro scripts of a definition: programs that record it and run it on inputs like given ones."""

from __future__ import annotations

from ...errors import ExecutionModeError
from ..inspect.input_text import describe_inputs
from ..inspect.repro import repro_script
from ..record.inputs import Inputs, flatten_inputs
from ..vocabulary.location import user_line
from ..vocabulary.version import version
from .tunable import Tunable


class Reproducible(Tunable):
    """A definition that writes the program of a run. ``repr`` is the program of the definition."""

    namespace: str

    def repro_script_for(self, inputs: Inputs | None = None) -> str:
        """A program, as text, that records this definition and runs it on inputs like these."""
        fusion = self._ready()
        if inputs is None:
            return self._script(None)
        return self._script(describe_inputs(fusion.ir, flatten_inputs(inputs)))

    def last_repro_script(self) -> str:
        """``repro_script_for`` the inputs of the last ``run(inputs, save_repro_inputs=True)``."""
        if self._repro_inputs is None:
            raise ExecutionModeError(
                "fd.last_repro_script() cannot provide a repro because fd.execute(inputs, "
                "save_repro_inputs=True) was not executed!",
                loc=user_line(),
            )
        return self._script(self._repro_inputs)

    def _script(self, inputs: list[str] | None) -> str:
        self._ready()
        ours = self.namespace == "tritonfuser"
        module, method = ("tritonfuser", "run") if ours else ("nvfuser_direct", "execute")
        return repro_script(repr(self), inputs, module=module, method=method, version=version())
