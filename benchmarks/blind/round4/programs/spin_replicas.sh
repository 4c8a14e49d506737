#!/usr/bin/env bash
# Two independent diffusion Monte Carlo replicas of the hydrogen ground state.
set -euo pipefail

export OMP_NUM_THREADS=1
CORE=${CORE:-0}
out=$(mktemp -d "${TMPDIR:-.}/dmc.XXXXXX")
trap 'rm -rf "$out"' EXIT

cat > "$out/replica.py" <<'PY'
import sys
import numpy as np

seed = int(sys.argv[1])
rng = np.random.default_rng(seed)
target = 150_000
tau = 0.01
walkers = rng.normal(0.0, 1.0, (target, 3))
e_ref = -0.5
trace = []
for step in range(850):
    walkers = walkers + np.sqrt(tau) * rng.standard_normal(walkers.shape)
    r = np.sqrt(np.einsum("ij,ij->i", walkers, walkers))
    potential = -1.0 / np.maximum(r, 0.02)
    weight = np.exp(-tau * (potential - e_ref))
    copies = np.minimum((weight + rng.random(len(r))).astype(np.int64), 3)
    walkers = np.repeat(walkers, copies, axis=0)
    mean_v = float((potential * weight).sum() / weight.sum())
    e_ref = mean_v - 0.5 * np.log(len(walkers) / target)
    if step > 250:
        trace.append(e_ref)
blocks = np.array(trace[: len(trace) // 20 * 20]).reshape(20, -1).mean(axis=1)
print(f"seed {seed}: E0 = {blocks.mean():.5f} +- {blocks.std() / np.sqrt(20):.5f}, "
      f"walkers {len(walkers)}")
PY

for seed in 11 12; do
    taskset -c "$CORE" python "$out/replica.py" "$seed" > "$out/replica.$seed.txt" &
done
wait
cat "$out"/replica.*.txt
