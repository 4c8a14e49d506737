"""Agent model of mosquito females that lay broods in puddles over one wet season."""
import numpy as np
from scipy import stats

PUDDLES = 60000
FEMALES = 900
DAYS = 60


def puddle_map(rng):
    area = rng.lognormal(0.0, 1.0, PUDDLES)
    shade = rng.uniform(0.2, 1.0, PUDDLES)
    return area, shade, area * shade


class Season:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.area, self.shade, self.appeal = puddle_map(self.rng)
        self.weights = self.appeal / self.appeal.sum()
        self.eggs = np.zeros(PUDDLES)
        self.ready = self.rng.integers(0, 6, FEMALES)
        self.age = np.zeros(FEMALES, dtype=int)

    def development_days(self, temperature, crowding):
        shape = 12.0 + 0.2 * temperature
        scale = (1.0 + 0.02 * crowding) * 11.0 / shape
        return stats.gamma(shape, scale=scale).rvs(random_state=self.rng)

    def lay(self, temperature):
        site = self.rng.choice(PUDDLES, p=self.weights)
        brood = 40.0 + 60.0 * self.rng.random()
        crowding = self.eggs[site] / (1.0 + 20.0 * self.area[site])
        delay = self.development_days(temperature, crowding)
        self.eggs[site] += brood
        return brood * np.exp(-0.09 * delay), delay

    def run(self):
        emerged = np.zeros(DAYS + 120)
        delays = []
        for day in range(DAYS):
            temperature = 25.0 + 4.0 * np.sin(2 * np.pi * day / 30.0)
            self.eggs *= 0.93
            for female in range(FEMALES):
                self.age[female] += 1
                if self.ready[female] > day:
                    continue
                survivors, delay = self.lay(temperature)
                emerged[min(day + int(delay), len(emerged) - 1)] += survivors
                delays.append(delay)
                self.ready[female] = day + 2 + int(self.rng.integers(0, 2))
        return emerged, np.array(delays)


def main():
    season = Season(9)
    emerged, delays = season.run()
    print("broods:", len(delays))
    print("mean development: %.1f days" % delays.mean())
    print("emerged: %.0f thousand, peak on day %d" % (emerged.sum() / 1e3, emerged.argmax()))
    print("puddles in use: %d" % (season.eggs > 1.0).sum())


if __name__ == "__main__":
    main()
