"""Run a list of small simulations as separate processes, one after another."""
import subprocess
import sys
import time

CODE = """
import math, sys
s = 0.0
k = int(sys.argv[1])
for i in range(1, 1_200_000 + 20_000 * k):
    s += math.sin(i * k) / i
print(s)
"""


def wait_for(p):
    while p.poll() is None:
        time.sleep(0.02)
    return p.stdout.read()


results = []
for k in range(1, 17):
    p = subprocess.Popen([sys.executable, "-c", CODE, str(k)], stdout=subprocess.PIPE, text=True)
    out = wait_for(p)
    results.append(float(out))
    print("simulation", k, "->", out.strip(), flush=True)
print("sum", sum(results))
