"""Networks of coordinates: NeRF with its volume rendering, and Kolmogorov-Arnold networks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of


def encoded(x: Tensor, frequencies: int) -> Tensor:
    """Coordinates beside their sines and cosines at powers of two."""
    parts = [x]
    for power in range(frequencies):
        parts += [torch.sin(x * 2.0**power), torch.cos(x * 2.0**power)]
    return torch.cat(parts, dim=-1)


def rendered(density: Tensor, colour: Tensor, depths: Tensor) -> Tensor:
    """Colours of rays, from those of their samples: [rays, samples, 3] -> [rays, 3]."""
    steps = depths[:, 1:] - depths[:, :-1]
    steps = torch.cat([steps, torch.full_like(steps[:, :1], 1e10)], dim=-1)
    absorbed = density * steps
    alpha = 1.0 - torch.exp(-absorbed)
    before = torch.cumsum(absorbed[:, :-1], dim=-1)
    before = torch.cat([torch.zeros_like(before[:, :1]), before], dim=-1)
    weights = alpha * torch.exp(-before)
    found = (weights[..., None] * colour).sum(1)
    return found + (1.0 - weights.sum(1))[:, None]


class Nerf(nn.Module):
    """An MLP of encoded places with a skip, its density and its colour from a direction."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        place, direction = 3 * (1 + 2 * 10), 3 * (1 + 2 * 4)
        self.skip = layers // 2
        self.layers = nn.ModuleList(
            nn.Linear(width + place if n == self.skip else width if n else place, width)
            for n in range(layers)
        )
        self.density, self.features = nn.Linear(width, 1), nn.Linear(width, width)
        self.mixed = nn.Linear(width + direction, width // 2)
        self.colour = nn.Linear(width // 2, 3)

    def forward(
        self, origins: Tensor, directions: Tensor, depths: Tensor, pixels: Tensor
    ) -> Tensor:
        dtype = self.density.weight.dtype
        places = origins[:, None] + directions[:, None] * depths[..., None]
        place = encoded(places, 10).to(dtype)
        lengths = directions.square().sum(-1, keepdim=True).sqrt()
        seen = encoded(directions / lengths, 4).to(dtype)
        seen = seen[:, None].expand(-1, depths.shape[1], -1)
        x = place
        for number, layer in enumerate(self.layers):
            if number == self.skip:
                x = torch.cat([place, x], dim=-1)
            x = F.relu(layer(x))
        density = F.softplus(self.density(x).squeeze(-1).float() - 1.0)
        x = F.relu(self.mixed(torch.cat([self.features(x), seen], dim=-1)))
        found = rendered(density, torch.sigmoid(self.colour(x)).float(), depths)
        return (found - pixels).square().mean()


def _nerf(rays: int, samples: int, width: int, layers: int) -> Step:
    model = Nerf(width, layers).to(torch.bfloat16)
    origins, directions, pixels = (torch.empty(rays, 3) for _ in range(3))
    return Step(model, (origins, directions, torch.empty(rays, samples), pixels))


_NERF = "rays samples width layers"
NERF = Family(
    "nerf",
    _nerf,
    {"filling": table_of(_NERF, 1024, 64, 256, 8), "small": table_of(_NERF, 256, 32, 128, 4)},
    {"filling": table_of(_NERF, 5, 6, 16, 8), "small": table_of(_NERF, 5, 6, 12, 4)},
)


class KanLayer(nn.Module):
    """Sums of learned functions of each feature: a spline beside a weighted SiLU."""

    def __init__(self, into: int, out: int, intervals: int = 5, order: int = 3) -> None:
        super().__init__()
        self.intervals, self.order = intervals, order
        self.base = nn.Linear(into, out, bias=False)
        self.spline = nn.Linear(into * (intervals + order), out, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(F.silu(x)) + self.spline(self._bases(x).flatten(1))

    def _bases(self, x: Tensor) -> Tensor:
        """B-splines by the recursion of Cox and de Boor: [rows, features, bases]."""
        step = 2.0 / self.intervals
        knots = torch.arange(-self.order, self.intervals + self.order + 1, device=x.device)
        grid = knots.float() * step - 1.0
        wide = x.float()[..., None]
        bases = ((wide >= grid[:-1]) & (wide < grid[1:])).float()
        for k in range(1, self.order + 1):
            rising = (wide - grid[: -(k + 1)]) / (grid[k:-1] - grid[: -(k + 1)])
            falling = (grid[k + 1 :] - wide) / (grid[k + 1 :] - grid[1:-k])
            bases = rising * bases[..., :-1] + falling * bases[..., 1:]
        return bases.to(x.dtype)


class Kan(nn.Module):
    """Two layers of splines."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = KanLayer(width, hidden), KanLayer(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


def _kan(rows: int, width: int, hidden: int) -> Step:
    x = torch.empty(rows, width, dtype=torch.bfloat16)
    return Step(Kan(width, hidden).to(torch.bfloat16), (x.requires_grad_(),))


_KAN = "rows width hidden"
KAN = Family(
    "kan",
    _kan,
    {"filling": table_of(_KAN, 8192, 256, 512), "small": table_of(_KAN, 512, 64, 128)},
    {"filling": table_of(_KAN, 12, 10, 14), "small": table_of(_KAN, 12, 6, 10)},
)

FAMILIES = (NERF, KAN)
