"""Campaign of orbit integrations, one process for each start condition.

Every leg integrates a test particle around a binary star in a process of
its own, so that a leg that fails does not take the campaign with it.  Two
legs run side by side; the results are collected from their output files.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

ROUNDS = 12
SIDE_BY_SIDE = 2
DT = 0.002


def acceleration(x, y, t):
    """Pull of two stars of mass 0.6 and 0.4 that circle each other."""
    c, s = math.cos(t), math.sin(t)
    ax = ay = 0.0
    for mass, sx, sy in ((0.6, 0.4 * c, 0.4 * s), (0.4, -0.6 * c, -0.6 * s)):
        dx, dy = sx - x, sy - y
        r2 = dx * dx + dy * dy + 1e-4
        k = mass / (r2 * math.sqrt(r2))
        ax += k * dx
        ay += k * dy
    return ax, ay


def integrate(radius, steps):
    x, y = radius, 0.0
    vx, vy = 0.0, math.sqrt(1.0 / radius)
    ax, ay = acceleration(x, y, 0.0)
    far = near = radius
    for k in range(1, steps + 1):
        vx += 0.5 * DT * ax
        vy += 0.5 * DT * ay
        x += DT * vx
        y += DT * vy
        ax, ay = acceleration(x, y, k * DT)
        vx += 0.5 * DT * ax
        vy += 0.5 * DT * ay
        r = math.hypot(x, y)
        far = max(far, r)
        near = min(near, r)
    return {"radius": radius, "far": far, "near": near, "lz": x * vy - y * vx}


def run_leg(number, out):
    radius = 1.6 + 0.11 * number
    steps = 380_000 + 9_000 * (number % 5)
    with open(out, "w") as f:
        json.dump(integrate(radius, steps), f)


def start(number, work):
    out = os.path.join(work, f"leg_{number:02d}.json")
    cmd = [sys.executable, os.path.abspath(__file__), "--leg", str(number),
           "--out", out]
    return subprocess.Popen(cmd), out


def wait_for(processes):
    while any(p.poll() is None for p in processes):
        time.sleep(2.0)
    if any(p.returncode for p in processes):
        raise SystemExit("a leg failed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--leg", type=int)
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.leg is not None:
        run_leg(args.leg, args.out)
        return
    results = []
    with tempfile.TemporaryDirectory() as work:
        for first in range(0, ROUNDS * SIDE_BY_SIDE, SIDE_BY_SIDE):
            legs = [start(first + k, work) for k in range(SIDE_BY_SIDE)]
            wait_for([p for p, _ in legs])
            for _, out in legs:
                with open(out) as f:
                    results.append(json.load(f))
    bound = [r for r in results if r["far"] < 3 * r["radius"]]
    print(f"legs: {len(results)}, still bound: {len(bound)}")
    print(f"closest approach: {min(r['near'] for r in results):.4f}")
    print(f"sum of angular momenta: {sum(r['lz'] for r in results):.6f}")


if __name__ == "__main__":
    main()
