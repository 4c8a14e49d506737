"""A night with a (simulated) spectrograph: reduce each exposure while the next one is taken."""
import multiprocessing as mp
import time

import numpy as np
from scipy import ndimage, optimize

TARGETS = 16
EXPOSURE = 1.25
ROWS, COLUMNS = 900, 1600


def camera(requests, frames):
    """The instrument: exposing takes its time, the read-out is quick."""
    x = np.arange(COLUMNS)
    while True:
        target = requests.recv()
        if target is None:
            break
        begin = time.monotonic()
        rng = np.random.default_rng(target)
        spectrum = 900.0 - 400.0 * np.exp(-((x - 700 - 3 * target) / 6.0) ** 2)
        rows = np.arange(ROWS)[:, None]
        image = 100.0 + spectrum * np.exp(-0.5 * ((rows - 450 - 0.01 * x) / 4.0) ** 2)
        image = image.astype(np.float32) + rng.standard_normal((ROWS, COLUMNS), dtype=np.float32) * 6
        hits = rng.integers(0, ROWS * COLUMNS, 300)
        image.ravel()[hits] += 3000
        time.sleep(max(0.0, EXPOSURE - (time.monotonic() - begin)))
        frames.send((target, image))


def line(x, depth, centre, width, level):
    return level - depth * np.exp(-((x - centre) / width) ** 2)


def reduce_frame(image):
    """Cosmic-ray removal, extraction of the trace, fit of the absorption line."""
    smooth = ndimage.median_filter(image[380:540], size=(1, 7))
    clean = np.where(image[380:540] - smooth > 200, smooth, image[380:540])
    sky = np.median(np.concatenate([clean[:30], clean[-30:]]), axis=0)
    spectrum = (clean[40:120] - sky).sum(axis=0)
    x = np.arange(COLUMNS)
    guess = 650 + int(ndimage.gaussian_filter1d(spectrum, 3)[650:850].argmin())
    near = slice(guess - 40, guess + 40)
    fit, _ = optimize.curve_fit(line, x[near], spectrum[near], p0=(4000.0, guess, 6.0, spectrum.mean()))
    return fit


def main():
    ask, requests = mp.Pipe()
    frames, send = mp.Pipe()
    instrument = mp.Process(target=camera, args=(requests, send), daemon=True)
    instrument.start()
    ask.send(0)
    fits = []
    for number in range(TARGETS):
        target, image = frames.recv()
        ask.send(number + 1 if number + 1 < TARGETS else None)
        fits.append((target, *reduce_frame(image)))
    instrument.join()
    table = np.array(fits)
    slope = np.polyfit(table[:, 0], table[:, 2], 1)[0]
    print("exposures:", len(table))
    print("line shift per target: %.3f pixels" % slope)
    print("mean depth %.0f, mean width %.2f" % (table[:, 1].mean(), np.abs(table[:, 3]).mean()))


if __name__ == "__main__":
    main()
