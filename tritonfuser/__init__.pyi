"""The names of ``tritonfuser``, typed: written by docs/exports.py."""

from . import compat as compat
from . import errors as errors
from . import integrations as integrations
from . import multidevice as multidevice
from . import options as options
from .cache.calls.cuda_graphs import CapturedGraph as CapturedGraph
from .cache.calls.diagnosis import InputMismatch as InputMismatch
from .cache.keys.recompiles import Recompile as Recompile
from .cache.keys.recompiles import Recompiles as Recompiles
from .dtypes import DataType as DataType
from .errors import ArgumentError as ArgumentError
from .errors import CacheDirectoryError as CacheDirectoryError
from .errors import CaptureError as CaptureError
from .errors import DefinitionError as DefinitionError
from .errors import ExecutionModeError as ExecutionModeError
from .errors import IndexRangeError as IndexRangeError
from .errors import InputError as InputError
from .errors import InputShapeError as InputShapeError
from .errors import LoweringError as LoweringError
from .errors import OptionError as OptionError
from .errors import ParamsError as ParamsError
from .errors import SchedulingError as SchedulingError
from .errors import SourceLoc as SourceLoc
from .errors import TritonFuserError as TritonFuserError
from .errors import UndefinedFusionError as UndefinedFusionError
from .errors import UnsupportedDeviceError as UnsupportedDeviceError
from .frontend.definition import FusionDefinition as FusionDefinition
from .frontend.inspect.audit import Audit as Audit
from .frontend.inspect.audit import AuditRow as AuditRow
from .frontend.inspect.explain import Explanation as Explanation
from .frontend.inspect.oracle import NoReferenceError as NoReferenceError
from .frontend.inspect.printer import translate_fusion as translate_fusion
from .frontend.inspect.profiler import Profiler as Profiler
from .frontend.inspect.profiler import ProfilerError as ProfilerError
from .frontend.inspect.profiler import PythonProfiler as PythonProfiler
from .frontend.inspect.profiler import get_fusion_profile as get_fusion_profile
from .frontend.inspect.profiler import reset_profiler as reset_profiler
from .frontend.inspect.profiles import FusionProfile as FusionProfile
from .frontend.inspect.profiles import KernelProfile as KernelProfile
from .frontend.inspect.segment_report import SegmentReport as SegmentReport
from .frontend.inspect.tolerances import ValidationError as ValidationError
from .frontend.nvfuser.definition_cache import LRUCache as LRUCache
from .frontend.nvfuser.definition_cache import LruFusionCache as LruFusionCache
from .frontend.nvfuser.launch_params import CompileParams as CompileParams
from .frontend.nvfuser.launch_params import LaunchParams as LaunchParams
from .frontend.record.iter_domains import IterDomain as IterDomain
from .frontend.record.iter_domains import Split as Split
from .frontend.record.layouts import compute_tensor_descriptor as compute_tensor_descriptor
from .frontend.record.merged_dims import Merge as Merge
from .frontend.record.op_expressions import BroadcastOp as BroadcastOp
from .frontend.record.op_expressions import ReshapeOp as ReshapeOp
from .frontend.record.op_expressions import SqueezeOp as SqueezeOp
from .frontend.record.statements import Expr as Expr
from .frontend.record.statements import Statement as Statement
from .frontend.record.tensor_domain import TensorDomain as TensorDomain
from .frontend.record.tensor_view import TensorView as TensorView
from .frontend.record.val import Val as Val
from .frontend.run.bound_plan import BoundPlan as BoundPlan
from .frontend.run.executors import FusionExecutorCache as FusionExecutorCache
from .frontend.run.executors import KernelExecutor as KernelExecutor
from .frontend.run.fusion import Fusion as Fusion
from .frontend.run.fusion import FusionGuard as FusionGuard
from .frontend.run.fusion import define_scalar as define_scalar
from .frontend.run.fusion import define_tensor as define_tensor
from .frontend.run.fusion import ops as ops
from .frontend.run.scheduler_queries import idm as idm
from .frontend.run.scheduler_queries import schedule as schedule
from .frontend.run.validation import get_val_tolerances as get_val_tolerances
from .frontend.run.validation import (
    validate_with_auto_inferred_outputs as validate_with_auto_inferred_outputs,
)
from .frontend.tune.report import Trial as Trial
from .frontend.tune.report import TuneReport as TuneReport
from .frontend.tune.worker_pipe import TunerError as TunerError
from .frontend.vocabulary.enums import CacheOp as CacheOp
from .frontend.vocabulary.enums import CommunicatorBackend as CommunicatorBackend
from .frontend.vocabulary.enums import IdMappingMode as IdMappingMode
from .frontend.vocabulary.enums import LoadStoreOpType as LoadStoreOpType
from .frontend.vocabulary.enums import MemoryType as MemoryType
from .frontend.vocabulary.enums import ParallelType as ParallelType
from .frontend.vocabulary.enums import SchedulerType as SchedulerType
from .frontend.vocabulary.unavailable import UnavailableError as UnavailableError
from .frontend.vocabulary.version import __version__ as __version__
from .frontend.vocabulary.version import version as version
from .heuristics.params import ExprEvalParams as ExprEvalParams
from .heuristics.params import HeuristicParams as HeuristicParams
from .heuristics.params import InnerOuterPersistentParams as InnerOuterPersistentParams
from .heuristics.params import InnerPersistentParams as InnerPersistentParams
from .heuristics.params import KernelParams as KernelParams
from .heuristics.params import MatmulParams as MatmulParams
from .heuristics.params import NoOpParams as NoOpParams
from .heuristics.params import OuterPersistentParams as OuterPersistentParams
from .heuristics.params import PointwiseParams as PointwiseParams
from .heuristics.params import ReductionParams as ReductionParams
from .heuristics.params import ScanParams as ScanParams
from .heuristics.params import TransposeParams as TransposeParams
from .heuristics.schedule import ReductionSplit as ReductionSplit
from .heuristics.schedule import Rewrites as Rewrites
from .heuristics.schedule import Schedule as Schedule
from .heuristics.schedule import SegmentSchedule as SegmentSchedule
from .heuristics.search.schedule_space import Legality as Legality
from .heuristics.search.schedule_space import ScheduleSpace as ScheduleSpace
from .heuristics.search.schedule_space import SegmentSpace as SegmentSpace
from .heuristics.search.schedule_space import SplitSpace as SplitSpace
from .heuristics.search.space import SearchSpace as SearchSpace
from .integrations.dtensor import execute_with_dtensors as execute_with_dtensors
from .lowering.backend.kernel_report import KernelReport as KernelReport
from .lowering.kernel_source import KernelSource as KernelSource
from .lowering.segments.segment import Segment as Segment
from .lowering.segments.segmented_fusion import SegmentedFusion as SegmentedFusion

