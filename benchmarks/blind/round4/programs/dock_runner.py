"""Rigid docking of a small ligand library, one process for each ligand."""
import json
import os
import subprocess
import sys
import time

LIGANDS = 22
SLOTS = 2
POLL = 1.0


def dock(ligand):
    import numpy as np

    rng = np.random.default_rng(600 + ligand)
    pocket = rng.uniform(-14, 14, (2000, 3))
    pocket = pocket[np.linalg.norm(pocket, axis=1) > 6.0]
    atoms = rng.normal(0, 2.2, (30, 3))
    poses = int(rng.integers(450, 1500))
    best, best_pose = 1e30, -1
    energies = np.empty(poses)
    for p in range(poses):
        q = rng.normal(size=4)
        w, x, y, z = q / np.linalg.norm(q)
        turn = np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ])
        placed = atoms @ turn.T + rng.uniform(-1.5, 1.5, 3)
        gap = placed[:, None, :] - pocket[None, :, :]
        r2 = np.maximum((gap * gap).sum(axis=2), 4.0)
        s2 = 12.0 / r2
        s6 = s2 * s2 * s2
        energies[p] = (s6 * s6 - s6).sum()
        if energies[p] < best:
            best, best_pose = energies[p], p
    print(json.dumps({"ligand": ligand, "poses": poses, "pose": best_pose,
                      "energy": float(best), "median": float(np.median(energies))}))


def launch(ligand):
    env = dict(os.environ, OMP_NUM_THREADS="1")
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), str(ligand)],
                            stdout=subprocess.PIPE, text=True, env=env)


def screen():
    waiting = list(range(LIGANDS))
    running = []
    results = []
    while waiting or running:
        for job in list(running):
            if job.poll() is not None:
                results.append(json.loads(job.stdout.read()))
                job.stdout.close()
                running.remove(job)
        while waiting and len(running) < SLOTS:
            running.append(launch(waiting.pop(0)))
        if running:
            time.sleep(POLL)
    return sorted(results, key=lambda r: r["ligand"])


def main():
    results = screen()
    ranked = sorted(results, key=lambda r: r["energy"])
    print("ligands", len(results), "poses", sum(r["poses"] for r in results))
    for r in ranked[:3]:
        print(f"ligand {r['ligand']:2d} pose {r['pose']:4d} energy {r['energy']:.4f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        dock(int(sys.argv[1]))
    else:
        main()
