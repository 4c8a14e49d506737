"""Learn the oxygen response of a fish pond while it runs, and steer the aerator.

A probe (here a second process with the pond's equations) reports ten times a second of real
time; the controller updates its model with every report and answers with the next power.
"""
import json
import socket
import subprocess
import sys

import numpy as np

REPORTS, RATE = 240, 10.0
TARGET, LAGS = 7.5, 3

PROBE = """
import json, random, socket, sys, time
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
stream = link.makefile("rw")
chance = random.Random(9)
oxygen, power = 5.0, 0.0
began = time.monotonic()
for number in range(int(sys.argv[2])):
    time.sleep(max(0.0, began + number / float(sys.argv[3]) - time.monotonic()))
    oxygen += 0.1 * (0.9 * power - 0.25 * (oxygen - 4.0)) + chance.gauss(0, 0.02)
    stream.write(json.dumps({"report": number, "oxygen": oxygen}) + "\\n")
    stream.flush()
    power = json.loads(stream.readline())["power"]
stream.write("\\n")
stream.flush()
"""


class Learner:
    """Recursive least squares on the last reports and powers."""

    def __init__(self):
        self.size = 2 * LAGS + 1
        self.weights = np.zeros(self.size)
        self.weights[0] = 1.0
        self.spread = np.eye(self.size) * 10

    def update(self, seen, oxygen):
        gain = self.spread @ seen / (0.995 + seen @ self.spread @ seen)
        error = oxygen - seen @ self.weights
        self.weights = self.weights + gain * error
        self.spread = (self.spread - np.outer(gain, seen @ self.spread)) / 0.995
        return error


def choose(learner, seen):
    """The power whose predicted oxygen comes nearest to the target."""
    best, least = 0.0, float("inf")
    for power in np.linspace(0, 2, 41):
        trial = seen.copy()
        trial[LAGS] = power
        miss = abs(trial @ learner.weights - TARGET) + 0.02 * power
        if miss < least:
            best, least = float(power), miss
    return best


def main():
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    probe = subprocess.Popen([sys.executable, "-c", PROBE, str(port), str(REPORTS), str(RATE)])
    link, _ = server.accept()
    stream = link.makefile("rw")
    learner, history, powers, errors = Learner(), [5.0] * LAGS, [0.0] * LAGS, []
    seen = None
    for line in iter(stream.readline, "\n"):
        oxygen = json.loads(line)["oxygen"]
        if seen is not None:
            errors.append(abs(learner.update(seen, oxygen)))
        history = [oxygen] + history[:-1]
        seen = np.array(history + [0.0] + powers[:-1] + [1.0])
        power = choose(learner, seen)
        seen[LAGS] = power
        powers = [power] + powers[:-1]
        stream.write(json.dumps({"power": power}) + "\n")
        stream.flush()
        if len(errors) % 60 == 59:
            print(f"report {len(errors) + 1}: oxygen {oxygen:.2f}, power {power:.2f}")
    probe.wait()
    print(f"mean prediction error, last minute: {np.mean(errors[-60:]):.3f}")
    print(f"{len(errors) + 1} reports")


if __name__ == "__main__":
    main()
