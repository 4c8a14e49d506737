"""The stand-ins for a GPU in a rehearsal: a library of the driver, and a program `nvidia-smi`.

The tests use the same library. The program prints a fixed answer in the form of the real
`nvidia-smi`, so that a rehearsal runs the code that reads it. This answer is never shown.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from common import nvml_stub

__all__ = ["SCENARIO", "stand_in"]

SCENARIO = (
    "gpus 1",
    "0 0 90 20480 500 1755 60 0 2=80 3=40 5=60 10=30 11=1 12=9 13=0",
    "3 0 40 20480 300 1755 60 0 2=30 3=20 5=20 10=10 11=1 12=4 13=0",
    "6 0 90 20480 500 1755 60 0 2=80 3=40 5=60 10=30 11=1 12=9 13=0",
)
_SMI = '''#!{python}
"""Prints what nvidia-smi would, in its form; the figures are made up."""
import sys

XML = """<?xml version="1.0" ?>
<nvidia_smi_log>
 <driver_version>550.54.15</driver_version>
 <gpu id="00000000:07:00.0">
  <product_name>NVIDIA H100 80GB HBM3</product_name>
  <mig_mode><current_mig>Disabled</current_mig></mig_mode>
  <pci><tx_util>180000 KB/s</tx_util><rx_util>900000 KB/s</rx_util></pci>
  <clocks_event_reasons>
   <clocks_event_reason_sw_power_cap>Not Active</clocks_event_reason_sw_power_cap>
   <clocks_event_reason_hw_thermal_slowdown>Not Active</clocks_event_reason_hw_thermal_slowdown>
  </clocks_event_reasons>
  <fb_memory_usage><used>20480 MiB</used></fb_memory_usage>
  <utilization><gpu_util>90 %</gpu_util><memory_util>45 %</memory_util></utilization>
  <temperature><gpu_temp>60 C</gpu_temp></temperature>
  <gpu_power_readings><instant_power_draw>500.00 W</instant_power_draw></gpu_power_readings>
  <clocks><sm_clock>1755 MHz</sm_clock><mem_clock>2619 MHz</mem_clock></clocks>
  <processes></processes>
 </gpu>
</nvidia_smi_log>
"""
DMON = """# gpu    pwr  gtemp  mtemp     sm    mem  rxpci  txpci   mclk   pclk     fb
# Idx      W      C      C      %      %   MB/s   MB/s    MHz    MHz     MB
    0    500     60      -     90     45    900    180   2619   1755  20480
    0    500     60      -     90     45    900    180   2619   1755  20480
"""
print(DMON if "dmon" in sys.argv else XML)
'''


def stand_in(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Make the stand-ins, and return the variables that select them instead of a real GPU.

    If there is no C compiler, there is no library. Programs then find no driver, and say so.
    """
    folder.mkdir(parents=True)
    smi = folder / "nvidia-smi"
    smi.write_text(_SMI.format(python=sys.executable), encoding="utf-8")
    smi.chmod(0o755)
    scenario = folder / "scenario.txt"
    scenario.write_text("\n".join([*SCENARIO, ""]), encoding="utf-8")
    own = {"PATH": f"{folder}:{env['PATH']}"}
    try:
        return own | nvml_stub.environment(nvml_stub.build(folder / "lib"), scenario)
    except nvml_stub.NoCompilerError:
        return own
