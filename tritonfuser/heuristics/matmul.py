"""Matrix products with what comes before and after them: tile sizes, walks, splits."""

from __future__ import annotations

from ..device import DeviceProperties
from .integers import ceil_div, next_power_of_2
from .params import HeuristicParams, MatmulParams
from .problem import Problem, Product

LEAST = 16
"""Smallest side of a tile that tensor cores take."""

_Row = tuple[int, int, int, int, float]

_TILES: tuple[_Row, ...] = (
    # (block_m, block_n, block_k, num_warps, speed of a multiprocessor next to the best)
    (128, 256, 64, 8, 1.0),
    (128, 128, 64, 8, 0.9),
    (64, 128, 64, 4, 0.7),
    (64, 64, 128, 4, 0.55),
    (64, 32, 128, 4, 0.4),
    (32, 32, 128, 4, 0.25),
    (16, 32, 256, 4, 0.15),
)
"""Large tiles read each operand less often; small ones keep more multiprocessors busy."""

_TILE_START = 64
"""Elements of K that the start and end of a tile take as long as."""

HEAVY = 10
"""Bytes read and written for each element of the result that still go with the largest tile."""

GROUP = 8
"""Rows of tiles that share columns of the right operand in L2."""


WIDE = 256
"""Columns of a tile from which on what follows is computed in two halves."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    product = problem.product
    if product is None:
        return "it has no matrix product"
    if product.reduced_columns and not _choices(product, problem.device):
        return f"no tile of a product keeps {product.reduced_columns} columns together"
    return None


def propose(problem: Problem) -> HeuristicParams:
    product = problem.product
    assert product is not None
    block_m, block_n, block_k, warps = tile(product, problem.device)
    parts = parts_of(product, block_n)
    if problem.on_cpu:
        return MatmulParams(
            block_m=block_m, block_n=block_n, block_k=block_k, group_m=1, parts=parts
        )
    stays = product.descriptors and tiles_of(product, block_m, block_n) > problem.device.sm_count
    stage = _stage(product, block_m, block_n, block_k)
    room = _room(product, problem.device, block_m, block_n)
    most = 4 if block_n >= WIDE else 5
    return MatmulParams(
        block_m=block_m,
        block_n=block_n,
        block_k=block_k,
        group_m=GROUP,
        programs=problem.device.sm_count if stays else 0,
        parts=parts,
        descriptors=stays,
        num_warps=warps,
        num_stages=max(1, min(room // stage, most, ceil_div(product.k, block_k))),
    )


def tiles_of(product: Product, block_m: int, block_n: int) -> int:
    return product.batch * ceil_div(product.m, block_m) * ceil_div(product.n, block_n)


def tile(product: Product, device: DeviceProperties) -> tuple[int, int, int, int]:
    """(block_m, block_n, block_k, num_warps) with the least expected time."""
    fitting = _choices(product, device) or _shortened(product)[-1:]
    best = min(fitting, key=lambda row: _time(row, product, device))
    block_k = min(best[2], max(LEAST, next_power_of_2(product.k)))
    return best[0], best[1], block_k, best[3]


def _choices(product: Product, device: DeviceProperties) -> tuple[_Row, ...]:
    """The tiles that the device has room for and that keep the columns asked for together."""
    rows = _for_cpu(product) if device.is_cpu else _shortened(product)
    return tuple(
        row
        for row in rows
        if (device.is_cpu or _fits(row[:3], product, device))
        and (not product.reduced_columns or _keeps(row[1], product))
    )


def _shortened(product: Product) -> tuple[_Row, ...]:
    """The tiles, with steps along K that fetch as much where operands come from wider tensors."""
    longer = next_power_of_2(ceil_div(max(product.left_bytes, product.right_bytes), 2))
    return tuple((m, n, max(k // longer, 32), warps, speed) for m, n, k, warps, speed in _TILES)


def _keeps(block_n: int, product: Product) -> bool:
    whole = product.n % block_n == 0
    return whole and block_n // parts_of(product, block_n) == product.reduced_columns


def width(product: Product, device: DeviceProperties) -> int:
    """Columns that what follows a product has together, 0 where the last tile is not full."""
    block_n = tile(product, device)[1]
    return 0 if product.n % block_n else block_n // parts_of(product, block_n)


def parts_of(product: Product, block_n: int) -> int:
    """In how many column parts of a tile what follows is computed."""
    if product.reduced_columns:
        return 2 if block_n == 2 * product.reduced_columns else 1
    return 2 if block_n >= (WIDE // 2 if _is_heavy(product) else WIDE) else 1


def _for_cpu(product: Product) -> tuple[_Row, ...]:
    """Few, large tiles: the interpreter's time goes by the number of steps."""
    m, n, k = (max(LEAST, min(256, next_power_of_2(s))) for s in (product.m, product.n, product.k))
    columns = [
        n,
        *(c for c in (product.reduced_columns, 2 * product.reduced_columns) if c >= LEAST),
    ]
    return tuple((m, c, k, 4, 1.0) for c in columns if c & (c - 1) == 0)


def _fits(blocks: tuple[int, int, int], product: Product, device: DeviceProperties) -> bool:
    """Whether two stages are in shared memory, and registers hold the tile."""
    m, n, k = blocks
    enough = 2 * _stage(product, m, n, k) <= _room(product, device, m, n)
    large = device.shared_bytes_per_block >= 200 << 10 and not _is_heavy(product)
    return enough and (m * n <= 128 * 128 or large)


def _stage(product: Product, block_m: int, block_n: int, block_k: int) -> int:
    """Bytes fetched for a step along K."""
    return (block_m * product.left_bytes + block_n * product.right_bytes) * block_k


def _is_heavy(product: Product) -> bool:
    """Whether what follows the product takes many registers for each element."""
    return product.epilogue_draws_random or product.epilogue_bytes > HEAVY


def _room(product: Product, device: DeviceProperties, block_m: int, block_n: int) -> int:
    """Shared memory for operands: what descriptors move behind the product goes through it too."""
    beside = block_m * block_n // parts_of(product, block_n) * product.epilogue_bytes
    return device.shared_bytes_per_block - (beside if product.descriptors else 0)


def _time(row: _Row, product: Product, device: DeviceProperties) -> float:
    """Expected time in tiles' work: waves of tiles, each as long as its products take."""
    block_m, block_n, _, _, speed = row
    waves = ceil_div(tiles_of(product, block_m, block_n), device.sm_count)
    return waves * block_m * block_n * (product.k + _TILE_START) / speed


MIN_SPLIT_K = 512
"""Elements of K that a part should have at least."""


def split(problem: Problem) -> int:
    """In how many parts to cut K, where there are few tiles: their sum is another kernel."""
    product = problem.product
    assert product is not None
    if problem.on_cpu or product.batch > 1 or product.is_k_part or product.reduced_columns:
        return 1
    block_m, block_n, block_k, _ = tile(product, problem.device)
    tiles = tiles_of(product, block_m, block_n)
    most = min(problem.device.sm_count // tiles, product.k // MIN_SPLIT_K)
    whole = (p for p in range(most, 1, -1) if product.k % (p * block_k) == 0)
    return next(whole, 1)
