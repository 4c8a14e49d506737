"""A language model may generate text without its cache of keys and values."""

from __future__ import annotations

import re

from teho.explain.program_context import in_lines
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.where import LineTimes, place_of

RANK = 212
SEVERITY = "remark"
THRESHOLDS = {
    "generating_min_s": chosen(
        20.0,
        "s",
        "the probe reads about 400 stacks in 20 s; if the cache takes 1 % of the time, some of "
        "these stacks show the cache",
    ),
}

_GENERATING = re.compile(
    r"transformers/generation/utils\.py:(\w+\.)?_(sample|beam_search|greedy\w*)$"
)
_ATTENTION = re.compile(r":\w*Attention\.forward$")
_CACHE = re.compile(r"transformers/cache_utils\.py:")


def judge(context: ProgramContext) -> Findings:
    """Look for attention during `generate`, without any function of the cache.

    Models without attention have other caches, so they are not judged. It is a remark: old versions
    of transformers have no functions for the cache.
    """
    for main in context.mains:
        lines, generating_s, has_attention = LineTimes(), 0.0, False
        for seen in main.process.stacks:
            places = [place_of(frame) for frame in seen.frames]
            if not any(map(_GENERATING.search, places)):
                continue
            if any(map(_CACHE.search, places)):
                return
            has_attention = has_attention or any(map(_ATTENTION.search, places))
            generating_s += seen.wall_s
            lines.add(seen)
        is_long = generating_s >= context.limit("generating_min_s")
        if not (has_attention and is_long and context.is_loss(generating_s, main)):
            continue
        share = 100 * generating_s / main.process.wall_s
        yield context.finding(
            Severity.REMARK,
            f"Generating text took {share:.0f} % of the time, and Teho did not see the cache of "
            "keys and values in use.",
            evidence=(
                Evidence("generating", share, "%"),
                Evidence("generating", generating_s, "s"),
                *in_lines(lines.slowest()),
            ),
            action=(
                "If `use_cache=False` is in `generate(…)` or in the model's configuration, remove "
                "it: without the cache, the model computes all earlier tokens again for "
                "each new token. In training mode, gradient checkpointing turns the cache off: "
                "call `model.eval()` before `generate`."
            ),
            regain_percent=(share / 2, 0.95 * share),
        )
        return
