"""Glauber dynamics of one long spin chain. Every move depends on the one before."""
import math
import random

N = 4000
r = random.Random(9)
s = [r.choice((-1, 1)) for _ in range(N)]
accept = {d: math.exp(-d / 0.8) for d in (4, 8)}
m = sum(s)
for sweep in range(11_000):
    for _ in range(N // 2):
        i = int(r.random() * N)
        de = 2 * s[i] * (s[i - 1] + s[(i + 1) % N])
        if de <= 0 or r.random() < accept[de]:
            s[i] = -s[i]
            m += 2 * s[i]
    if sweep % 1000 == 0:
        print(sweep, m / N, flush=True)
