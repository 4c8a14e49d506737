"""Trade of an old sea port from transcribed cargo manifests.

The transcribers' files have a comma and a blank between the fields; arrival
and clearance are written as in the book. Delays and values by origin.
"""
import datetime as dt
import os
import random
import tempfile

import numpy as np
import pandas as pd

BOOKS = 4
LINES = 110_000
WRITTEN = "%d %B %Y %H:%M"
PORTS = ["Bergen", "Riga", "Porto", "Cadiz", "Hull", "Bordeaux", "Danzig", "Livorno"]
GOODS = ["tar", "salt", "wine", "cork", "coal", "timber", "flax", "oil", "figs"]


def write_book(path, number):
    rnd = random.Random(1750 + number)
    day = dt.datetime(1750 + number, 1, 2, 6, 0)
    with open(path, "w") as out:
        out.write("folio, vessel, origin, good, tuns, value, duty, crew, arrival, clearance\n")
        for line in range(LINES):
            arrival = day + dt.timedelta(minutes=rnd.randrange(500_000))
            stay = dt.timedelta(hours=rnd.randrange(20, 900))
            tuns = rnd.lognormvariate(3.0, 0.7)
            out.write(f"{line // 40}, V{rnd.randrange(900)}, {rnd.choice(PORTS)}, "
                      f"{rnd.choice(GOODS)}, {tuns:.1f}, {tuns * rnd.uniform(2, 9):.2f}, "
                      f"{rnd.uniform(0, 0.2):.4f}, {rnd.randrange(5, 60)}, "
                      f"{arrival:%d %B %Y %H:%M}, {arrival + stay:%d %B %Y %H:%M}\n")


def read_book(path):
    book = pd.read_csv(path, sep=", ", engine="python")
    for column in ("arrival", "clearance"):
        book[column] = [dt.datetime.strptime(text, WRITTEN) for text in book[column]]
    return book


def delays(book):
    stay = (book["clearance"] - book["arrival"]).dt.total_seconds() / 86400
    return book.assign(stay=stay, paid=book["value"] * book["duty"])


def permutation(book, rng, draws=300):
    stay = book["stay"].to_numpy()
    coded = pd.factorize(book["good"], sort=True)[0]
    counts = np.bincount(coded)

    def spread(codes):
        return np.ptp(np.bincount(codes, weights=stay) / counts)

    observed = spread(coded)
    return float(np.mean([spread(rng.permutation(coded)) >= observed for _ in range(draws)]))


def main():
    rng = np.random.default_rng(14)
    books = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(BOOKS):
            path = os.path.join(folder, f"book_{number}.txt")
            write_book(path, number)
            book = delays(read_book(path))
            chance = permutation(book, rng)
            print(f"book {1750 + number}: mean stay {book['stay'].mean():.2f} days, p = {chance:.3f}")
            books.append(book)
    trade = pd.concat(books, ignore_index=True)
    table = trade.groupby("origin")[["value", "paid", "stay"]].mean().round(3)
    top = table.sort_values("value", ascending=False)
    print(f"dearest origin {top.index[0]}: value {top['value'].iloc[0]:.3f}")
    print(f"{len(trade)} cargoes, duty {trade['paid'].sum():.1f}")


if __name__ == "__main__":
    main()
