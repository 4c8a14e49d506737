"""Draw a map of lace samples so that similar stitches lie together."""
import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

SAMPLES = 5000
MEASURES = 120
SCHOOLS = ["Bruges", "Chantilly", "Honiton", "Idrija", "Burano", "Binche", "Vologda"]


def make_samples(seed=27):
    rng = np.random.default_rng(seed)
    school = rng.integers(0, len(SCHOOLS), SAMPLES)
    centre = rng.standard_normal((len(SCHOOLS), 12))
    hidden = centre[school] + 0.8 * rng.standard_normal((SAMPLES, 12))
    lift = rng.standard_normal((12, MEASURES))
    measures = np.tanh(hidden @ lift / 3) + 0.1 * rng.standard_normal((SAMPLES, MEASURES))
    return measures, school


def purity(points, school, neighbours=12):
    finder = NearestNeighbors(n_neighbors=neighbours + 1, n_jobs=2).fit(points)
    rows = finder.kneighbors(points, return_distance=False)[:, 1:]
    return (school[rows] == school[:, None]).mean(axis=1)


def main():
    measures, school = make_samples()
    reduced = PCA(n_components=30, random_state=0).fit_transform(measures)
    before = purity(reduced, school)
    embedding = TSNE(n_components=2, perplexity=30, init="pca", random_state=0,
                     n_jobs=2).fit_transform(reduced)
    after = purity(embedding, school)
    print(f"neighbours of the same school: before {before.mean():.4f}, "
          f"on the map {after.mean():.4f}")
    for code, name in enumerate(SCHOOLS):
        chosen = school == code
        x, y = embedding[chosen].mean(axis=0)
        print(f"{name:10s} {chosen.sum():5d} samples at ({x:7.2f}, {y:7.2f}) "
              f"purity {after[chosen].mean():.3f}")


if __name__ == "__main__":
    main()
