"""Networks that pass messages along edges: GCN, SchNet, EGNN and MeshGraphNets.

Edges come in any order, so that messages are added up by a scatter.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step

BF16 = torch.bfloat16


def _into_nodes(messages: Tensor, target: Tensor, nodes: int) -> Tensor:
    """The sum of the messages that each node receives: [edges, width] -> [nodes, width]."""
    zeros = torch.zeros(nodes, messages.shape[1], dtype=messages.dtype, device=messages.device)
    return zeros.scatter_add(0, target[:, None].expand_as(messages), messages)


class GcnLayer(nn.Module):
    """A graph convolution scaled by both nodes' degrees (Kipf and Welling), with a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x: Tensor, degree: Tensor, source: Tensor, target: Tensor) -> Tensor:
        scale = torch.rsqrt(degree.float() + 1.0)
        h = self.linear(self.norm(x))
        weight = (scale[source] * scale[target]).to(x.dtype)
        received = _into_nodes(h[source] * weight[:, None], target, x.shape[0])
        return x + F.relu(received + h * (scale * scale).to(x.dtype)[:, None])


class SchnetBlock(nn.Module):
    """Continuous filters of distances, as radial basis functions, multiply the neighbours."""

    def __init__(self, width: int, bases: int, cutoff: float = 10.0) -> None:
        super().__init__()
        self.bases, self.cutoff = bases, cutoff
        self.filter = nn.Sequential(nn.Linear(bases, width), nn.Softplus(), nn.Linear(width, width))
        self.into, self.between = nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, distance: Tensor, source: Tensor, target: Tensor) -> Tensor:
        centers = torch.arange(self.bases, device=x.device).float() * self.cutoff / self.bases
        wide = distance.float()
        spread = torch.exp(-10.0 * (wide[:, None] - centers).square()).to(x.dtype)
        fade = 0.5 * (torch.cos(wide * (torch.pi / self.cutoff)) + 1.0)
        fade = torch.where(wide < self.cutoff, fade, 0.0).to(x.dtype)
        filters = self.filter(spread) * fade[:, None]
        received = _into_nodes(self.into(x)[source] * filters, target, x.shape[0])
        return x + self.out(F.softplus(self.between(received)))


class EgnnLayer(nn.Module):
    """Messages of squared distances; places move along the differences to their neighbours."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edge = nn.Sequential(
            nn.Linear(2 * width + 1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.node = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))
        self.gate, self.move = nn.Linear(width, 1), nn.Linear(width, 1, bias=False)

    def forward(self, x: Tensor, place: Tensor, source: Tensor, target: Tensor) -> Tensor:
        nodes = x.shape[0]
        apart = place[source] - place[target]
        square = apart.square().sum(-1, keepdim=True)
        message = self.edge(torch.cat([x[source], x[target], square.to(x.dtype)], dim=-1))
        message = message * torch.sigmoid(self.gate(message))
        step = apart / (square.sqrt() + 1.0) * torch.tanh(self.move(message)).float()
        place = place + _into_nodes(step, target, nodes) / 16.0
        received = _into_nodes(message, target, nodes)
        x = x + self.node(torch.cat([x, received], dim=-1))
        return torch.cat([x, place.to(x.dtype)], dim=-1)


class MeshBlock(nn.Module):
    """MeshGraphNets: edges are updated from both nodes, nodes from the sums of their edges."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edge, self.node = self._mlp(3 * width, width), self._mlp(2 * width, width)

    @staticmethod
    def _mlp(into: int, width: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(into, width), nn.ReLU(), nn.Linear(width, width), nn.LayerNorm(width)
        )

    def forward(self, x: Tensor, edges: Tensor, source: Tensor, target: Tensor) -> Tensor:
        new = self.edge(torch.cat([edges, x[source], x[target]], dim=-1))
        received = _into_nodes(new, target, x.shape[0])
        x = x + self.node(torch.cat([x, received], dim=-1))
        return torch.cat([x, edges + new], dim=0)


def _step(module: nn.Module, x: Tensor, beside: Tensor, edges: int) -> Step:
    """A step of a module that takes two tensors of features and the ends of the edges."""
    nodes = x.shape[0]
    ends = tuple(torch.empty(edges, dtype=torch.int64) for _ in range(2))
    inputs = (x.requires_grad_(), beside, *ends)
    return Step(module.to(BF16), inputs, limits=(2, 2, nodes, nodes))


def _gcn(nodes: int, edges: int, width: int) -> Step:
    degree = torch.empty(nodes, dtype=torch.int64)
    return _step(GcnLayer(width), torch.empty(nodes, width, dtype=BF16), degree, edges)


def _schnet(nodes: int, edges: int, width: int, bases: int) -> Step:
    distance, x = torch.empty(edges), torch.empty(nodes, width, dtype=BF16)
    return _step(SchnetBlock(width, bases), x, distance, edges)


def _egnn(nodes: int, edges: int, width: int) -> Step:
    place = torch.empty(nodes, 3, requires_grad=True)
    return _step(EgnnLayer(width), torch.empty(nodes, width, dtype=BF16), place, edges)


def _meshgraphnet(nodes: int, edges: int, width: int) -> Step:
    features = torch.empty(edges, width, dtype=BF16, requires_grad=True)
    return _step(MeshBlock(width), torch.empty(nodes, width, dtype=BF16), features, edges)


_FILLING = {"nodes": 1 << 15, "edges": 1 << 18}
_SMALL = {"nodes": 1 << 10, "edges": 1 << 13}
_REDUCED = {"nodes": 24, "edges": 40}

FAMILIES = (
    Family(
        "gcn",
        _gcn,
        {"filling": {**_FILLING, "width": 256}, "small": {**_SMALL, "width": 128}},
        {"filling": {**_REDUCED, "width": 16}, "small": {**_REDUCED, "width": 8}},
    ),
    Family(
        "schnet",
        _schnet,
        {
            "filling": {**_FILLING, "width": 128, "bases": 64},
            "small": {**_SMALL, "width": 64, "bases": 32},
        },
        {
            "filling": {**_REDUCED, "width": 16, "bases": 8},
            "small": {**_REDUCED, "width": 8, "bases": 4},
        },
    ),
    Family(
        "egnn",
        _egnn,
        {"filling": {**_FILLING, "width": 128}, "small": {**_SMALL, "width": 64}},
        {"filling": {**_REDUCED, "width": 16}, "small": {**_REDUCED, "width": 8}},
    ),
    Family(
        "meshgraphnet",
        _meshgraphnet,
        {"filling": {**_FILLING, "width": 128}, "small": {**_SMALL, "width": 64}},
        {"filling": {**_REDUCED, "width": 16}, "small": {**_REDUCED, "width": 8}},
    ),
)
