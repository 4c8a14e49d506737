"""Activities that may be the purpose of a program: findings, remarks and hints."""

from __future__ import annotations

import pytest

from explain.activity_stacks import STACKS
from explain.program_parts import NODE, of_library, of_python, own, process, seen, watched
from explain.scenario_parts import NodePart, found
from teho.explain.activities import activity_of
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.rules.cpu import known_activity
from teho.model.finding import Certainty, Severity
from teho.model.stack import State

READ = (of_python("http/client.py", "HTTPResponse.begin"), own("urlopen(url)", 46, "ask"))
RECEIVED = (own("link.recv(count)", 39, "receive"),)
FEVAL = (
    own("np.argsort(-score[a:b])", 25, "reciprocal_rank"),
    of_library("lightgbm/basic.py", "Booster.__inner_eval"),
    of_library("lightgbm/engine.py", "train"),
    own("lgb.train(params, data)", 44, "main"),
)
IDLE = [NodePart(NODE, cores=8, cores_used=0.3)]


def made(*stacks, **facts):
    return watched(process(*stacks, **{"progress": ()} | facts), parts=IDLE)


@pytest.mark.parametrize(
    ("computes_s", "severity"), [(9.9, Severity.HINT), (10.1, Severity.REMARK)]
)
def test_a_program_that_only_asks_a_server_may_need_each_answer(computes_s, severity):
    rest = seen((own("fit(x)"),), computes_s)
    imports = seen((of_python("<frozen importlib._bootstrap>", "_load"), own("import x")), 5.0)
    waits = seen(READ, 95.0 - computes_s, State.PROCESS)
    finding = found(known_activity, made(waits, rest, imports))
    assert finding.severity is severity
    assert finding.sentence.startswith("Waiting for a server took")


def test_in_a_training_a_server_is_a_loss():
    finding = found(known_activity, watched(process(seen(READ, 95.0, State.PROCESS)), parts=IDLE))
    assert finding.severity is Severity.CRITICAL


@pytest.mark.parametrize("computes_s", [1.0, 40.0])
def test_the_other_side_of_a_connection_may_set_the_pace(computes_s):
    stacks = seen(RECEIVED, 100.0 - computes_s, State.PROCESS), seen((own("f(x)"),), computes_s)
    finding = found(known_activity, made(*stacks))
    assert finding.severity is Severity.HINT
    assert finding.sentence.startswith("Waiting for data on a connection took")
    training = watched(process(stacks[0]), parts=IDLE)
    assert found(known_activity, training).severity is Severity.HINT


@pytest.mark.parametrize(
    ("frames", "name"),
    [
        ((of_python("lzma.py", "compress"), own("lzma.compress(data)")), "compressing_in_memory"),
        ((own("zlib.compress(data)"),), "compressing_in_memory"),
        ((of_python("gzip.py", "compress"), own("gzip.compress(data)")), "compressing_in_memory"),
        ((of_python("gzip.py", "GzipFile.write"), own("out.write(row)")), "compressing"),
        ((of_python("bz2.py", "BZ2File.write"), own("out.write(row)")), "compressing"),
        ((of_library("numpy/lib/_npyio_impl.py", "_savez"), own("np.savez(f, x)")), "compressing"),
    ],
)
def test_compressing_in_memory_is_not_writing_files(frames, name):
    assert activity_of(seen(frames, 1.0)).name == name


def test_the_compressed_size_may_be_the_result():
    finding = found(known_activity, made(seen((own("lzma.compress(data)"),), 90.0)))
    assert finding.severity is Severity.HINT
    written = found(known_activity, made(seen(STACKS["compressing"], 90.0)))
    assert written.severity is Severity.REMARK


class TestNever:
    @pytest.mark.parametrize("stack", [FEVAL, STACKS["pipeline_refitted"]])
    @pytest.mark.parametrize("wall_s", [30.0, 90.0])
    def test_what_no_program_is_for_is_a_finding(self, stack, wall_s):
        finding = found(known_activity, made(seen(stack, wall_s)))
        assert finding.severity in (Severity.WARNING, Severity.CRITICAL)
        assert finding.certainty is Certainty.POSSIBLE
        assert "purpose" not in finding.sentence
        assert finding.regain_percent is not None

    @pytest.mark.parametrize("stack", [FEVAL, STACKS["pipeline_refitted"]])
    def test_below_the_limit_of_work_it_is_normal(self, stack):
        stacks = seen(stack, 29.9), seen((own("f(x)"),), 70.1)
        findings, _ = judge_all(*made(*stacks), load_policy())
        assert "known_activity" not in [one.kind for one in findings]

    def test_a_metric_of_the_library_may_be_needed(self):
        assert activity_of(seen(FEVAL, 1.0)).name == "boosting_metric_of_program"
        inner = (of_library("lightgbm/basic.py", "Booster.__inner_eval"), *FEVAL[2:])
        assert activity_of(seen(inner, 1.0)).name == "boosting_evaluated"
        assert found(known_activity, made(seen(inner, 90.0))).severity is Severity.REMARK

    def test_a_library_that_a_metric_calls_belongs_to_the_metric(self):
        label = (of_library("lightgbm/basic.py", "Dataset.get_label"), *FEVAL)
        assert activity_of(seen(label, 1.0)).name == "boosting_metric_of_program"


METRICS = (
    of_library("sklearn/metrics/_ranking.py", "roc_auc_score"),
    own("roc_auc_score(truth, scores)", 43, "training_step"),
)


@pytest.mark.parametrize("wall_s", [30.0, 59.0, 80.0])
def test_a_training_is_not_there_for_its_metrics(wall_s):
    finding = found(known_activity, watched(process(seen(METRICS, wall_s))))
    assert "purpose" not in finding.sentence
    assert finding.certainty is Certainty.POSSIBLE
    assert finding.regain_percent is not None


def test_without_steps_a_program_may_be_there_for_its_metrics():
    finding = found(known_activity, made(seen(METRICS, 80.0)))
    assert finding.severity is Severity.HINT


@pytest.mark.parametrize("name", ["images_decoded", "compressing"])
def test_other_work_may_be_a_part_of_a_training(name):
    finding = found(known_activity, watched(process(seen(STACKS[name], 40.0))))
    assert finding.sentence.endswith("This may be the purpose of the program.")
