"""Losses of policies and of teachers: PPO, GRPO, distillation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .family import Family, Step, table_of


def ppo(
    logits: Tensor,
    values: Tensor,
    actions: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    returns: Tensor,
    old_values: Tensor,
) -> Tensor:
    """Clipped surrogate of normed advantages, clipped loss of the values, bonus of the entropy."""
    log_probs = F.log_softmax(logits.float(), dim=-1)
    taken = log_probs.gather(1, actions[:, None]).squeeze(1)
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    advantages = (advantages - advantages.mean()) * torch.rsqrt(advantages.var() + 1e-8)
    ratio = torch.exp(taken - old_log_probs)
    clipped = torch.clamp(ratio, 0.8, 1.2)
    policy_loss = torch.maximum(-advantages * ratio, -advantages * clipped).mean()
    near = old_values + torch.clamp(values - old_values, -0.2, 0.2)
    value_loss = 0.5 * torch.maximum((values - returns) ** 2, (near - returns) ** 2).mean()
    return policy_loss - 0.01 * entropy.mean() + 0.5 * value_loss


def _ppo(rows: int, actions: int) -> Step:
    logits = torch.empty(rows, actions, dtype=torch.bfloat16).requires_grad_()
    taken = torch.empty(rows, dtype=torch.int64)
    values = torch.empty(rows).requires_grad_()
    rest = tuple(torch.empty(rows) for _ in range(4))
    return Step(ppo, (logits, values, taken, *rest), limits=(2, 2, actions, 2, 2, 2, 2))


PPO = Family(
    "ppo",
    _ppo,
    {
        "filling": table_of("rows actions", 1 << 18, 64),
        "small": table_of("rows actions", 2048, 18),
    },
    {
        "filling": table_of("rows actions", 40, 7),
        "small": table_of("rows actions", 40, 6),
    },
)


def grpo(
    logits: Tensor,
    tokens: Tensor,
    old_log_probs: Tensor,
    reference_log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor,
) -> Tensor:
    """Clipped surrogate of each token and its divergence from a reference, by sequence."""
    log_probs = F.log_softmax(logits[:, :-1].float() / 0.9, dim=-1)
    taken = torch.take_along_dim(log_probs, tokens[:, 1:, None], dim=2).squeeze(2)
    apart = reference_log_probs - taken
    divergence = torch.exp(apart) - apart - 1
    ratio = torch.exp(taken - old_log_probs)
    clipped = torch.clamp(ratio, 1 - 0.2, 1 + 0.28)
    against = -advantages[:, None]
    losses = torch.maximum(ratio * against, clipped * against)
    losses = (losses + 0.04 * divergence) * mask
    counts = torch.clamp(mask.sum(-1), min=1.0)
    return (losses.sum(-1) / counts).mean()


def _grpo(batch: int, tokens: int, vocabulary: int) -> Step:
    logits = torch.empty(batch, tokens, vocabulary, dtype=torch.bfloat16).requires_grad_()
    ids = torch.empty(batch, tokens, dtype=torch.int64)
    old, reference, mask = (torch.empty(batch, tokens - 1) for _ in range(3))
    inputs = (logits, ids, old, reference, torch.empty(batch), mask)
    return Step(grpo, inputs, limits=(2, vocabulary, 2, 2, 2, 2))


_GRPO = "batch tokens vocabulary"
GRPO = Family(
    "grpo",
    _grpo,
    {"filling": table_of(_GRPO, 8, 513, 32000), "small": table_of(_GRPO, 4, 65, 8000)},
    {"filling": table_of(_GRPO, 3, 9, 90), "small": table_of(_GRPO, 2, 9, 60)},
)


def distillation(logits: Tensor, teacher: Tensor, labels: Tensor) -> Tensor:
    """Divergence of a student from its teacher at a temperature, and cross entropy of labels."""
    temperature = 4.0
    wide = logits.float()
    found = F.log_softmax(wide / temperature, dim=-1)
    wanted = F.log_softmax(teacher.float() / temperature, dim=-1)
    divergence = (wanted.exp() * (wanted - found)).sum(-1).mean()
    soft = divergence * (temperature * temperature)
    return 0.9 * soft + 0.1 * F.cross_entropy(wide, labels)


def _distillation(rows: int, classes: int) -> Step:
    logits = torch.empty(rows, classes, dtype=torch.bfloat16).requires_grad_()
    teacher = torch.empty(rows, classes, dtype=torch.bfloat16)
    labels = torch.empty(rows, dtype=torch.int64)
    return Step(distillation, (logits, teacher, labels), limits=(2, 2, classes))


DISTILLATION = Family(
    "distillation",
    _distillation,
    {
        "filling": table_of("rows classes", 2048, 30522),
        "small": table_of("rows classes", 256, 1000),
    },
    {
        "filling": table_of("rows classes", 20, 90),
        "small": table_of("rows classes", 20, 50),
    },
)

FAMILIES = (PPO, GRPO, DISTILLATION)
