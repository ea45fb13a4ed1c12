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
    CaptureError,
    DefinitionError,
    ExecutionModeError,
    InputError,
    LoweringError,
    OptionError,
    ParamsError,
    SchedulingError,
    TritonFuserError,
    UndefinedFusionError,
    UnsupportedDeviceError,
)
from .frontend import multidevice
from .frontend.audit import Audit
from .frontend.definition import FusionDefinition
from .frontend.domains import IterDomain, Merge, Split, TensorDomain
from .frontend.enums import (
    CacheOp,
    CommunicatorBackend,
    IdMappingMode,
    LoadStoreOpType,
    MemoryType,
    ParallelType,
    SchedulerType,
)
from .frontend.executors import FusionExecutorCache, KernelExecutor
from .frontend.explain import Explanation, SegmentReport
from .frontend.fusion import Fusion, FusionGuard, define_scalar, define_tensor, ops
from .frontend.handles import (
    BroadcastOp,
    Expr,
    ReshapeOp,
    SqueezeOp,
    Statement,
    TensorView,
    Val,
)
from .frontend.launch import CompileParams, LaunchParams
from .frontend.layouts import compute_tensor_descriptor
from .frontend.lru import LRUCache, LruFusionCache
from .frontend.printer import translate_fusion
from .frontend.profiler import (
    Profiler,
    ProfilerError,
    PythonProfiler,
    get_fusion_profile,
    reset_profiler,
)
from .frontend.profiles import FusionProfile, KernelProfile
from .frontend.schedule import idm, schedule
from .frontend.tolerances import ValidationError
from .frontend.unavailable import UnavailableError
from .frontend.validation import get_val_tolerances, validate_with_auto_inferred_outputs
from .frontend.version import __version__, version
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
    "InnerPersistentParams",
    "OuterPersistentParams",
    "InnerOuterPersistentParams",
    "ScanParams",
    # errors
    "TritonFuserError",
    "ArgumentError",
    "CaptureError",
    "DefinitionError",
    "ExecutionModeError",
    "InputError",
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
