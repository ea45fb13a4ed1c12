"""Facts about a segment -> the params of its kernel: rules, a cost model, search spaces."""

from .params import (
    ExprEvalParams,
    HeuristicParams,
    InnerOuterPersistentParams,
    InnerPersistentParams,
    KernelParams,
    MatmulParams,
    NoOpParams,
    OuterPersistentParams,
    PointwiseParams,
    ReductionParams,
    RowTiling,
    ScanParams,
    TransposeParams,
)
from .schedule import ReductionSplit, Rewrites, Schedule, SegmentSchedule

__all__ = [
    "ExprEvalParams",
    "HeuristicParams",
    "KernelParams",
    "InnerOuterPersistentParams",
    "InnerPersistentParams",
    "MatmulParams",
    "NoOpParams",
    "OuterPersistentParams",
    "PointwiseParams",
    "ReductionParams",
    "Rewrites",
    "RowTiling",
    "ScanParams",
    "Schedule",
    "SegmentSchedule",
    "ReductionSplit",
    "TransposeParams",
]
