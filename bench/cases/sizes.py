"""The sizes that cases run at: powers of two, short to long rows, and odd extents."""

from __future__ import annotations

from .case import Sizes

SMALL = (512, 1024)
SQUARE = (8192, 8192)
LONG = (2048, 73728)
ODD = (8192, 8193)

ROWS = Sizes(
    bfloat16=(
        SMALL,
        (2048, 4096),
        SQUARE,
        (16384, 20480),
        (16384, 36864),
        LONG,
        (128, 262144),
        (8192, 8194),
        (8192, 8200),
        ODD,
        (4096, 4097),
    ),
    float32=(SMALL, SQUARE, LONG, ODD),
)
"""Matrices [rows, columns]."""

FEW = Sizes(
    bfloat16=(SMALL, SQUARE, (16384, 20480), LONG, ODD),
    float32=(SQUARE,),
)
"""A subset of ``ROWS``, for cases that differ from another case in one op."""

CUBES = Sizes(
    bfloat16=((8, 256, 512), (32, 4096, 1024), (512, 512, 512), (128, 2049, 513)),
    float32=((32, 4096, 1024),),
)
"""[outer, reduced, inner]: the middle dim is reduced."""

IMAGES = Sizes(
    bfloat16=((64, 32, 28, 28), (256, 64, 56, 56), (256, 64, 112, 112), (128, 96, 57, 57)),
    float32=((256, 64, 56, 56),),
)
"""[N, C, H, W]; the channels form 32 groups."""

SCORES = Sizes(
    bfloat16=((2, 8, 512, 512), (8, 16, 1024, 1024), (4, 32, 2048, 2048), (8, 16, 1023, 1023)),
    float32=((8, 16, 1024, 1024),),
)
"""Attention scores [batch, heads, queries, keys]."""

HEADS = Sizes(
    bfloat16=((1, 512, 8, 64), (8, 4096, 32, 128), (4, 4096, 32, 96), (8, 2047, 32, 128)),
    float32=((8, 2048, 32, 128),),
)
"""Queries [batch, sequence, heads, width]."""

VOCABULARIES = Sizes(bfloat16=((4096, 32000), (4096, 152064)), float32=((4096, 32000),))
"""Logits [tokens, vocabulary]."""

TABLES = Sizes(
    bfloat16=((32000, 4096, 8192), (152064, 4096, 8192), (50257, 768, 16384)),
    float32=((32000, 4096, 8192),),
)
"""[vocabulary, width, tokens]."""

PICKS = Sizes(
    bfloat16=((512, 1024, 512), (8192, 8192, 4096), (2048, 73728, 8192), (8192, 8193, 4097)),
    float32=((8192, 8192, 4096),),
)
"""[rows, columns, columns picked of each row]."""

SUMS = Sizes(
    bfloat16=((16, 64, 1024), (256, 256, 1024), (512, 512, 1000)),
    float32=((256, 256, 1024),),
)
"""[N, M, C] of [N, 1, C] + [1, M, C]."""
