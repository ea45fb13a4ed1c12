"""The facts of one kernel that schedulers and the cost model decide by."""

from .core import Core
from .element_work import ElementWork
from .problem import Problem

__all__ = ["Core", "ElementWork", "Problem"]
