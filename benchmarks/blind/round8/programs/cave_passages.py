"""Loop closure of cave surveys.

Every cave is a net of stations and measured shots. The closure errors are
spread over the shots by relaxation; the caves go to two processes.
"""
import multiprocessing as mp
import random

CAVES = 40
SWEEPS = 110


def survey(cave):
    rnd = random.Random(4000 + cave)
    stations = 500 + 25 * cave * cave
    shots = []
    for station in range(1, stations):
        back = max(0, station - rnd.randint(1, 3))
        shots.append((back, station, rnd.gauss(2.0, 0.3)))
    for _ in range(stations // 8):
        a = rnd.randrange(stations - 12)
        b = a + rnd.randint(4, 11)
        shots.append((a, b, (b - a) * 1.0 + rnd.gauss(0.0, 0.3)))
    return stations, shots


def relax(cave):
    stations, shots = survey(cave)
    depth = [0.0] * stations
    weight = [0] * stations
    for a, b, length in shots:
        weight[a] += 1
        weight[b] += 1
    for a, b, length in shots[:stations - 1]:
        depth[b] = depth[a] + length
    error = 0.0
    for _ in range(SWEEPS):
        error = 0.0
        for a, b, length in shots:
            gap = length - (depth[b] - depth[a])
            error += gap * gap
            gap *= 0.5
            depth[b] += gap / weight[b]
            depth[a] -= gap / weight[a]
    return cave, stations, max(depth) - min(depth), (error / len(shots)) ** 0.5


def main():
    caves = list(range(CAVES))
    with mp.get_context("fork").Pool(2) as pool:
        results = pool.map(relax, caves, chunksize=CAVES // 2)
    results.sort(key=lambda row: row[2], reverse=True)
    for cave, stations, depth, error in results[:4]:
        print(f"cave {cave}: {stations} stations, depth {depth:.1f} m, error {error:.3f} m")
    total = sum(row[1] for row in results)
    mean_error = sum(row[3] for row in results) / len(results)
    print(f"{len(results)} caves, {total} stations, mean error {mean_error:.4f} m")


if __name__ == "__main__":
    main()
