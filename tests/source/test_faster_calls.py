"""Calls of libraries for which another call gives the same result faster: `faster_calls.toml`."""

from __future__ import annotations

import re
import string
import textwrap

import pytest

from teho.explain.options import in_words
from teho.model.stack import Frame
from teho.source.options.files import OwnFiles
from teho.source.options.search import OptionSearch
from teho.source.options.table import costly_options
from teho.source.parsed import parsed

MAIN = "/home/ada/train.py"
HEAD = """
import json, math, os, random, statistics, zipfile
import datasets, gzip, h5py, jax, joblib, lightning, matplotlib.pyplot as plt, networkx as nx
import numpy as np, pandas as pd, polars as pl, requests, scipy, sklearn, torch, yaml
from datetime import datetime
from scipy import linalg
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree, distance
from scipy.spatial.distance import cdist, pdist
from skimage.morphology import binary_dilation, disk
from skimage.restoration import denoise_nl_means
from sklearn.cluster import DBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC
"""
INSTALLED = frozenset(
    ("datasets", "h5py", "jax", "joblib", "lightning", "matplotlib", "networkx", "numpy",
     "pandas", "polars", "requests", "scipy", "skimage", "sklearn", "torch", "transformers", "yaml")
)  # fmt: skip
PANDAS = {
    "pl.": None,
    "rolling(": "/pandas/core/window/rolling.py:Rolling.apply",
    "expanding(": "/pandas/core/window/expanding.py:Expanding.apply",
    "group": "/pandas/core/groupby/groupby.py:GroupBy.apply",
    "pivot": "/pandas/core/groupby/groupby.py:GroupBy.apply",
    "apply(lambda r": "/pandas/core/frame.py:DataFrame.apply",
    "[NAMES].apply(": "/pandas/core/frame.py:DataFrame.apply",
    ".apply(": "/pandas/core/series.py:Series.apply",
    ".map(lambda": "/pandas/core/series.py:Series.map",
}
"""Word of a program -> a function of pandas on its stack."""
TABLE = {one.name: one for one in costly_options()}


def advices(text, active=None):
    """Return the advice about each option of a program: name -> advice.

    Args:
        text: the program, without its imports.
        active: the line on the stack; None: the last one.
    """
    source = HEAD + textwrap.dedent(text).strip() + "\n"
    file = parsed(source.encode())
    lines = source.splitlines()
    number = len(lines) if active is None else 1 + lines.index(active)
    frame = Frame(MAIN, file.function_at(number).name or "<module>", number, lines[number - 1])
    own = OwnFiles(
        [MAIN], lambda path: source.encode() if path == MAIN else None, lambda: INSTALLED
    )
    found = OptionSearch(own).found([[frame]], [MAIN])
    calls = next((place for word, place in PANDAS.items() if word in text), None)
    return {
        one.name: in_words(TABLE[one.name].advice, [one.at], one.words)
        for one in found
        if calls is None or any(re.search(each, calls) for each in TABLE[one.name].files)
    }


