"""What the probe notes of real Grain pipelines."""

from __future__ import annotations

import json
import re

import pytest

from probe.probed import WITH_FRAMEWORKS, Probed, Ran
from support import lacks_framework

pytestmark = [
    pytest.mark.skipif(bool(lacks_framework("grain")), reason=lacks_framework("grain")),
    pytest.mark.drawn(1, group="frameworks beside PyTorch"),
]

PROGRAM = """
import inspect
import grain
from absl import flags
class Numbers:
    def __len__(self): return 24
    def __getitem__(self, number): return number
class More(grain.transforms.Map):
    def map(self, number): return number + 1
def loader(workers):
    sampler = grain.samplers.IndexSampler(
        24, shuffle=False, num_epochs=1, shard_options=grain.sharding.NoSharding())
    return grain.DataLoader(data_source=Numbers(), sampler=sampler, worker_count=workers,
        operations=[More(), grain.transforms.Batch(4)])
def stream():
    numbers = grain.MapDataset.source(Numbers()).map(lambda n: n + 1).batch(8)
    return numbers.to_iter_dataset(grain.ReadOptions(num_threads=3))
def use(what):
    for _ in range(EPOCHS): print([batch.tolist() for batch in what])
def main():
    flags.FLAGS.mark_as_parsed()
    use(loader(0))
    use(loader(2))
    use(stream())
    print(inspect.signature(grain.DataLoader.__iter__))
if __name__ == "__main__":
    main()
"""


EPOCHS = 2


def program(epochs: int = EPOCHS) -> str:
    return PROGRAM.replace("EPOCHS", str(epochs))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return what the program prints without the probe."""
    probed = Probed(tmp_path_factory.mktemp("plain"))
    done = probed.run(program(), python=WITH_FRAMEWORKS, probe=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pipelines_are_recorded_with_their_settings_and_waits(probed: Probed, plain: bytes) -> None:
    done = probed.run(program(), python=WITH_FRAMEWORKS)
    assert (done.stdout, done.returncode) == (plain, 0)
    # Workers read the same pipelines, for the main process.
    (main,) = (one for one in probed.watched() if one.loaders)
    found = {(one.settings["api"], one.settings["num_workers"]): one for one in main.loaders}
    assert set(found) == {("DataLoader", 0), ("DataLoader", 2), ("Dataset", 0)}
    for (api, _), one in found.items():
        # Each epoch: 24 numbers in batches of 4, or of 8.
        assert (one.epochs, one.batches) == (EPOCHS, 12 if api == "DataLoader" else 6)
        assert one.settings["batch_size"] == (4 if api == "DataLoader" else 8)
        assert one.settings["num_threads"] == (16 if api == "DataLoader" else 3)
        assert one.made_at is not None
        assert "what" in one.made_at.text
        assert one.wait_s > 0


def test_tune_changes_the_workers_of_both_kinds_of_pipelines(probed: Probed, plain: bytes) -> None:
    probed.environment = {"TEHO_TUNE": json.dumps({"num_workers": 1, "prefetch_factor": 3})}
    done = probed.run(program(epochs=1), python=WITH_FRAMEWORKS)
    assert done.returncode == 0, done.stderr
    # Another number of workers gives another order of the same elements.
    epochs, own = (re.findall(rb"\[\[.*", one) for one in (plain, done.stdout))
    numbers = [sorted(re.findall(rb"\d+", b"".join(one))) for one in (epochs[::EPOCHS], own)]
    assert numbers[0] == numbers[1]
    assert len(own) == 3
    (main,) = (one for one in probed.watched() if one.loaders)
    found = {
        (one.settings["api"], one.settings["num_workers"], one.settings["prefetch_factor"])
        for one in main.loaders
    }
    assert found == {("DataLoader", 1, 3), ("Dataset", 1, 3)}


INTERLEAVED = """
import grain
opens = []
def opened(number):
    opens.append(number)
    return grain.MapDataset.source([number, number]).to_iter_dataset()
files = grain.MapDataset.source([1, 2, 3]).map(opened)
print(list(grain.experimental.InterleaveIterDataset(files, cycle_length=1)), sorted(opens))
"""
NO_HASH = """
import grain
usual = type(iter(grain.MapDataset.source([1, 2, 3]).to_iter_dataset()))
class Equal(usual):
    def __eq__(self, other): return True
print(list(grain.MapDataset.source([1, 2, 3]).to_iter_dataset()))
other = iter(grain.MapDataset.source([4, 5]).to_iter_dataset())
other.__class__ = Equal
print(next(other), next(other))
"""
PICKLED = """
import cloudpickle, grain
class Rows(grain.MapDataset):
    def __len__(self): return 10
    def __getitem__(self, number): return number
    @property
    def _element_spec(self): return None
class Same(grain.IterDataset):
    def __iter__(self): return iter(self._parent)
    @property
    def _element_spec(self): return None
rows = Same(Rows().to_iter_dataset())
print(list(rows), list(rows))
packed = cloudpickle.dumps(rows)
print(list(cloudpickle.loads(packed)), b"teho" in packed)
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run three programs in forks, with the probe and without."""
    probed = Probed(tmp_path_factory.mktemp("grain"))
    programs = {"interleaved": INTERLEAVED, "no hash": NO_HASH, "pickled": PICKLED}
    done, plain = (
        probed.forked("import cloudpickle, grain", programs, probe=probe) for probe in (True, False)
    )
    return Ran(done, plain, probed.watched())


def test_data_sets_in_a_data_set_are_not_read_by_the_probe(ran: Ran) -> None:
    ran.check_same("interleaved")
    assert ran.probed["interleaved"].stdout == b"[1, 1, 2, 2, 3, 3] [1, 2, 3]\n"


def test_an_iterator_that_cannot_be_hashed_continues(ran: Ran) -> None:
    ran.check_same("no hash")
    assert ran.probed["no hash"].returncode == 0, ran.probed["no hash"].stderr
    assert ran.probed["no hash"].stdout.endswith(b"4 5\n")


def test_classes_of_the_program_are_pickled_as_they_are(ran: Ran) -> None:
    ran.check_same("pickled")
    assert ran.probed["pickled"].returncode == 0, ran.probed["pickled"].stderr
    assert ran.probed["pickled"].stdout.endswith(b"False\n")
