"""Shape modes of fossil mandibles: Procrustes alignment and bootstrap of the modes."""
import numpy as np

SPECIMENS = 4500
LANDMARKS = 50
BOOTSTRAPS = 14
MODES = 6


def make_specimens(rng):
    """Landmarks of a mean jaw with allometry, a few modes, noise and random pose."""
    s = np.linspace(0, 1, LANDMARKS)
    mean = np.column_stack([np.cos(np.pi * s), 0.6 * np.sin(np.pi * s), 0.2 * np.cos(5 * s)])
    modes = rng.normal(0, 1, (5, LANDMARKS, 3))
    modes = np.cumsum(modes, axis=1) / LANDMARKS
    scores = rng.normal(0, 1, (SPECIMENS, 5)) * (0.5, 0.35, 0.2, 0.15, 0.1)
    shapes = mean + np.einsum("nk,kij->nij", scores, modes)
    shapes += rng.normal(0, 0.01, shapes.shape)
    turns = np.linalg.qr(rng.normal(size=(SPECIMENS, 3, 3)))[0]
    turns[:, :, 0] *= np.linalg.det(turns)[:, None]
    sizes = rng.lognormal(0, 0.2, (SPECIMENS, 1, 1))
    return sizes * shapes @ turns + rng.normal(0, 3, (SPECIMENS, 1, 3))


def align(shapes, rounds=6):
    """Generalised Procrustes alignment."""
    shapes = shapes - shapes.mean(axis=1, keepdims=True)
    shapes = shapes / np.sqrt((shapes ** 2).sum(axis=(1, 2), keepdims=True))
    reference = shapes[0]
    for _ in range(rounds):
        cross = np.swapaxes(shapes, 1, 2) @ reference
        u, _, vt = np.linalg.svd(cross)
        sign = np.sign(np.linalg.det(u @ vt))
        u[:, :, -1] *= sign[:, None]
        shapes = shapes @ (u @ vt)
        reference = shapes.mean(axis=0)
        reference /= np.sqrt((reference ** 2).sum())
    return shapes


def shape_modes(shapes):
    """Principal modes of aligned shapes."""
    flat = shapes.reshape(len(shapes), -1)
    flat = flat - flat.mean(axis=0)
    u, s, vt = np.linalg.svd(flat)
    share = s ** 2 / (s ** 2).sum()
    scores = u[:, :MODES] * s[:MODES]
    return share[:MODES], scores, vt[:MODES]


def main():
    rng = np.random.default_rng(9)
    specimens = make_specimens(rng)
    share, scores, modes = shape_modes(align(specimens))
    print("specimens:", SPECIMENS, "landmarks:", LANDMARKS)
    print("share of the modes:", np.round(share, 4))
    shares, stability = [], []
    for _ in range(BOOTSTRAPS):
        pick = rng.integers(0, SPECIMENS, SPECIMENS)
        share_b, _, modes_b = shape_modes(align(specimens[pick]))
        shares.append(share_b)
        stability.append(np.abs(share_b[:3] - share[:3]).max())
    print("bootstrap spread:", np.round(np.std(shares, axis=0), 4))
    print("largest change of a share: %.4f" % max(stability))
    print("spread of the first score: %.4f" % scores[:, 0].std())


if __name__ == "__main__":
    main()
