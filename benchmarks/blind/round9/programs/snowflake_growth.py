"""Curvature-dependent growth of a flat ice crystal on a square lattice (Eden model with noise)."""
import random


class Cell:
    """A lattice site that can be a member of sets."""
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __eq__(self, other):
        return self.x == other.x and self.y == other.y

    def __hash__(self):
        return hash(self.x + self.y)

    def around(self):
        x, y = self.x, self.y
        return (Cell(x + 1, y), Cell(x - 1, y), Cell(x, y + 1), Cell(x, y - 1))

    def window(self):
        x, y = self.x, self.y
        return [Cell(x + dx, y + dy) for dx in (-2, -1, 0, 1, 2) for dy in (-2, -1, 0, 1, 2)
                if dx or dy]


def grow(size, seed):
    random.seed(seed)
    ice = {Cell(0, 0)}
    front = list(Cell(0, 0).around())
    waiting = set(front)
    tried = 0
    while len(ice) < size:
        tried += 1
        pick = random.randrange(len(front))
        cell = front[pick]
        filled = sum(1 for other in cell.window() if other in ice)
        if random.random() > 0.15 + 0.045 * filled:
            continue
        front[pick] = front[-1]
        front.pop()
        waiting.discard(cell)
        ice.add(cell)
        for other in cell.around():
            if other not in ice and other not in waiting:
                waiting.add(other)
                front.append(other)
    return ice, front, tried


def main():
    ice, front, tried = grow(36000, 6)
    radii = sorted((c.x * c.x + c.y * c.y) ** 0.5 for c in front)
    mean = sum(radii) / len(radii)
    rough = (sum((r - mean) ** 2 for r in radii) / len(radii)) ** 0.5
    inside = sum(1 for c in ice for o in c.around() if o in ice)
    print("cells:", len(ice), "trials:", tried, "front:", len(front))
    print("mean radius: %.2f" % mean)
    print("roughness: %.3f" % rough)
    print("bonds:", inside // 2)


if __name__ == "__main__":
    main()
