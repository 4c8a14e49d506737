"""Lines that leave the GPU idle although it could do their work, as findings."""

from __future__ import annotations

import pytest

from explain.program_parts import of_library, own, process, seen, watched
from explain.program_scenarios import node
from explain.scenario_parts import UNSUPPORTED, figures, found, gpu, judged, kinds_of
from teho.explain.judge import judge_by
from teho.explain.policy import load_policy
from teho.explain.rules.cpu import option_costly
from teho.explain.rules.gpu import gpu_idle_at_lines
from teho.explain.rules.job import evaluation_long
from teho.model.finding import Abstention, Certainty, Severity
from teho.model.in_source import CostlyOption
from teho.model.stack import State

CAST = own("crops.astype(np.float32)", 43, "prepare")
PART = own("(x - MEAN) / STD", 44, "prepare")
WORDS = {"bytes": "crops", "before": "", "file": "train.py", "where": "lines 43 to 45",
         "code": "`return x`"}  # fmt: skip
CONVERTED = CostlyOption(name="converted_before_copy", at=CAST, lines=(CAST, PART), words=WORDS)
IMPORT = (of_library("torch/__init__.py", "<module>"), own("import torch", 7, "<module>"))
FACTS = {"devices": ["cuda:0"], "parameter_bytes": 1 << 30}


def made(*stacks, busy=14.0, options=(CONVERTED,), torch=FACTS, gpus=None, **facts):
    gpus = [gpu(busy)] if gpus is None else gpus
    one = process(*stacks, costly_options=tuple(options), torch=torch, **facts)
    return watched(one, parts=node(used=1.0, gpus=gpus))


def test_names_the_lines_and_what_to_write():
    finding = found(gpu_idle_at_lines, made(seen((CAST,), 30.0), seen((PART,), 20.0)))
    assert finding.sentence == (
        "The call `crops.astype(np.float32)` at train.py:43 makes 32-bit numbers of bytes on one "
        "core, before the copy to the GPU. Converting and copying batches took 50 % of the time, "
        "and the GPU was busy only 14 % of the time."
    )
    assert finding.action == (
        "Copy the bytes, a fourth of the data, and convert them on the GPU. Instead of lines 43 to "
        "45 of train.py, write: `return x`."
    )
    assert figures(finding)["time spent on these lines"] == pytest.approx(50.0)
    assert figures(finding)["slowest line"] == "train.py:43  crops.astype(np.float32)"
    assert finding.certainty is Certainty.LIKELY
    assert finding.severity is Severity.CRITICAL


def test_the_time_before_the_first_step_does_not_count():
    stacks = seen((CAST,), 15.0), seen((PART,), 5.0)
    start = seen(IMPORT, 50.0)
    finding = found(gpu_idle_at_lines, made(start, *stacks, set_up=(start,)))
    assert "took 40 % of the time after the first step" in finding.sentence
    # The saving is a share of the whole run.
    assert finding.regain_percent == (pytest.approx(12.0), pytest.approx(19.0))


@pytest.mark.parametrize(
    ("wall_s", "whole_s", "count"),
    [(9.9, 100.0, 0), (10.0, 100.0, 1), (1.9, 10.0, 0), (2.0, 10.0, 1), (0.4, 1.0, 0)],
)
def test_limits_of_the_time(wall_s, whole_s, count):
    given = made(seen((CAST,), wall_s), wall_s=whole_s, progress=())
    assert len(judged(gpu_idle_at_lines, given)) == count


@pytest.mark.parametrize(("busy", "count"), [(0.0, 0), (79.0, 1), (80.0, 0)])
def test_a_busy_or_unused_gpu(busy, count):
    assert len(judged(gpu_idle_at_lines, made(seen((CAST,), 50.0), busy=busy))) == count


@pytest.mark.parametrize(("active", "count"), [(24.0, 1), (26.0, 0)])
def test_a_gpu_that_is_busy_with_tiny_kernels(active, count):
    gpus = [gpu(99.0, gpu_sm_active_percent=active)]
    assert len(judged(gpu_idle_at_lines, made(seen((CAST,), 50.0), gpus=gpus))) == count


