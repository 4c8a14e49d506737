"""
verdict: none
stack:
  watch(open_port("/dev/ttyUSB0"), limit=40.0)
  read_ntu(port, samples=50)
  probe.query("MEAS:TURB?")
  self.link.readline()
why: each call measures the water anew, although the arguments are the same
"""
import statistics
import time

import serial


class Probe:
    def __init__(self, link):
        self.link = link

    def query(self, command):
        self.link.write(command.encode() + bytes([10]))
        return float(self.link.readline().decode().strip())


def open_port(name):
    return Probe(serial.Serial(name, 9600, timeout=2))


def read_ntu(probe, samples):
    readings = [probe.query("MEAS:TURB?") for _ in range(samples)]
    return statistics.median(readings)


def watch(port, limit, hold=3):
    above = 0
    while above < hold:
        value = read_ntu(port, samples=50)
        above = above + 1 if value > limit else 0
    with open("alarm.log", "a") as log:
        log.write(f"{time.time():.0f} {value:.2f}\n")


if __name__ == "__main__":
    watch(open_port("/dev/ttyUSB0"), limit=40.0)
