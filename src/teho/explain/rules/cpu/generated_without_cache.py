"""A language model generates text without its cache of keys and values."""

from __future__ import annotations

import re

from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.explain.where import LineTimes, place_of

RANK = 212
SEVERITY = "critical, warning"
THRESHOLDS = {
    "generating_min_s": chosen(
        15.0,
        "s",
        "a cache takes at least 1 % of the time, so in 15 s some samples would show its functions",
    ),
}

_GENERATING = re.compile(
    r"transformers/generation/utils\.py:(\w+\.)?_(sample|beam_search|greedy\w*)$"
)
_ATTENTION = re.compile(r":\w*Attention\.forward$")
_CACHE = re.compile(r"transformers/cache_utils\.py:")


def judge(context: ProgramContext) -> Findings:
    """Look for attention during `generate`, without any function of the cache.

    Models without attention have other caches, so they are not judged.
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
        yield context.lost(
            f"Generating text without a cache took {share:.0f} % of the time: for each new token, "
            "the model computes all earlier tokens again.",
            share_percent=share,
            evidence=(
                Evidence("generating", share, "%"),
                Evidence("generating", generating_s, "s"),
            ),
            action=(
                "Remove `use_cache=False` from `generate(…)` and from the model's configuration. "
                "Gradient checkpointing turns the cache off: call "
                "`model.gradient_checkpointing_disable()` before `generate`."
            ),
            regain_percent=(share / 2, 0.95 * share),
            lines=lines.slowest(),
        )
        return