def test_a_model_on_the_cpu():
    given = made(seen((CAST,), 50.0), torch={"devices": ["cpu"]})
    assert judged(gpu_idle_at_lines, given) == []


def test_without_a_gpu():
    assert judged(gpu_idle_at_lines, made(seen((CAST,), 50.0), gpus=[])) == []


def test_an_unknown_use_of_the_gpu():
    assert isinstance(judged(gpu_idle_at_lines, made(seen((CAST,), 50.0), busy=UNSUPPORTED)),
                      Abstention)  # fmt: skip


@pytest.mark.parametrize(("wall_s", "is_alone"), [(34.0, True), (20.0, False)])
def test_general_findings_remain_if_the_lines_explain_little(wall_s, is_alone):
    kinds = kinds_of(made(seen((CAST,), wall_s), busy=14.0))
    assert kinds[0] == "gpu_idle_at_lines"
    assert ("gpu_low_use" not in kinds) is is_alone


CDIST = own("cdist(query, known)", 79, "rank_one")
ON_HOST = CostlyOption(
    name="computed_on_host",
    at=CDIST,
    lines=(CDIST,),
    words={"before": "", "place": "train.py:79", "old": "cdist(query, known)", "new": "x"},
)
NEAREST = CostlyOption(
    name="distance_of_all_pairs_for_nearest",
    at=CDIST,
    lines=(CDIST,),
    words={"first": "query", "second": "known"},
)


def test_a_search_tree_is_not_advised_for_arrays_of_the_gpu():
    stack = seen((CDIST,), 40.0)
    assert judged(option_costly, made(stack, options=(ON_HOST, NEAREST))) == []
    (finding,) = judged(option_costly, made(stack, options=(NEAREST,)))
    assert finding.action.startswith("If the points have at most about 20 columns, write ")


def test_a_threshold_of_the_user_also_counts_for_other_rules(tmp_path):
    file = tmp_path / "site.toml"
    file.write_text("[gpu_idle_at_lines]\nbusy_percent = 10\n")
    policy = load_policy(file)
    given = made(seen((CDIST,), 40.0), busy=14.0, options=(ON_HOST, NEAREST))
    assert judge_by(gpu_idle_at_lines, *given, policy) == []
    (finding,) = judge_by(option_costly, *given, policy)
    assert "cdist(query, known)" in finding.sentence


def test_the_reason_for_a_long_evaluation():
    argmax = own("np.argmax(logits, axis=-1)", 38, "restored")
    numpify = of_library("transformers/trainer_pt_utils.py", "nested_numpify")
    evaluates = of_library("transformers/trainer.py", "Trainer.evaluate")
    fit = own("trainer.train()", 85, "main")
    words = {"file": "train.py", "made": "80", "metrics": "restored", "logits": "logits",
             "best": argmax.text}  # fmt: skip
    logits = CostlyOption(name="trainer_collects_logits", at=argmax, lines=(argmax, fit),
                          words=words)  # fmt: skip
    place = of_library("numpy/_core/fromnumeric.py", "_wrapfunc")
    copies = seen((numpify, evaluates, fit), 40.0)
    searches = seen((place, argmax, evaluates, fit), 4.0)
    other = seen((of_library("torch/nn/functional.py", "linear"), evaluates, fit), 10.0)
    given = made(copies, searches, other, options=(logits,))
    assert "`np.argmax(logits, axis=-1)` at train.py:38" in found(gpu_idle_at_lines, given).sentence
    assert judged(evaluation_long, given) == []
    # With few classes, the argmax takes no time, and the copies only wait for the GPU.
    few = made(copies, other, options=(logits,))
    assert judged(gpu_idle_at_lines, few) == []
    assert judged(evaluation_long, few) != []


def test_native_and_python_time_count():
    stacks = seen((CAST,), 20.0, State.PYTHON), seen((PART,), 20.0, State.NATIVE)
    assert "took 40 % of the time" in found(gpu_idle_at_lines, made(*stacks)).sentence
