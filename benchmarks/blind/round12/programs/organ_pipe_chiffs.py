"""Attack transients (chiffs) of organ pipes as heard in the nave of a church."""
import numpy as np
from scipy import signal

RATE = 16000
NOTE_SECONDS = 10.0
NAVE_SECONDS = 1.5
RANKS = {
    "principal": (0.9, 18), "gedackt": (1.6, 9), "salicional": (0.7, 26), "trompete": (0.5, 34),
}
KEYS = (36, 43, 48)


def nave_response(seed):
    rng = np.random.default_rng(seed)
    n = int(RATE * NAVE_SECONDS)
    t = np.arange(n) / RATE
    tail = rng.standard_normal(n) * np.exp(-3.8 * t)
    early = np.zeros(n)
    for delay, gain in ((0.0, 1.0), (0.013, 0.6), (0.031, 0.45), (0.052, 0.3)):
        early[int(delay * RATE)] += gain
    return early + 0.05 * tail


def speak(key, slope, partials, seed):
    rng = np.random.default_rng(seed)
    n = int(RATE * NOTE_SECONDS)
    t = np.arange(n) / RATE
    base = 440.0 * 2.0 ** ((key - 69) / 12.0)
    note = np.zeros(n)
    for k in range(1, partials + 1):
        if k * base > RATE / 2:
            break
        onset = 1.0 - np.exp(-t * (18.0 + 7.0 * k))
        note += onset * np.sin(2 * np.pi * k * base * t + rng.uniform(0, 6.28)) / k ** slope
    chiff = signal.lfilter([1.0, -0.6], [1.0], rng.standard_normal(n)) * np.exp(-t * 22.0)
    return note + 0.4 * chiff


def in_nave(note, response):
    wet = np.convolve(note, response)
    return wet / np.abs(wet).max()


def attack_curve(sound):
    freq, times, spec = signal.stft(sound, RATE, nperseg=1024, noverlap=960)
    power = np.abs(spec) ** 2
    centroid = (freq[:, None] * power).sum(0) / (power.sum(0) + 1e-12)
    level = 10 * np.log10(power.sum(0) + 1e-12)
    steady = np.median(level[len(level) // 3: 2 * len(level) // 3])
    reached = np.argmax(level > steady - 3.0)
    return times[reached], centroid[:reached + 1].mean(), steady


def main():
    response = nave_response(11)
    rows = []
    for i, (rank, (slope, partials)) in enumerate(RANKS.items()):
        for key in KEYS:
            note = speak(key, slope, partials, 100 * i + key)
            sound = in_nave(note, response)
            dry = attack_curve(note)
            wet = attack_curve(sound)
            rows.append((rank, key, dry[0], wet[0], wet[1]))
    for rank, key, dry_ms, wet_ms, centroid in rows[::3]:
        print(f"{rank:<11} key {key}: attack dry {1e3 * dry_ms:6.1f} ms, nave {1e3 * wet_ms:6.1f} ms, "
              f"centroid {centroid:7.1f} Hz")
    print(f"{len(rows)} notes")


if __name__ == "__main__":
    main()
