"""Sperm whale click detection and click features in hydrophone audio."""
import logging

import numpy as np
from scipy import ndimage, signal

RATE = 96_000
WINDOW = 127 * 1024
TEMPLATE = 1024
WINDOWS = 64
CLICKS = 72

log = logging.getLogger("clicks")
logging.basicConfig(level=logging.INFO, format="%(message)s")


def click_templates(rng):
    t = np.arange(TEMPLATE) / RATE
    bank = []
    for f in (9000, 10500, 12000, 13500, 15000, 17000):
        w = np.sin(2 * np.pi * f * t) * np.exp(-((t - 0.004) / 0.0009) ** 2)
        bank.append(w / np.linalg.norm(w))
    return np.array(bank)


def hydrophone(bank, rng):
    audio = rng.normal(0, 1, (WINDOWS, WINDOW))
    for row in audio:
        for start in rng.integers(0, WINDOW - TEMPLATE, CLICKS):
            row[start:start + TEMPLATE] += rng.uniform(9, 25) * bank[rng.integers(len(bank))]
    return audio


def matched(audio, bank_f, n):
    spec = np.fft.rfft(audio, n)
    best = np.zeros(WINDOW)
    for w in bank_f:
        np.maximum(best, np.abs(np.fft.irfft(spec * w, n)[:WINDOW]), out=best)
    return best


def features(piece):
    power = np.abs(np.fft.rfft(piece * np.hanning(len(piece)))) ** 2
    freq = np.fft.rfftfreq(len(piece), 1 / RATE)
    centre = (power * freq).sum() / power.sum()
    env = np.abs(signal.hilbert(piece))
    slope = np.polyfit(np.arange(len(env)), np.log(env + 1e-6), 1)[0]
    q = np.percentile(env, [25, 50, 75, 95])
    return power, env, (centre, slope, q[3] / q[1], q[2] - q[0])


def main():
    rng = np.random.default_rng(1957)
    bank = click_templates(rng)
    audio = hydrophone(bank, rng)
    n = WINDOW + TEMPLATE - 1
    bank_f = [np.conj(np.fft.rfft(w, n)) for w in bank]
    sos = signal.butter(4, [5000, 25000], "bandpass", fs=RATE, output="sos")
    rows = []
    for k in range(WINDOWS):
        sound = signal.sosfiltfilt(sos, audio[k])
        score = matched(sound, bank_f, n)
        floor = ndimage.uniform_filter1d(score, 4001)
        blocks = (score / floor).reshape(-1, 1024)
        peaks = blocks.argmax(axis=1) + 1024 * np.arange(len(blocks))
        chosen = np.sort(peaks[np.argsort(blocks.max(axis=1))[-CLICKS:]])
        for at in chosen:
            piece = sound[at:at + 256]
            if len(piece) < 256:
                continue
            power, env, row = features(piece)
            log.debug(f"window {k} sample {at} envelope {env[96:160]} power {power[:64]}")
            rows.append(row)
    rows = np.array(rows)
    print("clicks", len(rows))
    print("centre %.2f Hz  slope %.6f  crest %.5f  range %.5f" % tuple(rows.mean(axis=0)))


if __name__ == "__main__":
    main()
