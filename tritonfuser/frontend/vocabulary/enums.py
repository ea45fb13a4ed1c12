"""nvFuser's enumerations, by name."""

from __future__ import annotations

from enum import Enum


class SchedulerType(Enum):
    """Ways to schedule a segment; ``scan`` is ours."""

    none = "none"
    no_op = "no_op"
    pointwise = "pointwise"
    matmul = "matmul"
    reduction = "reduction"
    inner_persistent = "inner_persistent"
    inner_outer_persistent = "inner_outer_persistent"
    outer_persistent = "outer_persistent"
    transpose = "transpose"
    expr_eval = "expr_eval"
    resize = "resize"
    scan = "scan"


class ParallelType(Enum):
    """What a loop runs over: devices of a mesh. Within a kernel Triton decides."""

    mesh_x = "mesh_x"
    mesh_y = "mesh_y"
    mesh_z = "mesh_z"
    grid_x = "grid_x"
    grid_y = "grid_y"
    grid_z = "grid_z"
    cluster_x = "cluster_x"
    block_x = "block_x"
    block_y = "block_y"
    block_z = "block_z"
    mma = "mma"
    tma = "tma"
    unroll = "unroll"
    unswitch = "unswitch"
    vectorize = "vectorize"
    stream = "stream"
    serial = "serial"


class LoadStoreOpType(Enum):
    """Ways to move data; names only."""

    set = "set"
    segment_set = "segment_set"
    ld_matrix = "ld_matrix"
    cp_async = "cp_async"
    tma = "tma"


class MemoryType(Enum):
    """Where a tensor lies. ``symmetric`` and ``global`` can be set; the others are names only."""

    local = "local"
    shared = "shared"
    global_ = "global"
    locals()["global"] = global_  # nvFuser's name, a keyword: getattr(MemoryType, "global")
    tensor = "tensor"
    symmetric = "symmetric"


class CacheOp(Enum):
    """How loads treat caches; names only."""

    unspecified = "unspecified"
    all_levels = "all_levels"
    streaming = "streaming"
    global_ = "global"
    locals()["global"] = global_


class IdMappingMode(Enum):
    """How nvFuser relates loops; names only."""

    exact = "exact"
    almost_exact = "almost_exact"
    broadcast = "broadcast"
    permissive = "permissive"
    loop = "loop"


class CommunicatorBackend(Enum):
    """Communication libraries; names only, torch.distributed picks one."""

    nccl = "nccl"
    ucc = "ucc"
    cuda = "cuda"
    none = "none"
