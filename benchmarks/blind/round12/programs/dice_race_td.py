"""Learn the value of positions in a two-player dice race by temporal differences."""
import numpy as np

TRACK = 60
TABLES = 4096
TURNS = 48000
RATE = 0.05


class Race:
    def __init__(self, rng):
        self.rng = rng
        self.mine = np.zeros(TABLES, np.int64)
        self.theirs = np.zeros(TABLES, np.int64)
        self.traps = np.zeros(TRACK + 7, bool)
        self.traps[[9, 17, 26, 34, 43, 51]] = True

    def throw(self, place):
        first = self.rng.integers(1, 7, size=TABLES)
        place = place + first
        caught = self.traps[np.minimum(place, TRACK + 6)]
        return np.where(caught, np.maximum(place - 5, 0), np.minimum(place, TRACK))

    def restart(self, done):
        self.mine[done] = 0
        self.theirs[done] = 0


def main():
    rng = np.random.default_rng(87)
    race = Race(rng)
    cells = (TRACK + 1) ** 2
    value = np.full(cells, 0.5)
    games = wins = 0
    for turn in range(TURNS):
        here = race.mine * (TRACK + 1) + race.theirs
        moved = race.throw(race.mine)
        answer = race.throw(race.theirs)
        won = moved == TRACK
        lost = ~won & (answer == TRACK)
        done = won | lost
        race.mine, race.theirs = moved, answer
        there = race.mine * (TRACK + 1) + race.theirs
        target = np.where(won, 1.0, np.where(lost, 0.0, value[there]))
        visits = np.bincount(here, minlength=cells)
        total = np.bincount(here, weights=target - value[here], minlength=cells)
        seen = visits > 0
        value[seen] += RATE * total[seen] / np.sqrt(visits[seen])
        games += int(done.sum())
        wins += int(won.sum())
        race.restart(done)
        if turn % 12000 == 11999:
            print(f"turn {turn + 1} games {games} first player wins {wins / games:.4f} "
                  f"value at start {value[0]:.4f}")


if __name__ == "__main__":
    main()
