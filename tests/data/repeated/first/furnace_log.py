"""
verdict: none
stack:
  record(Furnace("/dev/ttyUSB0"), minutes=90)
  furnace.temperature(CHANNEL)
  self.ask("KRDG? %d" % channel)
  self.port.read_until(TERMINATOR)
why: the instrument is asked for its present temperature again and again
"""
import csv
import time

import serial

CHANNEL = 2
TERMINATOR = b"\r\n"


class Furnace:
    def __init__(self, device, baud=9600):
        self.port = serial.Serial(device, baud, timeout=2)

    def ask(self, text):
        self.port.write(text.encode() + b"\r\n")
        return self.port.read_until(TERMINATOR).decode().strip()

    def temperature(self, channel):
        return float(self.ask("KRDG? %d" % channel))


def record(furnace, minutes, period=1.0):
    start = time.monotonic()
    hot = 0
    with open("furnace.csv", "w", newline="") as target:
        rows = csv.writer(target)
        while time.monotonic() - start < 60 * minutes:
            kelvin = furnace.temperature(CHANNEL)
            rows.writerow([round(time.monotonic() - start, 2), kelvin])
            hot += kelvin > 900
            time.sleep(period)
    return hot


if __name__ == "__main__":
    print(record(Furnace("/dev/ttyUSB0"), minutes=90))
