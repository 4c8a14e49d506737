"""Watch a pottery kiln during a firing and raise alarms.

The controller of the kiln prints one reading at a time; the watch reads it
line by line, follows the heating rate and notes everything that is out of
the programme.  Here the controller is simulated by a child process that
keeps the pace of the real one.
"""
import argparse
import collections
import random
import subprocess
import sys
import time

PERIOD = 0.2
READINGS = 130


def controller():
    """Print time and temperature at a fixed pace."""
    rng = random.Random(6)
    begin = time.monotonic()
    temperature = 240.0
    for k in range(READINGS):
        rate = 5.0 if k < 80 else 1.2 if k < 110 else -2.0
        if 40 <= k < 46:
            rate = 11.0
        temperature += rate * 0.2 * 10 + rng.gauss(0, 1.1)
        print(f"{k * 2},{temperature:.2f}", flush=True)
        due = begin + (k + 1) * PERIOD
        time.sleep(max(0.0, due - time.monotonic()))


class Watch:
    """Heating rate over the last readings, and the alarms."""

    def __init__(self):
        self.recent = collections.deque(maxlen=8)
        self.alarms = []
        self.peak = 0.0
        self.count = 0

    def rate(self):
        if len(self.recent) < self.recent.maxlen:
            return None
        n = len(self.recent)
        mt = sum(t for t, _ in self.recent) / n
        mv = sum(v for _, v in self.recent) / n
        top = sum((t - mt) * (v - mv) for t, v in self.recent)
        return top / sum((t - mt) ** 2 for t, _ in self.recent)

    def reading(self, seconds, temperature):
        self.count += 1
        self.recent.append((seconds, temperature))
        self.peak = max(self.peak, temperature)
        rate = self.rate()
        if rate is not None and rate > 6.5:
            self.alarms.append((seconds, "heats too fast", rate))
        if temperature > 1150:
            self.alarms.append((seconds, "too hot", temperature))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--controller", action="store_true")
    if parser.parse_args().controller:
        controller()
        return
    watch = Watch()
    command = [sys.executable, __file__, "--controller"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as kiln:
        for line in kiln.stdout:
            seconds, temperature = line.split(",")
            watch.reading(int(seconds), float(temperature))
    if kiln.returncode:
        raise SystemExit("the controller failed")
    print(f"readings: {watch.count}, peak {watch.peak:.2f} degrees")
    print(f"alarms: {len(watch.alarms)}")
    for seconds, what, value in watch.alarms[:3]:
        print(f"  at {seconds} s: {what} ({value:.2f})")


if __name__ == "__main__":
    main()
