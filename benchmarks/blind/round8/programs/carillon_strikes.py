"""Strike times of the bells of a carillon.

Recordings are analysed in a thread, one after the other; the main thread
collects the strikes and builds the table of the tower while they come in.
"""
import math
import queue
import threading

import numpy as np

BELLS = 24
RATE = 4000
SECONDS = 60


def recording(bell):
    rng = np.random.default_rng(60 + bell)
    t = np.arange(RATE * SECONDS) / RATE
    wave = 0.02 * rng.normal(size=t.size)
    for strike in np.sort(rng.uniform(1, SECONDS - 2, 12)):
        since = np.clip(t - strike, 0, None)
        wave += (t >= strike) * np.exp(-1.6 * since) * np.sin(2 * np.pi * (180 + 11 * bell) * since)
    return wave.tolist()


def strikes(wave):
    fast = slow = 1e-3
    last = -RATE
    out = []
    for index, value in enumerate(wave):
        power = value * value
        fast += 0.05 * (power - fast)
        slow += 0.0008 * (power - slow)
        if fast > 3.5 * slow and fast > 0.01 and index - last > RATE // 2:
            out.append((index / RATE, 10.0 * math.log10(fast / slow)))
            last = index
    return out


def analyse(inbox):
    for bell in range(BELLS):
        wave = recording(bell)
        for gain in (1.0, 0.8, 0.6, 0.4, 0.2):
            inbox.put((bell, gain, strikes([gain * v for v in wave])))


def collect(inbox):
    table = {}
    wanted = BELLS * 5
    while wanted > 0:
        if not inbox.empty():
            bell, gain, found = inbox.get()
            table[bell, gain] = found
            wanted -= 1
    return table


def main():
    inbox = queue.Queue()
    thread = threading.Thread(target=analyse, args=(inbox,), daemon=True)
    thread.start()
    table = collect(inbox)
    thread.join()
    for gain in (1.0, 0.6, 0.2):
        counts = [len(table[bell, gain]) for bell in range(BELLS)]
        levels = [level for bell in range(BELLS) for _, level in table[bell, gain]]
        print(f"gain {gain:.1f}: {sum(counts)} strikes, mean rise {np.mean(levels):.2f} dB")
    first = min(found[0][0] for found in table.values() if found)
    print(f"first strike at {first:.3f} s")


if __name__ == "__main__":
    main()
