"""Matrix products with a prologue and an epilogue.

Takes problems with a matrix product. Decides in this order: the tile with the least expected time
of those that fit in shared memory and registers; whether the epilogue runs in one part or two; into
how many parts K is split, where there are few tiles; persistent programs with descriptors; pipeline
stages.
"""

from __future__ import annotations

from typing import NamedTuple

from ..device import DeviceProperties
from .integers import ceil_div, next_power_of_2
from .params import HeuristicParams, MatmulParams
from .problem import Problem
from .product import Product, product_of

MIN_SIDE = 16
"""Elements of the smallest side of a tile that tensor cores take."""

MIN_BLOCK_K = 32
"""Least elements of K in a step, where operands come from wide tensors."""

TILE_OVERHEAD_K = 64
"""Elements of K that take as long as the start and the end of a tile."""

HEAVY_EPILOGUE_BYTES = 10
"""Bytes that an epilogue moves for each element of the result, above which it is heavy: registers
have no room for the largest tiles."""

GROUP_M = 8
"""Rows of tiles that share columns of the right operand in L2."""

MAX_PARTS = 2
"""Parts of an epilogue, at most."""

PART_COLUMNS = 128
"""Columns of a tile that its epilogue has together, if two parts suffice. Half of that for heavy
epilogues."""

MAX_STAGES = 5
"""Steps along K whose operands are in flight, where shared memory has room."""

MAX_SMALL_TILE = 128 * 128
"""Elements of a tile that every device's registers hold."""

MIN_PART_K = 512
"""Elements of K that a part should have at least."""

INTERPRETER_SIDE = 256
"""Longest side of a tile in the interpreter."""


class ProductTile(NamedTuple):
    """A tile of the result, the step along K, and the warps of a program.

    ``speed`` is the rate of a multiprocessor next to that of the best tile, 0 to 1.
    """

    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    speed: float


TILES = (
    ProductTile(128, 256, 64, 8, 1.0),
    ProductTile(128, 128, 64, 8, 0.9),
    ProductTile(64, 128, 64, 4, 0.7),
    ProductTile(64, 64, 128, 4, 0.55),
    ProductTile(64, 32, 128, 4, 0.4),
    ProductTile(32, 32, 128, 4, 0.25),
    ProductTile(16, 32, 256, 4, 0.15),
)
"""Large tiles read each operand less often. Small tiles keep more multiprocessors busy."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    product = product_of(problem)
    if product is None:
        return "it has no matrix product"
    if product.reduced_columns and not _choices(product, problem.device):
        return f"no tile of a product keeps {product.reduced_columns} columns together"
    return None


def propose(problem: Problem) -> HeuristicParams:
    """The params of the kernel."""
    product, device = product_of(problem), problem.device
    assert product is not None
    block_m, block_n, block_k, warps, _ = tile(product, device)
    parts = epilogue_parts(product, block_n)
    if problem.on_cpu:
        return MatmulParams(
            block_m=block_m, block_n=block_n, block_k=block_k, group_m=1, parts=parts
        )
    persistent = product.descriptors and _tiles(product, block_m, block_n) > device.sm_count
    fitting = _fitting_stages(product, device, block_m, block_n, block_k)
    return MatmulParams(
        block_m=block_m,
        block_n=block_n,
        block_k=block_k,
        group_m=GROUP_M,
        programs=device.sm_count if persistent else 0,
        parts=parts,
        descriptors=persistent,
        num_warps=warps,
        num_stages=max(1, min(fitting, MAX_STAGES, ceil_div(product.k, block_k))),
    )


def split(problem: Problem) -> int:
    """In how many parts to split K, where there are few tiles. One more kernel sums them up."""
    product = product_of(problem)
    assert product is not None
    unsplittable = product.batch > 1 or product.is_k_part or product.reduced_columns
    if problem.on_cpu or unsplittable:
        return 1
    found = tile(product, problem.device)
    tiles = _tiles(product, found.block_m, found.block_n)
    most = min(problem.device.sm_count // tiles, product.k // MIN_PART_K)
    exact = (p for p in range(most, 1, -1) if product.k % (p * found.block_k) == 0)
    return next(exact, 1)


def tile(product: Product, device: DeviceProperties) -> ProductTile:
    """The tile with the least expected time."""
    fitting = _choices(product, device) or _for_operands(product)[-1:]
    best = min(fitting, key=lambda row: _time(row, product, device))
    return best._replace(block_k=min(best.block_k, max(MIN_SIDE, next_power_of_2(product.k))))


def epilogue_columns(product: Product, device: DeviceProperties) -> int:
    """Columns that an epilogue has together. 0 where the last tile of a row is not full."""
    block_n = tile(product, device).block_n
    return 0 if product.n % block_n else block_n // epilogue_parts(product, block_n)


def epilogue_parts(product: Product, block_n: int) -> int:
    """In how many column parts of a tile the epilogue runs."""
    columns = PART_COLUMNS // 2 if _is_heavy(product) else PART_COLUMNS
    return max(1, min(MAX_PARTS, block_n // (product.reduced_columns or columns)))


def _tiles(product: Product, block_m: int, block_n: int) -> int:
    """Tiles of the result."""
    return product.batch * ceil_div(product.m, block_m) * ceil_div(product.n, block_n)


def _choices(product: Product, device: DeviceProperties) -> tuple[ProductTile, ...]:
    """The tiles that the device has room for and that keep the reduced columns together."""
    rows = _for_interpreter(product) if device.is_cpu else _for_operands(product)
    return tuple(
        row
        for row in rows
        if (device.is_cpu or _fits(row, product, device))
        and (not product.reduced_columns or _keeps_columns(row.block_n, product))
    )


def _for_operands(product: Product) -> tuple[ProductTile, ...]:
    """The tiles, with shorter steps along K where operands are computed from wide tensors."""
    wider = next_power_of_2(ceil_div(max(product.left_bytes, product.right_bytes), 2))
    return tuple(row._replace(block_k=max(row.block_k // wider, MIN_BLOCK_K)) for row in TILES)


def _for_interpreter(product: Product) -> tuple[ProductTile, ...]:
    """Few, large tiles: the interpreter's time goes by the number of steps."""
    sizes = (product.m, product.n, product.k)
    m, n, k = (max(MIN_SIDE, min(INTERPRETER_SIDE, next_power_of_2(s))) for s in sizes)
    reduced = product.reduced_columns
    columns = [n, *(c for c in (reduced, 2 * reduced) if c >= MIN_SIDE)]
    return tuple(ProductTile(m, c, k, 4, 1.0) for c in columns if c & (c - 1) == 0)


