"""One training step of a small language model as one definition: forward, loss, all gradients.

Embedding, RMS norm, rotary attention, dropout, layer norm, a gated MLP and cross entropy, with the
backward written out by hand; ``reference`` is the same in torch, differentiated by autograd.
"""

from .attention import Attention, attention, attention_backward
from .autograd import loss, reference, training_step
from .sizes import REAL, SMALL, Sizes, make_inputs
from .step import define, record
from .writer import Writer

__all__ = [
    "REAL",
    "SMALL",
    "Attention",
    "Sizes",
    "Writer",
    "attention",
    "attention_backward",
    "define",
    "loss",
    "make_inputs",
    "record",
    "reference",
    "training_step",
]
