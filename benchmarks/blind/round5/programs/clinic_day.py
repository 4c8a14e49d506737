"""Waiting times in a walk-in clinic, simulated event by event.

Patients arrive over the day, see a nurse and then a doctor.  The simulation
repeats the day several times and reports how long people wait.
"""
import logging
import math
import random

log = logging.getLogger("clinic")

DAYS = 12
PATIENTS = 4500
NURSES = 90
DOCTORS = 150


class Clinic:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.now = 0.0
        self.pending = []
        self.nurse_free = [0.0] * NURSES
        self.doctor_free = [0.0] * DOCTORS
        self.arrived = {}
        self.waits = []
        self.busy = 0.0

    def schedule(self, when, kind, patient):
        self.pending.append((when, kind, patient))
        self.pending.sort(reverse=True)

    def next_event(self):
        return self.pending.pop()

    def state(self):
        """Who is free when, for the log."""
        nurses = ", ".join(f"{max(0.0, t - self.now):.1f}" for t in self.nurse_free)
        doctors = ", ".join(f"{max(0.0, t - self.now):.1f}" for t in self.doctor_free)
        return f"nurses [{nurses}] doctors [{doctors}]"

    def serve(self, free, mean):
        """Give the work to the first free person; return its end."""
        who = min(range(len(free)), key=free.__getitem__)
        begin = max(self.now, free[who])
        length = mean * math.exp(0.4 * self.rng.gauss(0, 1))
        free[who] = begin + length
        self.busy += length
        return begin, begin + length

    def handle(self, kind, patient):
        if kind == "arrival":
            self.arrived[patient] = self.now
            _, end = self.serve(self.nurse_free, 8.0)
            self.schedule(end, "triaged", patient)
        elif kind == "triaged":
            begin, end = self.serve(self.doctor_free, 16.0)
            self.waits.append(begin - self.arrived[patient])
            self.schedule(end, "leaves", patient)
        else:
            del self.arrived[patient]

    def run(self):
        times = sorted(self.rng.betavariate(2, 3) * 600 for _ in range(PATIENTS))
        self.pending = [(t, "arrival", k) for k, t in enumerate(times)]
        self.pending.sort(reverse=True)
        while self.pending:
            self.now, kind, patient = self.next_event()
            log.debug(f"{self.now:.2f} {kind} {patient}: {self.state()}")
            self.handle(kind, patient)
        log.info("day over at minute %.1f", self.now)


def quantile(values, q):
    values = sorted(values)
    return values[int(q * (len(values) - 1))]


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    waits, busy, ends = [], 0.0, []
    for day in range(DAYS):
        clinic = Clinic(300 + day)
        clinic.run()
        waits.extend(clinic.waits)
        busy += clinic.busy
        ends.append(clinic.now)
    print(f"days: {DAYS}, patients: {len(waits)}")
    print(f"wait for the doctor: median {quantile(waits, 0.5):.2f} min, "
          f"95 % below {quantile(waits, 0.95):.2f} min")
    print(f"hours of work: {busy / 60:.1f}, mean end: minute {sum(ends) / DAYS:.2f}")


if __name__ == "__main__":
    main()
