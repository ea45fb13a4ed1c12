"""tritonfuser: nvFuser's fusion frontend, backed by Triton.

Record tensor operations in a ``FusionDefinition``, run them as few generated Triton kernels::

    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.exp(x), dims=[1]))

    (out,) = fd.run([torch.randn(4, 8)])
"""

from .dtypes import DataType
from .errors import (
    ArgumentError,
    CacheDirectoryError,
    CaptureError,
    DefinitionError,
    ExecutionModeError,
    IndexRangeError,
    InputError,
    InputShapeError,
    LoweringError,
    OptionError,
    ParamsError,
    SchedulingError,
    TritonFuserError,
    UndefinedFusionError,
    UnsupportedDeviceError,
)
from .frontend import multidevice
from .frontend.definition import FusionDefinition
from .frontend.inspect.audit import Audit
from .frontend.inspect.explain import Explanation, SegmentReport
from .frontend.inspect.printer import translate_fusion
from .frontend.inspect.profiler import (
    Profiler,
    ProfilerError,
    PythonProfiler,
    get_fusion_profile,
    reset_profiler,
)
from .frontend.inspect.profiles import FusionProfile, KernelProfile
from .frontend.inspect.tolerances import ValidationError
from .frontend.nvfuser.definition_cache import LRUCache, LruFusionCache
from .frontend.nvfuser.launch_params import CompileParams, LaunchParams
from .frontend.record.handles import (
    BroadcastOp,
    Expr,
    ReshapeOp,
    SqueezeOp,
    Statement,
    TensorView,
    Val,
)
from .frontend.record.iter_domains import IterDomain, Split
from .frontend.record.layouts import compute_tensor_descriptor
from .frontend.record.merged_dims import Merge
from .frontend.record.tensor_domain import TensorDomain
from .frontend.run.executors import FusionExecutorCache, KernelExecutor
from .frontend.run.fusion import Fusion, FusionGuard, define_scalar, define_tensor, ops
from .frontend.run.scheduler_queries import idm, schedule
from .frontend.run.validation import get_val_tolerances, validate_with_auto_inferred_outputs
from .frontend.vocabulary.enums import (
    CacheOp,
    CommunicatorBackend,
    IdMappingMode,
    LoadStoreOpType,
    MemoryType,
    ParallelType,
    SchedulerType,
)
from .frontend.vocabulary.unavailable import UnavailableError
from .frontend.vocabulary.version import __version__, version
from .heuristics.params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    InnerPersistentParams,
    MatmulParams,
    NoOpParams,
    OuterPersistentParams,
    PointwiseParams,
    ReductionParams,
    ScanParams,
    TransposeParams,
)
from .heuristics.schedule import ReductionSplit, Rewrites, Schedule, SegmentSchedule
from .integrations.dtensor import execute_with_dtensors

__all__ = [
    # recording and running
    "FusionDefinition",
    "DataType",
    "Fusion",
    "FusionGuard",
    "FusionExecutorCache",
    "KernelExecutor",
    "LRUCache",
    "LruFusionCache",
    "TensorView",
    "Val",
    "Expr",
    "Statement",
    "ops",
    "define_tensor",
    "define_scalar",
    "compute_tensor_descriptor",
    "translate_fusion",
    # checking
    "validate_with_auto_inferred_outputs",
    "get_val_tolerances",
    "Audit",
    # looking inside
    "Explanation",
    "SegmentReport",
    # profiling
    "Profiler",
    "PythonProfiler",
    "get_fusion_profile",
    "reset_profiler",
    "FusionProfile",
    "KernelProfile",
    # params
    "HeuristicParams",
    "NoOpParams",
    "PointwiseParams",
    "TransposeParams",
    "ReductionParams",
    "ReductionSplit",
    "Rewrites",
    "InnerPersistentParams",
    "OuterPersistentParams",
    "InnerOuterPersistentParams",
    "ScanParams",
    "Schedule",
    "SegmentSchedule",
    # errors
    "TritonFuserError",
    "ArgumentError",
    "CacheDirectoryError",
    "CaptureError",
    "DefinitionError",
    "ExecutionModeError",
    "IndexRangeError",
    "InputError",
    "InputShapeError",
    "LoweringError",
    "OptionError",
    "ParamsError",
    "ProfilerError",
    "SchedulingError",
    "UndefinedFusionError",
    "UnsupportedDeviceError",
    "UnavailableError",
    "ValidationError",
    # versions
    "version",
    "__version__",
    # nvFuser's enumerations
    "SchedulerType",
    "ParallelType",
    "LoadStoreOpType",
    "MemoryType",
    "CacheOp",
    "IdMappingMode",
    "CommunicatorBackend",
    # names that say what to do instead
    "schedule",
    "idm",
    "multidevice",
    "execute_with_dtensors",
    "IterDomain",
    "TensorDomain",
    "CompileParams",
    "LaunchParams",
    "MatmulParams",
    "Merge",
    "Split",
    "BroadcastOp",
    "SqueezeOp",
    "ReshapeOp",
]