def _keeps_columns(block_n: int, product: Product) -> bool:
    """Whether the parts of a tile have the columns that the epilogue reduces, and no others."""
    whole = product.n % block_n == 0
    return whole and block_n // epilogue_parts(product, block_n) == product.reduced_columns


def _fits(row: ProductTile, product: Product, device: DeviceProperties) -> bool:
    """Whether shared memory holds more than one stage, and registers the tile."""
    m, n = row.block_m, row.block_n
    enough = _fitting_stages(product, device, m, n, row.block_k) > 1
    large = device.holds_large_product_tiles and not _is_heavy(product)
    return enough and (m * n <= MAX_SMALL_TILE or large)


def _fitting_stages(
    product: Product, device: DeviceProperties, block_m: int, block_n: int, block_k: int
) -> int:
    """Steps along K whose operands shared memory holds at a time."""
    room = _room(product, device, block_m, block_n)
    return room // _stage(product, block_m, block_n, block_k)


def _stage(product: Product, block_m: int, block_n: int, block_k: int) -> int:
    """Bytes loaded in a step along K."""
    return (block_m * product.left_bytes + block_n * product.right_bytes) * block_k


def _is_heavy(product: Product) -> bool:
    """Whether the epilogue takes many registers for each element."""
    return product.epilogue_draws_random or product.epilogue_bytes > HEAVY_EPILOGUE_BYTES


def _room(product: Product, device: DeviceProperties, block_m: int, block_n: int) -> int:
    """Shared memory for operands. With descriptors the epilogue's tensors go through it too."""
    part = block_m * block_n // epilogue_parts(product, block_n)
    epilogue = part * product.epilogue_bytes if product.descriptors else 0
    return device.shared_bytes_per_block - epilogue


def _time(row: ProductTile, product: Product, device: DeviceProperties) -> float:
    """Expected time, in multiply-adds of the best tile: that of a tile times the waves of tiles."""
    waves = ceil_div(_tiles(product, row.block_m, row.block_n), device.sm_count)
    return waves * row.block_m * row.block_n * (product.k + TILE_OVERHEAD_K) / row.speed
