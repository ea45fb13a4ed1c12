"""Networks of graphs and recommenders: gathers, sums by an index, embeddings of bags."""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of


def summed(x: Tensor, rows: Tensor, nodes: int) -> Tensor:
    """The rows of ``x`` [edges, width] added up by node."""
    zeros = torch.zeros(nodes, x.shape[1], dtype=x.dtype, device=x.device)
    return torch.scatter_add(zeros, 0, rows[:, None].expand(x.shape), x)


class SageLayer(nn.Module):
    """The mean over neighbours beside the node itself, normed to length 1."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.own, self.other = nn.Linear(width, out), nn.Linear(width, out, bias=False)

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        nodes = x.shape[0]
        total = summed(x.index_select(0, sources), targets, nodes)
        degrees = summed(torch.ones_like(targets, dtype=x.dtype)[:, None], targets, nodes)
        y = self.own(x) + self.other(total / torch.clamp(degrees, min=1.0))
        return F.relu(y * torch.rsqrt(y.pow(2).sum(-1, keepdim=True) + 1e-12))


class Sage(nn.Module):
    """Two layers and the loss of each node's class."""

    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([SageLayer(width, hidden), SageLayer(hidden, hidden)])
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor, labels: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.dropout(layer(x, sources, targets), 0.5)
        return F.cross_entropy(self.head(x), labels)


def _sage(nodes: int, edges: int, width: int, hidden: int, classes: int) -> Step:
    ids = [torch.empty(n, dtype=torch.int64) for n in (edges, edges, nodes)]
    inputs = (torch.empty(nodes, width), *ids)
    return Step(Sage(width, hidden, classes), inputs, limits=(2, nodes, nodes, classes))


_SAGE = "nodes edges width hidden classes"
GRAPHSAGE = Family(
    "graphsage",
    _sage,
    {
        "filling": table_of(_SAGE, 16384, 262144, 128, 256, 47),
        "small": table_of(_SAGE, 2708, 10556, 64, 64, 7),
    },
    {
        "filling": table_of(_SAGE, 30, 70, 12, 16, 5),
        "small": table_of(_SAGE, 30, 70, 16, 16, 5),
    },
)


class AttentionLayer(nn.Module):
    """Neighbours weighted by a softmax over the edges of a node, for several heads."""

    def __init__(self, width: int, heads: int, out: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, heads * out, bias=False)
        self.source, self.target = (nn.Parameter(torch.empty(heads, out)) for _ in range(2))
        self.bias, self.heads = nn.Parameter(torch.empty(heads * out)), heads

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        nodes, heads = x.shape[0], self.heads
        y = self.project(x).view(nodes, heads, -1)
        left, right = (y * self.source).sum(-1), (y * self.target).sum(-1)
        scores = left.index_select(0, sources) + right.index_select(0, targets)
        weights = torch.exp(F.leaky_relu(scores, 0.2))
        total = summed(weights, targets, nodes).index_select(0, targets)
        weights = (weights / (total + 1e-16))[:, :, None]
        edges = (y.index_select(0, sources) * weights).reshape(sources.shape[0], -1)
        return F.elu(summed(edges, targets, nodes) + self.bias)


def _attention(nodes: int, edges: int, width: int, heads: int, out: int) -> Step:
    x = torch.empty(nodes, width).requires_grad_()
    ids = [torch.empty(edges, dtype=torch.int64) for _ in range(2)]
    return Step(AttentionLayer(width, heads, out), (x, *ids), limits=(2, nodes, nodes))


_ATTENTION = "nodes edges width heads out"
GRAPH_ATTENTION = Family(
    "graph_attention",
    _attention,
    {
        "filling": table_of(_ATTENTION, 16384, 131072, 256, 8, 32),
        "small": table_of(_ATTENTION, 3327, 9104, 64, 8, 8),
    },
    {
        "filling": table_of(_ATTENTION, 30, 70, 12, 3, 8),
        "small": table_of(_ATTENTION, 30, 70, 12, 3, 8),
    },
)


# --- recommenders --------------------------------------------------------------------------------


