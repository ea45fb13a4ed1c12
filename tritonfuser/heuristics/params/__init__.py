"""What a scheduler decides for one kernel: a frozen dataclass for each, to a plain dict and back.

Block sizes are in elements and powers of two, as Triton requires. Axis x runs over the positions of
the output, axis r over the elements that are reduced.
"""

from .base import PARAMS, HeuristicParams, KernelParams, RowTiling, without_retired
from .fields import MAX_STAGES, MAX_TAILS
from .flat import PointwiseParams, TransposeParams
from .product import MatmulParams
from .row_loops import InnerOuterPersistentParams
from .rows import InnerPersistentParams, OuterPersistentParams, ReductionParams, ScanParams
from .without_kernel import ExprEvalParams, NoOpParams

__all__ = [
    "MAX_STAGES",
    "MAX_TAILS",
    "PARAMS",
    "ExprEvalParams",
    "HeuristicParams",
    "InnerOuterPersistentParams",
    "InnerPersistentParams",
    "KernelParams",
    "MatmulParams",
    "NoOpParams",
    "OuterPersistentParams",
    "PointwiseParams",
    "ReductionParams",
    "RowTiling",
    "ScanParams",
    "TransposeParams",
    "without_retired",
]

PARAMS.update(
    {
        cls.scheduler: cls
        for cls in (
            NoOpParams,
            PointwiseParams,
            TransposeParams,
            ReductionParams,
            InnerPersistentParams,
            OuterPersistentParams,
            InnerOuterPersistentParams,
            ScanParams,
            MatmulParams,
            ExprEvalParams,
        )
    }
)
