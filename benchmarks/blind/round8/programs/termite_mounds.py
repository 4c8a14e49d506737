"""Termites that carry soil pellets to a mound (agent model).

The random numbers follow the generator of the first Fortran version, so that
the runs of both can be compared. Pellets are dropped beside other pellets.
"""
import tracemalloc

WIDTH = 400
TERMITES = 60
ROUNDS = 55
WALK = 700


class Lcg:
    def __init__(self, seed):
        self.state = seed

    def draw(self, limit):
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.state >> 8) % limit


class Colony:
    moves = ((1, 0), (-1, 0), (0, 1), (0, -1))

    def __init__(self, seed):
        self.random = Lcg(seed)
        self.mound = [(WIDTH // 2 + i, WIDTH // 2) for i in range(-20, 20)]
        self.places = [(self.random.draw(WIDTH), self.random.draw(WIDTH)) for _ in range(TERMITES)]
        self.trips = 0

    def near_mound(self, x, y):
        return abs(x - WIDTH // 2) < 60 and abs(y - WIDTH // 2) < 60

    def walk(self, number):
        x, y = self.places[number]
        since = 0
        for _ in range(WALK):
            if self.random.draw(20) == 0:
                continue
            dx, dy = self.moves[self.random.draw(4)]
            x = (x + dx) % WIDTH
            y = (y + dy) % WIDTH
            since += 1
            if since % 50 == 0:
                x += (WIDTH // 2 - x) // 6
                y += (WIDTH // 2 - y) // 6
            if since % 10 == 0 and self.near_mound(x, y):
                if (x, y) not in self.mound and self.touches(x, y):
                    self.mound.append((x, y))
                    self.trips += 1
                    break
        self.places[number] = (self.random.draw(WIDTH), self.random.draw(WIDTH))

    def touches(self, x, y):
        for dx, dy in self.moves:
            if (x + dx, y + dy) in self.mound:
                return True
        return False


def main():
    tracemalloc.start(10)
    colony = Colony(20001)
    for number in range(ROUNDS):
        for termite in range(TERMITES):
            colony.walk(termite)
        if number % 11 == 10:
            xs = [x for x, _ in colony.mound]
            ys = [y for _, y in colony.mound]
            print(f"round {number + 1}: {len(colony.mound)} pellets, "
                  f"{max(xs) - min(xs)} x {max(ys) - min(ys)} cells")
    print(f"{colony.trips} pellets carried, generator state {colony.random.state}")


if __name__ == "__main__":
    main()