class Tower(nn.Module):
    """Linear layers with ReLU and dropout between them."""

    def __init__(self, widths: tuple[int, ...], dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.relu(layer(x))
            x = F.dropout(x, self.dropout) if self.dropout else x
        return x


def log_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Binary cross entropy of logits."""
    losses = torch.clamp(logits, min=0.0) - logits * labels
    return (losses + torch.log1p(torch.exp(-torch.abs(logits)))).mean()


class Dlrm(nn.Module):
    """Sums of embeddings of bags, products of all pairs of features, two towers."""

    def __init__(self, dense: int, rows: int, width: int, features: int) -> None:
        super().__init__()
        self.tables = nn.ParameterList(torch.empty(rows, width) for _ in range(features))
        self.bottom = Tower((dense, 4 * width, width))
        pairs = (features + 1) * features // 2
        self.top, self.head = Tower((width + pairs, 4 * width, 2 * width)), nn.Linear(2 * width, 1)

    def forward(self, dense: Tensor, bags: Tensor, pairs: Tensor, labels: Tensor) -> Tensor:
        x = self.bottom(dense)
        batch, width = x.shape
        found = [x]
        for place, table in enumerate(self.tables):
            rows = table.index_select(0, bags[:, place].reshape(-1))
            found.append(rows.view(batch, -1, width).sum(1))
        stacked = torch.stack(found, dim=1)
        products = (stacked @ stacked.transpose(1, 2)).reshape(batch, -1)
        joined = torch.cat([x, products.index_select(1, pairs)], dim=1)
        return log_loss(self.head(self.top(joined))[:, 0], labels)


def _dlrm(batch: int, dense: int, rows: int, width: int, features: int, bag: int) -> Step:
    model = Dlrm(dense, rows, width, features)
    bags = torch.empty(batch, features, bag, dtype=torch.int64)
    pairs = torch.empty((features + 1) * features // 2, dtype=torch.int64)
    inputs = (torch.empty(batch, dense), bags, pairs, torch.empty(batch))
    return Step(model, inputs, limits=(2, rows, (features + 1) ** 2))


_DLRM = "batch dense rows width features bag"
DLRM = Family(
    "dlrm",
    _dlrm,
    {
        "filling": table_of(_DLRM, 8192, 13, 100000, 64, 8, 10),
        "small": table_of(_DLRM, 512, 13, 10000, 32, 8, 4),
    },
    {
        "filling": table_of(_DLRM, 10, 13, 50, 8, 8, 3),
        "small": table_of(_DLRM, 10, 13, 50, 8, 8, 3),
    },
)


class DeepFM(nn.Module):
    """First and second order terms of embedded fields, and a tower over all of them."""

    def __init__(self, rows: int, fields: int, width: int, hidden: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.empty(rows))
        self.table, self.bias = nn.Embedding(rows, width), nn.Parameter(torch.empty(()))
        self.tower, self.head = Tower((fields * width, hidden, hidden), 0.2), nn.Linear(hidden, 1)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        first = self.weights.index_select(0, ids.reshape(-1)).view(ids.shape).sum(1)
        x = self.table(ids)
        total = x.sum(1)
        second = 0.5 * (total * total - (x * x).sum(1)).sum(1)
        deep = self.head(self.tower(x.flatten(1)))[:, 0]
        return log_loss(first + second + deep + self.bias, labels)


def _deepfm(batch: int, rows: int, fields: int, width: int, hidden: int) -> Step:
    ids = torch.empty(batch, fields, dtype=torch.int64)
    model = DeepFM(rows, fields, width, hidden)
    return Step(model, (ids, torch.empty(batch)), limits=(rows,))


_DEEPFM = "batch rows fields width hidden"
DEEPFM = Family(
    "deepfm",
    _deepfm,
    {
        "filling": table_of(_DEEPFM, 16384, 200000, 39, 16, 400),
        "small": table_of(_DEEPFM, 1024, 50000, 39, 8, 128),
    },
    {"filling": table_of(_DEEPFM, 10, 50, 7, 8, 16), "small": table_of(_DEEPFM, 10, 50, 7, 8, 16)},
)

FAMILIES = (GRAPHSAGE, GRAPH_ATTENTION, DLRM, DEEPFM)
