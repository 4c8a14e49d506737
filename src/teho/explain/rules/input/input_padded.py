"""Most tokens of the batches are padding."""

from __future__ import annotations

from teho.explain.lines import sections_s
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import Doing, Section

RANK = 204
SEVERITY = "critical, warning"
THRESHOLDS = {
    "padding_percent": chosen(
        40.0, "%", "texts of different lengths need some padding, even if they are sorted"
    ),
}

_COMPUTING = (Section.LOOP, Section.EVALUATION, Section.PROGRAM)


def judge(context: ProgramContext) -> Findings:
    """Look at the share of padding in the batches of a loader.

    The probe counts the padding in the first batches. It uses the attention mask, or the token that
    ends most texts. A model computes the padding in the same way as all other tokens.
    """
    for main in context.mains:
        loaders = [one for one in main.process.loaders if "padding_percent" in one.batch]
        if not loaders:
            continue
        loader = max(loaders, key=lambda one: one.batches)
        padding = float(loader.batch["padding_percent"])
        if padding < context.limit("padding_percent"):
            continue
        sections = sections_s(main.process)
        computing_s = sum(sections.get(section, 0.0) for section in _COMPUTING)
        needless_s = computing_s * padding / 100
        if not context.is_loss(needless_s, main):
            continue
        share = 100 * needless_s / main.process.wall_s
        yield context.lost(
            f"Of all tokens in the batches, {padding:.0f} % are padding (tokens without text). "
            "The model also computes with the padding.",
            share_percent=share,
            evidence=(
                Evidence("share of padding in all tokens", padding, "%"),
                Evidence("time in steps and in evaluation",
                         100 * computing_s / main.process.wall_s, "%"),
            ),
            action=(
                "Pad each batch only to the length of its longest text. With Transformers, "
                "tokenize without `padding`, and use `DataCollatorWithPadding(tokenizer)`. Without "
                "Transformers, call `torch.nn.utils.rnn.pad_sequence` in `collate_fn`. Put texts "
                "of similar lengths into the same batch, for example with `group_by_length=True` "
                "in `TrainingArguments`."
            ),
            regain_percent=(share / 2, 0.9 * share),
            lines=main.lines(Doing.NATIVE, Doing.THREADS, Doing.DEVICE),
        )  # fmt: skip
        return