FOUND = [
    # ---- groups of pandas ----
    ("m = df.groupby('k')['v'].apply(lambda s: s.mean())", "group_method_as_function",
     "`df.groupby('k')['v'].mean()`"),
    ("groups = df.groupby(['a', 'b']).v\nm = groups.agg(lambda x: x.nunique())",
     "group_method_as_function", "`groups.nunique()`"),
    ("def middle(s):\n    return s.median()\nm = df.groupby('k').v.apply(middle)",
     "group_method_as_function", "`df.groupby('k').v.median()`"),
    ("m = df.groupby('k')['v'].apply(np.mean)", "group_numpy_as_function", ".mean()`"),
    ("m = df.groupby('k')['v'].agg(lambda s: np.sum(s))", "group_numpy_as_function", ".sum()`"),
    ("m = df.groupby('k')['v'].apply(lambda s: s.quantile(0.9))", "group_method_with_arguments",
     "`.quantile(0.9)` directly after `df.groupby('k')['v']`"),
    ("m = df.groupby('k').v.transform(lambda s: s.mean())", "group_transform_as_function",
     "`df.groupby('k').v.transform(\"mean\")`"),
    ("m = df.groupby('k').v.transform(lambda s: np.max(s))", "group_transform_by_numpy",
     'transform("max")'),
    ("df['d'] = df.groupby('k')['v'].transform(lambda s: s - s.mean())", "group_difference",
     "`df['v'] - df.groupby('k')['v'].transform(\"mean\")`"),
    ("df['d'] = df.groupby('k')['v'].transform(lambda s: (s - s.mean()) / s.std())",
     "group_standardised", "`(df['v'] - groups.transform(\"mean\")) / groups.transform(\"std\")`"),
    ("df['d'] = df.groupby('k')['v'].transform(lambda s: (s - s.min()) / (s.max() - s.min()))",
     "group_scaled_to_range", "`(df['v'] - low) / (groups.transform(\"max\") - low)`"),
    ("r = df.groupby('k')['v'].agg(lambda s: s.max() - s.min())", "group_two_methods",
     "`groups.max() - groups.min()`"),
    ("r = df.groupby('k')['v'].agg(np.ptp)", "group_range_by_numpy", "groups.max() - groups.min()"),
    ("r = df.groupby('k').filter(lambda g: len(g) > 10)", "groups_of_some_size",
     "`df[df.groupby('k').transform(\"size\") > 10]`"),
    ("r = df.groupby('k').filter(lambda g: g['v'].mean() > 0.5)", "groups_of_some_value",
     "`df[df.groupby('k')['v'].transform(\"mean\") > 0.5]`"),
    ("n = df.groupby('k').apply(len)", "group_sizes", "`df.groupby('k').size()`"),
    ("m = df.groupby('k').apply(lambda g: g['v'].max())", "group_column_as_function",
     "`df.groupby('k')['v'].max()`"),
    ("m = df.groupby('k').apply(lambda g: np.average(g['v'], weights=g['w']))",
     "group_weighted_mean", "`groups = df.assign(product=df['v'] * df['w']).groupby('k')`"),
    ("r = df.groupby('k').apply(lambda g: g.loc[g['v'].idxmax()])", "group_extreme_row",
     "`df.loc[df.groupby('k')['v'].idxmax()]`"),
    ("r = df.groupby('k').apply(lambda g: g.nlargest(3, 'v'))", "group_largest_rows",
     "`df.sort_values('v', ascending=False).groupby('k').head(3)`"),
    ("r = df.groupby('k').apply(lambda g: g.sort_values('v').tail(1))", "group_sorted_rows",
     "`df.sort_values('v').groupby('k').tail(1)`"),
    ("t = df.pivot_table(index='k', columns='i', values='v', aggfunc=lambda x: x.mean())",
     "pivot_function", '`aggfunc="mean"`'),
    ("t = df.groupby(['a', 'b'], observed=False)['v'].sum()", "groups_without_rows",
     "`observed=True` instead of `observed=False`"),
    # ---- windows, values and rows of pandas ----
    ("m = s.rolling(50).apply(np.mean)", "window_method_as_function", "`s.rolling(50).mean()`"),
    ("m = s.expanding().apply(lambda w: w.max())", "window_own_method_as_function",
     "`s.expanding().max()`"),
    ("m = s.rolling(50).apply(lambda w: np.std(w))", "window_deviation_as_function",
     "`s.rolling(50).std(ddof=0)`"),
    ("m = s.rolling(50).apply(lambda w: w.max() - w.min())", "window_range_as_function",
     "`windows.max() - windows.min()`"),
    ("m = s.rolling(50).apply(lambda w: (w * w).sum())", "windows_as_tables",
     "`s.rolling(50).apply(lambda w: (w * w).sum(), raw=True)`"),
    ("y = df['t'].apply(lambda d: d.year)", "date_part_as_function", "`df['t'].dt.year`"),
    ("y = df['t'].map(lambda d: d.date())", "date_part_as_function", "`df['t'].dt.date`"),
    ("y = df['t'].apply(pd.to_datetime)", "column_converted_by_value", "`pd.to_datetime(df['t'])`"),
    ("y = df['t'].apply(lambda x: datetime.strptime(x, '%d.%m.%Y'))", "dates_parsed_by_value",
     "`pd.to_datetime(df['t'], format='%d.%m.%Y')`"),
    ("y = df['t'].map(lambda x: pd.Timestamp(x))", "timestamps_by_value",
     "`pd.to_datetime(df['t'])`"),
    ("y = df['t'].apply(pd.Series)", "lists_to_columns_by_value",
     "`pd.DataFrame(df['t'].tolist(), index=df['t'].index)`"),
    ("y = df['t'].apply(float)", "column_type_by_value", "`df['t'].astype(float)`"),
    ("y = df['v'].apply(lambda x: round(x, 2))", "column_rounded_by_value", "`df['v'].round(2)`"),
    ("y = df['v'].apply(lambda x: (x - 32) * 5 / 9)", "formula_by_value",
     "`(df['v'] - 32) * 5 / 9`"),
    ("def scaled(x):\n    return 2 * x + OFFSET\ny = df['v'].map(scaled)", "formula_by_value",
     "`2 * df['v'] + OFFSET`"),
    ("y = df['v'].apply(lambda x: 'hot' if x > 30 else 'cold')", "condition_by_value",
     "`np.where(df['v'] > 30, 'hot', 'cold')`"),
    ("y = df['v'].apply(lambda x: x if x > 0 else 0)", "condition_by_value",
     "`np.where(df['v'] > 0, df['v'], 0)`"),
    ("y = df['v'].apply(lambda x: math.log(x))", "function_of_numpy_by_value", "`np.log(df['v'])`"),
    ("y = df['v'].map(math.sqrt)", "function_of_numpy_by_value", "`np.sqrt(df['v'])`"),
    ("y = df.apply(lambda r: r['a'] * r['b'] + 1, axis=1)", "formula_by_row",
     "`df['a'] * df['b'] + 1`"),
    ("y = df.apply(lambda r: r.a / r.b, axis='columns')", "formula_by_row", "`df.a / df.b`"),
    ("y = df.apply(lambda r: r['a'] if r['b'] > 0 else r['c'], axis=1)", "condition_by_row",
     "`np.where(df['b'] > 0, df['a'], df['c'])`"),
    ("y = df[NAMES].apply(lambda r: r.max(), axis=1)", "method_by_row", "`df[NAMES].max(axis=1)`"),
    ("y = df[NAMES].apply(np.mean, axis=1)", "numpy_by_row", "`df[NAMES].mean(axis=1)`"),
    # ---- files of pandas ----
    ("t = pd.to_datetime(df['t'], format='mixed')", "dates_of_mixed_formats", "`format='mixed'`"),
    ("t = pd.read_json(path, lines=True)", "json_lines_of_pandas", 'engine="pyarrow"'),
    ("df.to_hdf('a.h5', key='a', format='table')", "hdf_table_format", '`format="fixed"`'),
    ("for part in pd.read_csv(path, chunksize=50):", "csv_in_small_parts", "chunksize=100_000"),
    ("t = pd.read_csv(path, converters={'a': float, 'b': lambda x: int(x)})",
     "csv_numbers_converted_in_python", "dtype="),
    ("df.to_csv(f'{name}.csv.gz', index=False)", "csv_compressed_fully", '"compresslevel": 1'),
    ("df.to_csv(path, compression='gzip')", "csv_compressed_by_name", '"compresslevel": 1'),
    # ---- linear algebra ----
    ("c = np.einsum('ij,jk->ik', a, b)", "product_by_einsum", "`a @ b`"),
    ("c = np.einsum('bij,bjk->bik', a, b[0])", "product_by_einsum", "`a @ b[0]`"),
    ("d = np.einsum('ij,jk,kl->il', a, b, c)", "einsum_of_many", "`optimize=True`"),
    ("w, v = np.linalg.eig(np.cov(x))", "symmetric_matrix_as_general", "`eigh` instead of `eig`"),
    ("c = x.T @ x / len(x)\nw, v = linalg.eig(c)", "symmetric_matrix_as_general", "`eigh`"),
    ("w, v = torch.linalg.eig((a + a.T) / 2)", "symmetric_matrix_as_general", "`eigh`"),
    ("n = np.linalg.norm(a, 2)", "norm_by_singular_values", "svds(a, k=1,"),
    ("x = np.linalg.pinv(a) @ b", "pseudoinverse_multiplied", "`np.linalg.lstsq(a, b, rcond=None)"),
    ("t = np.trace(a @ b)", "trace_of_product", "`(a * b.T).sum()`"),
    ("q = np.diag(x @ s @ x.T)", "diagonal_of_product", "`((x @ s) * x).sum(axis=1)`"),
    ("y = np.diag(w) @ x", "diagonal_matrix_multiplied", "`(w)[:, None] * x`"),
    ("u, s, vt = np.linalg.svd(x - x.mean(axis=0))\nprint(s, vt)",
     "singular_vectors_of_centred_data", "`full_matrices=False`"),
    ("x = scipy.sparse.linalg.inv(a) @ b", "sparse_matrix_inverted", "splu(a.tocsc())"),
    ("d = shortest_path(g)[0]", "paths_from_one_node", "dijkstra(g, indices=0)"),
    ("p = np.abs(np.fft.fft(x))[:n // 2]", "spectrum_of_real_numbers", "`rfft`"),
    # ---- random numbers ----
    ("x = np.random.multivariate_normal(mean, cov)", "correlated_numbers_one_by_one",
     "`mean + np.linalg.cholesky(cov) @ np.random.standard_normal(len(mean))`"),
    ("i = rng.choice(n, p=weights)", "weighted_choice_one_by_one", "np.searchsorted(sums"),
    ("i = random.choices(names, weights)", "weighted_choices_one_by_one", "`cum_weights=sums`"),
    # ---- compression and files ----
    ("np.savez_compressed(path, x=x)", "arrays_compressed", "`np.savez`"),
    ("joblib.dump(model, path, compress=9)", "models_compressed", "Remove `compress=9`"),
    ("z = zipfile.ZipFile(path, 'w', zipfile.ZIP_LZMA)", "archive_by_slow_method", "ZIP_DEFLATED"),
    ("scipy.io.savemat(path, data, do_compression=True)", "matlab_file_compressed", "Remove"),
    ("f = open(path, 'wb', buffering=0)", "file_without_buffer", "Remove `buffering=0`"),
    ("for part in response.iter_content():", "download_by_single_bytes", "chunk_size=1 << 20"),
    ("for part in response.iter_content(chunk_size=64):", "download_by_few_bytes", "1 << 20"),
    ("copy = json.loads(json.dumps(state))", "copied_by_json",
     "`pickle.loads(pickle.dumps(state, -1))`"),
    ("yaml.safe_dump(data, file)", "yaml_written_in_python", "Dumper=yaml.CSafeDumper"),
    ("m = statistics.mean(x)", "mean_by_fractions", "`statistics.fmean(x)`"),
    ("m = statistics.stdev(x)", "deviation_by_fractions", "`np.std(x, ddof=1)`"),
    # ---- distances, optimisation ----
    ("d = cdist(a, b, distance.cosine)", "distance_as_function", '`"cosine"`'),
    ("d = pdist(a, metric=distance.euclidean)", "distance_of_pairs_as_function", '`"euclidean"`'),
    ("m = NearestNeighbors(metric=distance.cosine)", "distance_as_function_of_sklearn",
     '`metric="cosine"`'),
    ("m = NearestNeighbors(metric=lambda u, v: np.sqrt(np.sum(w * (u - v) ** 2)))",
     "weighted_distance_as_function", "`x * np.sqrt(w)`"),
    ("m = NearestNeighbors(metric=lambda u, v: math.sqrt((w * (u - v) ** 2).sum()))",
     "weighted_distance_as_function", "`x * np.sqrt(w)`"),
    ("d = cdist(a, b, metric=lambda u, v: np.linalg.norm(u - v))", "euclidean_distance_as_function",
     '`metric="euclidean"`'),
    ("d = cdist(a, b, metric=lambda u, v: np.abs(u - v).sum())", "city_distance_as_function",
     '`metric="cityblock"`'),
    ("i = cdist(a, b).argmin(axis=1)", "distance_of_all_pairs_for_nearest",
     "cKDTree(b).query(a, workers=-1)"),
    ("n = [len(one) for one in tree.query_ball_point(p, 0.1)]", "neighbours_listed_to_count",
     "`return_length=True`"),
    ("r = least_squares(f, x, jac='3-point')", "derivatives_by_three_points", '`jac="2-point"`'),
    ("r = solve_ivp(f, (0, 9), [1], max_step=0.001)", "steps_limited", "Remove `max_step=0.001`"),
    # ---- models of scikit-learn ----
    ("y = TSNE(method='exact').fit_transform(x)", "tsne_exact", "barnes_hut"),
    ("y = DBSCAN(algorithm='brute').fit_predict(x)", "neighbours_by_all_pairs", "Remove"),
    ("y = PCA(5, svd_solver='full').fit_transform(x)", "components_all_computed", "randomized"),
    ("m = KMeans(9, n_init=20).fit(x)", "clusters_begun_often", "`n_init=1`"),
    ("m = SVC(kernel='linear').fit(x, y)", "svm_linear_kernel", "LinearSVC()"),
    ("s = cross_val_score(model, x, y, cv=LeaveOneOut())", "each_row_left_out", "`cv=10`"),
    ("m = GaussianProcessRegressor(n_restarts_optimizer=20)", "process_searched_often", "kernel_"),
    ("m = RandomForestRegressor(criterion='absolute_error')", "trees_by_absolute_error", "Hist"),
    ("s = silhouette_score(x, labels)", "silhouette_of_all_rows", "`sample_size=5000"),
    # ---- images, graphs, figures ----
    ("m = binary_dilation(mask, disk(25))", "disk_as_footprint", "isotropic_dilation(image, 25)"),
    ("y = denoise_nl_means(x, fast_mode=False)", "noise_removed_slowly", "Remove"),
    ("d = nx.diameter(g)", "diameter_of_all_paths", "`usebounds=True`"),
    ("d = nx.floyd_warshall(g)", "floyd_warshall_in_python", "nx.to_scipy_sparse_array(g)"),
    ("d = nx.average_shortest_path_length(g)", "mean_path_in_python", "(len(g) * (len(g) - 1))"),
    ("c = nx.eigenvector_centrality(g)", "centrality_by_passes", "_numpy(g)"),
    ("plt.savefig(path, dpi=600)", "pixels_very_many", "`dpi=100`"),
    ("ax.pcolor(x)", "cells_drawn_one_by_one", "pcolormesh"),
    # ---- Polars, JAX, Lightning, data sets ----
    ("y = df.with_columns(pl.col('a').map_elements(lambda x: 2 * x + 1))",
     "polars_formula_by_value", "`2 * pl.col('a') + 1`"),
    ("y = pl.read_csv(path).filter(pl.col('a') > 5)", "polars_read_before_selecting", ".collect()"),
    ("jax.config.update('jax_disable_jit', True)", "jax_without_jit", "remove"),
    ("os.environ['JAX_DEBUG_NANS'] = '1'", "jax_numbers_checked", "remove"),
    ("d = d.map(tokenize, load_from_cache_file=False)", "mapped_without_cache", "Remove"),
    ("datasets.disable_caching()", "datasets_without_cache", "Remove"),
    ("d = datasets.load_dataset(name, download_mode='force_redownload')", "data_downloaded_again",
     "Remove"),
    ("t = lightning.Trainer(detect_anomaly=True)", "anomalies_by_lightning", "remove"),
    ("t = lightning.Trainer(profiler='advanced')", "profiled_by_lightning", "Remove"),
    ("d = file.create_dataset('a', shape=(9, 9), chunks=(1, 1))", "hdf5_chunks_of_one", "True"),
    # ---- sums and windows, pixels ----
    ("x = scipy.stats.gamma(2.0, scale=s).rvs(random_state=rng)", "distribution_made_for_each_draw",
     "`rng.gamma(shape, scale)`"),
    ("x = sum(parts, [])", "lists_added_up", "`list(itertools.chain.from_iterable(parts))`"),
    ("x = [v[:i + 1].sum() for i in range(len(v))]", "sums_from_start", "`np.cumsum(v)`"),
    ("x = [v[i:i + 50].mean() for i in range(len(v) - 49)]", "windows_one_by_one",
     "sliding_window_view(v, 50)"),
    ("x = np.array([np.median(v[i:i + w]) for i in range(0, n, 2)])",
     "windows_one_by_one_by_function", "sliding_window_view(v, w)"),
    ("x = np.digitize(v, np.linspace(0, 1, 101))", "equal_bins_searched",
     "`np.floor((v - 0) / (1 - 0) * (101 - 1)).astype(int) + 1`"),
    ("x = image.getpixel((i, j))", "pixels_read_one_by_one", "np.asarray(image)"),
    ("image.putpixel((i, j), color)", "pixels_written_one_by_one", "Image.fromarray(pixels)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "advice"), FOUND)
def test_a_faster_call(text, name, advice):
    source = f"{text}\n    pass" if text.endswith(":") else text
    found = advices(source, text if text.endswith(":") else text.splitlines()[-1])
    if name not in found and "\n" in text:  # the slow call is not the last line
        found = advices(source, text.splitlines()[0])
    assert next(iter(found)) == name  # of several options with the same time, the first counts
    assert advice in found[name]


def test_each_entry_has_an_example():
    ours = {name for name, one in TABLE.items() if one.name in _NAMES}
    assert ours == {name for _, name, _ in FOUND}


_NAMES = [one.name for one in costly_options()[[*TABLE].index("group_method_as_function") :]]


@pytest.mark.parametrize("name", _NAMES)
def test_each_word_of_an_advice_is_known(name):
    one = TABLE[name]
    words = {word for _, word, _, _ in string.Formatter().parse(one.advice) if word}
    groups = {
        group
        for text in (one.value, one.first, one.object, one.inside)
        for group in re.compile(text).groupindex
    }
    makers = {"option", "at", "object", "first", "second", "third", "applied"}
    assert words <= groups | makers


CLEAN = [
    "m = NearestNeighbors(metric=lambda u, v: np.sqrt(np.sum(w * np.abs(u - v))))",
    "m = NearestNeighbors(metric=lambda u, v: np.sqrt(np.sum(w * (u - v) ** 2)) + 1)",
    "m = NearestNeighbors(metric='minkowski', metric_params={'w': w})",
    # ---- these functions are not what pandas has for all groups ----
    "m = df.groupby('k')['v'].mean()",
    "m = df.groupby('k')['v'].agg('mean')",
    "m = df.groupby('k')['v'].apply(lambda s: s.mean() + other[s.name])",
    "m = df.groupby('k')['v'].apply(lambda s: model.mean())",
    "m = df.groupby('k')['v'].apply(lambda s: s.mode()[0])",
    "m = df.groupby('k')['v'].agg(np.median)",  # also with missing values
    "m = df.groupby('k').apply(fit_model)",
    "def middle(s):\n    print(s)\n    return s.median()\nm = df.groupby('k').v.apply(middle)",
    "m = df.groupby('k').v.transform(lambda s: s.fillna(s.mean()))",
    "m = groups.transform(lambda s: s - s.mean())",  # which column is it?
    "r = df.groupby('k').filter(lambda g: len(g) > 10 and g['v'].mean() > 1)",
    "r = df.groupby('k').filter(check)",
    "m = df.groupby('k').apply(lambda g: np.average(g['v'], weights=weights))",
    "t = df.pivot_table(index='k', values='v', aggfunc='mean')",
    "t = df.pivot_table(index='k', values='v', aggfunc=lambda x: spread(x))",
    "t = df.groupby(['a', 'b'], observed=True)['v'].sum()",
    "m = s.rolling(50).mean()",
    "m = s.rolling(50).apply(lambda w: w.iloc[0] * w.sum())",
    "m = s.rolling(50).apply(lambda w: w.index[0])",
    "m = s.rolling(50).apply(lambda w: (w * w).sum(), raw=True)",
    "m = s.rolling(50).apply(weight_of, args=(1,))",
    # ---- values and rows ----
    "y = df['t'].apply(lambda d: d.owner)",
    "y = df['t'].dt.year",
    "y = pd.to_datetime(df['t'])",
    "y = df['t'].apply(lambda x: datetime.strptime(x['date'], '%d.%m.%Y'))",
    "y = df['t'].apply(clean)",
    "y = df['v'].apply(lambda x: x.strip())",
    "y = df['v'].apply(lambda x: x[0] + 1)",
    "y = df['v'].apply(lambda x: f(x) + 1)",
    "y = df['v'].apply(lambda x: x + other)",
    "y = df['v'].apply(lambda x: 3)",
    "y = df['v'].apply(lambda x: 'a' if x in names else 'b')",
    "y = df['v'].apply(lambda x: 'a' if x > 3 else name(x))",
    "y = df['v'].apply(lambda x, y: x + y, args=(2,))",
    "y = [f(x) for x in df['v']]",
    "y = df.apply(lambda r: r['a'] + r['b'])",  # the columns
    "y = df.apply(lambda r: distance_of(r['a'], r['b']), axis=1)",
    "y = df.apply(lambda r: r['a'].upper() + r['b'], axis=1)",
    "y = df.apply(lambda r: r['a'][0] + r['b'], axis=1)",
    "y = df.apply(lambda r: r['a'] if r['b'] in names else r['c'], axis=1)",
    "y = df[NAMES].apply(np.median, axis=1)",
    "y = df[NAMES].max(axis=1)",
    # ---- files ----
    "t = pd.to_datetime(df['t'], format='%Y')",
    "t = pd.read_json(path)",
    "t = pd.read_json(path, lines=True, engine='pyarrow')",
    "t = pd.read_json(path, lines=True, chunksize=1000)",
    "df.to_hdf('a.h5', key='a', format='table')\nt = pd.read_hdf('a.h5', where='v > 3')",
    "df.to_hdf('a.h5', key='a', format='table', append=True)",
    "for part in pd.read_csv(path, chunksize=10_000):\n    pass",
    "t = pd.read_csv(path, converters={'a': clean})",
    "t = pd.read_csv(path, converters={'a': lambda x: float(x.strip('%'))})",
    "df.to_csv('a.csv')",
    "df.to_csv('a.csv.gz', compression={'method': 'gzip', 'compresslevel': 1})",
    "np.savez(path, x=x)",
    "joblib.dump(model, path)",
    "joblib.dump(model, path, compress=1)",
    "joblib.dump(model, path, compress=('lz4', 1))",
    "z = zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED)",
    "f = open(path, 'wb')",
    "f = open(path, 'wb', buffering=1 << 20)",
    "f = open(device, 'rb', buffering=0)\ng = open(path)",
    "for part in response.iter_content(8192):\n    pass",
    "for part in response.iter_content(chunk_size=1 << 16):\n    pass",
    "for part in reader.iter_content(name):\n    pass",
    "x = json.loads(text)",
    "x = json.loads(json.dumps(state, default=str))",
    "x = json.loads(json.dumps(encode(state)))",
    "yaml.dump(data, file, Dumper=yaml.CSafeDumper)",
    "m = statistics.fmean(x)",
    "m = statistics.median(x)",
    # ---- linear algebra ----
    "c = np.einsum('ij,jk->ik', a, b, optimize=True)",
    "c = np.einsum('ij,ij->i', a, b)",
    "c = np.einsum('ij,j->i', a, b)",  # as fast as `@`
    "c = np.einsum('i,j->ij', a, b)",
    "c = torch.einsum('ij,jk->ik', a, b)",
    "c = np.einsum(pattern, a, b)",
    "w, v = np.linalg.eig(a)",
    "w, v = np.linalg.eig(a @ b.T)",
    "w, v = np.linalg.eigh(np.cov(x))",
    "w, v = linalg.eig(x.T @ x, m)",
    "n = np.linalg.norm(a)",
    "n = np.linalg.norm(a, axis=1)",
    "n = np.linalg.norm(a, 1)",
    "p = np.linalg.pinv(a)",
    "p = np.linalg.inv(a)",
    "x = np.linalg.inv(a) @ b",  # saves nothing if b has many columns
    "p = np.linalg.inv(a) + b",
    "s = np.sqrt(np.diag(np.linalg.inv(a)))",
    "t = np.trace(a)",
    "c = a @ b\nprint(c.sum())\nt = np.trace(c)",  # the product is needed for something else
    "q = np.diag(a @ v)",
    "q = np.diag(x @ s @ y.T)",
    "d = np.diag(w)",
    "u, s, vt = np.linalg.svd(x - x.mean(axis=0))\nprint(u, s, vt)",
    "u, s, vt = np.linalg.svd(a)\nprint(s, vt)",  # it may be square
    "u, s, vt = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)\nprint(s, vt)",
    "d = shortest_path(g)",
    "d = shortest_path(g, indices=0)",
    "f = np.fft.fft(x)",
    "f = np.fft.fft(x)[:100]",
    "f = np.fft.rfft(x)[:n // 2]",
    # ---- random numbers ----
    "x = np.random.multivariate_normal(mean, cov, size=1000)",
    "x = np.random.multivariate_normal(mean, cov, 1000)",
    "x = rng.choice(n, 1000, p=weights)",
    "x = rng.choice(n, size=1000, p=weights)",
    "x = rng.choice(n)",
    "def draw(grid):\n    weights = [one ** 2 for one in grid]\n    random.choices(names, weights)",
    "x = random.choices(names, weights, k=1000)",
    "x = random.choices(names, cum_weights=sums)",
    "x = random.choices(names)",
    # ---- sums and windows ----
    "x = scipy.stats.gamma(2.0, scale=s).rvs(size=1000)",
    "x = scipy.stats.gamma(2.0, scale=s).pdf(x)",
    "x = sum(numbers)",
    "x = sum(numbers, 0)",
    "x = [v[:i + 1].sum() for i in places]",
    "x = [v[a:b].mean() for a, b in pairs]",
    "x = [v[i:i + 50].mean() * w[i] for i in range(n)]",
    "x = [v[i:i + n[i]].mean() for i in range(n)]",
    "x = np.digitize(v, edges)",
    "x = np.digitize(v, np.linspace(0, 1, 101), right=True)",
    # ---- distances, optimisation ----
    "d = cdist(a, b)",
    "d = cdist(a, b, 'cosine')",
    "d = cdist(a, b, my_distance)",
    "d = cdist(a, b, metric=lambda u, v: np.linalg.norm(u - v) * weight(u))",
    "m = NearestNeighbors(metric='cosine')",
    "i = cdist(a, b, 'cosine').argmin(axis=1)",
    "i = cdist(a, b).argmin()",
    "m = cdist(a, b).mean(axis=1)",
    "n = tree.query_ball_point(p, 0.1)",
    "n = [sorted(one) for one in tree.query_ball_point(p, 0.1)]",
    "n = tree.query_ball_point(p, 0.1, return_length=True)",
    "r = least_squares(f, x, jac=jacobian)",
    "r = solve_ivp(f, (0, 9), [1], max_step=1.0)",
    "r = solve_ivp(f, (0, 9), [1], rtol=0.001)",
    # ---- models ----
    "y = TSNE().fit_transform(x)",
    "y = DBSCAN(algorithm='brute', metric='cosine').fit_predict(x)",
    "y = PCA(5).fit_transform(x)",
    "y = PCA('mle', svd_solver='full').fit_transform(x)",
    "m = KMeans(9, n_init=3).fit(x)",
    "m = KMeans(9, n_init='auto').fit(x)",
    "m = SVC(kernel='rbf').fit(x, y)",
    "m = SVC(kernel='linear').fit(x, y)\nprint(m.support_vectors_)",
    "s = cross_val_score(model, x, y, cv=10)",
    "m = GaussianProcessRegressor(n_restarts_optimizer=2)",
    "m = RandomForestRegressor(criterion='squared_error')",
    "s = silhouette_score(x, labels, sample_size=1000)",
    # ---- images, graphs, figures ----
    "m = binary_dilation(mask)",
    "m = binary_dilation(mask, np.ones((3, 3)))",
    "y = denoise_nl_means(x)",
    "d = nx.diameter(g, usebounds=True)",
    "d = nx.diameter(g, weight='w')",
    "d = nx.average_shortest_path_length(g, weight='w')",
    "c = nx.eigenvector_centrality_numpy(g)",
    "plt.savefig(path, dpi=150)",
    "ax.pcolormesh(x)",
    # ---- Polars, JAX, Lightning, data sets ----
    "y = df.with_columns(pl.col('a').map_elements(lookup))",
    "y = df.with_columns(2 * pl.col('a') + 1)",
    "y = pl.read_csv(path)",
    "y = pl.scan_csv(path).filter(pl.col('a') > 5).collect()",
    "jax.config.update('jax_disable_jit', False)",
    "d = d.map(tokenize)",
    "d = datasets.load_dataset(name)",
    "t = lightning.Trainer(profiler=None)",
    "d = file.create_dataset('a', shape=(9, 9), chunks=(1, 64))",
    "d = file.create_dataset('a', shape=(9, 9), chunks=True)",
]


@pytest.mark.parametrize("text", CLEAN)
def test_a_call_for_which_no_faster_one_is_known(text):
    active = text.splitlines()[-2] if text.endswith("    pass") else None
    found = advices(text, active) | advices(text, text.splitlines()[0])
    assert not set(found) & set(_NAMES)


def test_a_word_that_is_too_long():
    column = f"df['{'v' * 100}']"
    assert advices(f"y = {column}.apply(pd.to_datetime)") == {}
