"""What has another name now, as plain data: applied to the base's side before it is compared.

Every occurrence is replaced at once, so names may be swapped. Remove what no base needs any more.
"""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "_eight_of": "eight_of",
    "Leg": "StrideTerm",
    "Board": "CooperativeWorkspace",
    "board": "workspace",
    "board_ptr": "workspace_ptr",
    "both_of_pairs": "split_pairs",
    "exp_below": "exp_nonpositive",
    "heard": "wait_for",
    "keep": "materialize",
    "legs": "stride_terms",
    "let_next_start": "launch_dependents",
    "look": "peek",
    "share": "div_by_sum",
    "tell": "publish",
}
"""Old to new, whole identifiers or dotted names: functions of the device library, fields of params
and of kernels, variables in kernels."""

TEXTS: Mapping[str, str] = {
    "_turned": "_transposed",
    "exp_below": "exp_nonpositive",
    "too few to keep partial results": "too few for partial results",
}
"""Old to new, any part of a text: of reasons, cuts, guards, messages, and of the names of kernels,
which are made of the names of ops."""
