"""The public names of ``tritonfuser`` and the module of each. Nothing is imported here.

``tritonfuser/__init__.py`` imports a name when it is first used, and docs/exports.py writes
``__init__.pyi`` for type checkers, both from this table.
"""

from __future__ import annotations

from collections.abc import Mapping

_GROUPS: tuple[tuple[str, Mapping[str, tuple[str, ...]]], ...] = (
    (
        "recording and running",
        {
            "frontend.definition": ("FusionDefinition",),
            "dtypes": ("DataType",),
            "frontend.run.fusion": (
                "Fusion",
                "FusionGuard",
                "ops",
                "define_tensor",
                "define_scalar",
            ),
            "frontend.run.executors": ("FusionExecutorCache", "KernelExecutor"),
            "frontend.run.bound_plan": ("BoundPlan",),
            "cache.calls.cuda_graphs": ("CapturedGraph",),
            "frontend.nvfuser.definition_cache": ("LRUCache", "LruFusionCache"),
            "frontend.record.tensor_view": ("TensorView",),
            "frontend.record.val": ("Val",),
            "frontend.record.op_expressions": ("BroadcastOp", "SqueezeOp", "ReshapeOp"),
            "frontend.record.statements": ("Expr", "Statement"),
            "frontend.record.iter_domains": ("IterDomain", "Split"),
            "frontend.record.merged_dims": ("Merge",),
            "frontend.record.tensor_domain": ("TensorDomain",),
            "frontend.record.layouts": ("compute_tensor_descriptor",),
            "frontend.inspect.printer": ("translate_fusion",),
            "integrations.dtensor": ("execute_with_dtensors",),
        },
    ),
    (
        "checking",
        {
            "frontend.run.validation": (
                "validate_with_auto_inferred_outputs",
                "get_val_tolerances",
            ),
            "frontend.inspect.audit": ("Audit", "AuditRow"),
        },
    ),
    (
        "looking inside",
        {
            "frontend.inspect.explain": ("Explanation",),
            "frontend.inspect.segment_report": ("SegmentReport",),
            "lowering.kernel_source": ("KernelSource",),
            "lowering.backend.kernel_report": ("KernelReport",),
            "lowering.segments.segment": ("Segment",),
            "lowering.segments.segmented_fusion": ("SegmentedFusion",),
            "cache.keys.recompiles": ("Recompile", "Recompiles"),
        },
    ),
    (
        "profiling",
        {
            "frontend.inspect.profiler": (
                "Profiler",
                "PythonProfiler",
                "get_fusion_profile",
                "reset_profiler",
            ),
            "frontend.inspect.profiles": ("FusionProfile", "KernelProfile"),
        },
    ),
    (
        "params",
        {
            "heuristics.params": (
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
            ),
            "heuristics.search.schedule_space": (
                "Legality",
                "ScheduleSpace",
                "SegmentSpace",
                "SplitSpace",
            ),
            "heuristics.search.space": ("SearchSpace",),
            "heuristics.schedule": ("ReductionSplit", "Rewrites", "Schedule", "SegmentSchedule"),
            "frontend.tune.report": ("Trial", "TuneReport"),
            "frontend.nvfuser.launch_params": ("CompileParams", "LaunchParams"),
        },
    ),
    (
        "errors",
        {
            "errors": (
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
            ),
            "cache.calls.diagnosis": ("InputMismatch",),
            "frontend.inspect.oracle": ("NoReferenceError",),
            "frontend.inspect.profiler": ("ProfilerError",),
            "frontend.inspect.tolerances": ("ValidationError",),
            "frontend.tune.worker_pipe": ("TunerError",),
            "frontend.vocabulary.unavailable": ("UnavailableError",),
        },
    ),
    ("versions", {"frontend.vocabulary.version": ("version", "__version__")}),
    (
        "nvFuser's enumerations",
        {
            "frontend.vocabulary.enums": (
                "SchedulerType",
                "ParallelType",
                "LoadStoreOpType",
                "MemoryType",
                "CacheOp",
                "IdMappingMode",
                "CommunicatorBackend",
            ),
        },
    ),
    (
        "schedules, and names that say what to do instead",
        {"frontend.run.scheduler_queries": ("schedule", "idm")},
    ),
)

MODULES = ("compat", "errors", "integrations", "multidevice", "options")
"""Modules that ``import tritonfuser`` alone gives access to."""

GROUPS = {
    topic: {name: module for module, names in modules.items() for name in names}
    for topic, modules in _GROUPS
}
"""Topic -> name -> the module below tritonfuser that defines it."""

ORIGINS = {name: module for names in GROUPS.values() for name, module in names.items()}
"""Name -> the module below tritonfuser that defines it."""