__all__ = [
    # recording and running
    "FusionDefinition",
    "DataType",
    "Fusion",
    "FusionGuard",
    "ops",
    "define_tensor",
    "define_scalar",
    "FusionExecutorCache",
    "KernelExecutor",
    "BoundPlan",
    "CapturedGraph",
    "LRUCache",
    "LruFusionCache",
    "TensorView",
    "Val",
    "BroadcastOp",
    "SqueezeOp",
    "ReshapeOp",
    "Expr",
    "Statement",
    "IterDomain",
    "Split",
    "Merge",
    "TensorDomain",
    "compute_tensor_descriptor",
    "translate_fusion",
    "execute_with_dtensors",
    # checking
    "validate_with_auto_inferred_outputs",
    "get_val_tolerances",
    "Audit",
    "AuditRow",
    # looking inside
    "Explanation",
    "SegmentReport",
    "KernelSource",
    "KernelReport",
    "Segment",
    "SegmentedFusion",
    "Recompile",
    "Recompiles",
    # profiling
    "Profiler",
    "PythonProfiler",
    "get_fusion_profile",
    "reset_profiler",
    "FusionProfile",
    "KernelProfile",
    # params
    "HeuristicParams",
    "KernelParams",
    "NoOpParams",
    "PointwiseParams",
    "TransposeParams",
    "ReductionParams",
    "InnerPersistentParams",
    "OuterPersistentParams",
    "InnerOuterPersistentParams",
    "ScanParams",
    "MatmulParams",
    "ExprEvalParams",
    "Legality",
    "ScheduleSpace",
    "SegmentSpace",
    "SplitSpace",
    "SearchSpace",
    "ReductionSplit",
    "Rewrites",
    "Schedule",
    "SegmentSchedule",
    "Trial",
    "TuneReport",
    "CompileParams",
    "LaunchParams",
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
    "SchedulingError",
    "SourceLoc",
    "UndefinedFusionError",
    "UnsupportedDeviceError",
    "InputMismatch",
    "NoReferenceError",
    "ProfilerError",
    "ValidationError",
    "TunerError",
    "UnavailableError",
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
    # schedules, and names that say what to do instead
    "schedule",
    "idm",
    # modules
    "multidevice",
]
