from __future__ import annotations

import math

import pytest
import views

from teho.model.document import Fact, Table
from teho.model.missing import Missing, Reason
from teho.show.text.seff import render_seff
from teho.units import GIB

CSC_LOAD_AND_MEMORY = (
    "GPU load \n"
    "     Hostname        GPU Id      Mean (%)    stdDev (%)       Max (%) \n"
    "       r01g07             0         92.18         19.48           100 \n"
    "------------------------------------------------------------------------\n"
    "GPU memory \n"
    "     Hostname        GPU Id    Mean (GiB)  stdDev (GiB)     Max (GiB) \n"
    "       r01g07             0         16.72          1.74         16.91 \n"
)
CSC_ENERGY = (
    "GPU energy\n"
    "      Hostname        GPU Id   Energy (Wh)\n"
    "        r01g01             0         58.30\n"
    "        r01g01             1         56.63\n"
    "        r01g01             2         44.87\n"
    "        r01g01             3         62.21\n"
)
HEAD = """\
Job ID: 17273947
Cluster: puhti
State: COMPLETED (exit code 0)
Nodes: 1
Cores per node: 10
CPU Utilized: 01:08:02
CPU Efficiency: 45.00% of 02:31:10 core-walltime
Job Wall-clock time: 00:15:07
Memory Utilized: 21.50 GB
Memory Efficiency: 33.59% of 64.00 GB
"""


def of_gpus(*rows, facts=()):
    table = Table(key="gpus", title="GPUs", columns=views.GPU_COLUMNS, rows=rows)
    return views.base(facts=facts, tables=(table,))


def test_load_and_memory_are_those_of_the_guide_byte_for_byte():
    assert CSC_LOAD_AND_MEMORY in render_seff(views.one_gpu())


def test_energy_is_that_of_the_guide_byte_for_byte():
    energies_wh = (58.3, 56.63, 44.87, 62.21)
    rows = [views.gpu_row("r01g01", i, energy=wh * 3600) for i, wh in enumerate(energies_wh)]
    assert render_seff(of_gpus(*rows)).endswith(CSC_ENERGY)


def test_head_is_that_of_seff():
    assert render_seff(views.one_gpu()).startswith(HEAD)


@pytest.mark.parametrize("value", [None, Missing(Reason.FORBIDDEN)])
def test_head_leaves_out_what_is_not_there(value):
    text = render_seff(
        views.base(
            facts=views.facts(
                cluster=("cluster", value, ""),
                memory_limit_bytes=("limit", value, "bytes"),
                core_walltime_s=("core time", value, "s"),
            )
        )
    )
    absent = ("Cluster", "Memory Efficiency", "CPU Efficiency")
    kept = [line for line in HEAD.splitlines(keepends=True) if not line.startswith(absent)]
    assert text == "".join(kept)


def test_nothing_known_is_nothing_printed():
    assert render_seff(views.bare()) == ""


def test_missing_figure_is_a_word_of_the_same_width():
    lines = render_seff(views.eight_gpus()).splitlines()
    lost = [line for line in lines if "N/A" in line and line.split()[1] == "7"]
    assert lost == [
        "        g1102             7           N/A           N/A           N/A ",
        "        g1102             7           N/A           N/A           N/A ",
        "         g1102             7           N/A",
    ]
    assert "        g1102             6          0.00          0.00             0 " in lines


@pytest.mark.parametrize(
    ("load_max", "shown"),
    [(100.0, "100"), (98.5, "98.50"), (0.0, "0"), (7, "7"), (math.nan, "N/A")],
)
def test_whole_maximum_is_printed_whole(load_max, shown):
    line = render_seff(of_gpus(views.gpu_row(load_max=load_max))).splitlines()[2]
    assert line.split()[4] == shown
    assert len(line) == 70


def test_long_host_name_pushes_the_other_columns():
    name = "nid002345.hpc.example.org"
    line = render_seff(of_gpus(views.gpu_row(name))).splitlines()[2]
    assert line == f"{name}             0         92.18         19.48           100 "


@pytest.mark.parametrize(
    ("amount_bytes", "shown"),
    [(0, "0.00 KB"), (512 * 1024, "512.00 KB"), (1.5 * GIB, "1.50 GB"), (3 * 1024**4, "3.00 TB")],
)
def test_memory_is_written_in_the_units_of_seff(amount_bytes, shown):
    facts = (Fact("memory_peak_bytes", "peak", amount_bytes, "bytes"),)
    assert render_seff(views.base(facts=facts)) == f"Memory Utilized: {shown}\n"


def parsed(text):
    """Read the text as people's awk scripts do: sections by their title, fields by spaces."""
    head, sections, title = {}, {}, None
    for line in text.splitlines():
        if line.startswith("GPU "):
            title = line.strip()
            sections[title] = []
        elif title is None:
            key, _, value = line.partition(": ")
            head[key] = value
        elif not line.startswith("---") and line.split()[0] != "Hostname":
            sections[title].append(line.split())
    return head, sections


def test_naive_parser_gets_the_figures_back():
    rows = [
        views.gpu_row(f"n{i // 4}", i % 4, load_mean=i * 9.25, memory_max=i * GIB, energy=i * 3600)
        for i in range(8)
    ]
    head, sections = parsed(render_seff(of_gpus(*rows, facts=views.facts())))
    assert head["Job ID"] == "17273947"
    assert float(head["CPU Efficiency"].split("%")[0]) == 45.0
    for i, (load, memory, energy) in enumerate(
        zip(sections["GPU load"], sections["GPU memory"], sections["GPU energy"], strict=True)
    ):
        assert load[:2] == memory[:2] == energy[:2] == [f"n{i // 4}", str(i % 4)]
        assert [float(x) for x in load[2:]] == [i * 9.25, 19.48, 100]
        assert [float(x) for x in memory[2:]] == [16.72, 1.74, i]
        assert float(energy[2]) == i


def test_hostile_names_stay_on_their_line():
    text = render_seff(views.hostile())
    assert all(char == "\n" or char.isprintable() for char in text)
    assert "\x1b" not in text
