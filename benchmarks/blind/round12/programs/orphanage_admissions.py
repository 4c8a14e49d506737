"""Length of stay of children admitted to an orphanage, month by month (register 1810-1849)."""
import os
import sqlite3
import tempfile

import numpy as np
import pandas as pd

ROWS = 400_000
MONTHS = [f"{year}-{month:02d}" for year in range(1830, 1843) for month in range(1, 13)][:140]
PARISHES = ["St Giles", "Holy Cross", "St Anne", "Minster", "St Olave", "Quayside", "Almshill"]


def transcribe(path):
    rng = np.random.default_rng(1849)
    year = rng.integers(1810, 1850, ROWS)
    month = rng.integers(1, 13, ROWS)
    day = rng.integers(1, 29, ROWS)
    hour = rng.integers(6, 21, ROWS)
    stay = np.ceil(rng.gamma(1.4, 260.0, ROWS)).astype(int)
    age = rng.integers(0, 12, ROWS)
    parish = rng.integers(0, len(PARISHES), ROWS)
    con = sqlite3.connect(path)
    con.execute("CREATE TABLE register (entry INTEGER PRIMARY KEY, admitted TEXT, parish TEXT, "
                "age INTEGER, stay INTEGER, remark TEXT)")
    con.executemany(
        "INSERT INTO register (admitted, parish, age, stay, remark) VALUES (?, ?, ?, ?, ?)",
        ((f"{y}-{m:02d}-{d:02d} {h:02d}:00", PARISHES[p], a, s, "admitted on the order of the overseers")
         for y, m, d, h, p, a, s in zip(year.tolist(), month.tolist(), day.tolist(), hour.tolist(),
                                        parish.tolist(), age.tolist(), stay.tolist())))
    con.execute("CREATE INDEX by_admitted ON register (admitted)")
    con.commit()
    con.close()


def month_entries(con, month):
    rows = con.execute(
        "SELECT admitted, parish, age, stay FROM register WHERE substr(admitted, 1, 7) = ? ORDER BY entry",
        (month,)).fetchall()
    return pd.DataFrame(rows, columns=["admitted", "parish", "age", "stay"])


def add_dates(frame):
    frame["admitted"] = frame["admitted"].apply(pd.to_datetime)
    frame["discharged"] = frame["admitted"] + pd.to_timedelta(frame["stay"], unit="D")
    frame["weekday"] = frame["admitted"].dt.dayofweek
    return frame


def stay_interval(stays, rng, draws=1500):
    pick = rng.integers(0, len(stays), size=(draws, len(stays)))
    medians = np.median(stays[pick], axis=1)
    return np.percentile(medians, [2.5, 97.5])


def main():
    rng = np.random.default_rng(7)
    summary = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "register.sqlite")
        transcribe(path)
        con = sqlite3.connect(path)
        for month in MONTHS:
            frame = add_dates(month_entries(con, month))
            low, high = stay_interval(frame["stay"].to_numpy(), rng)
            winter = frame["discharged"].dt.month.isin([11, 12, 1, 2]).mean()
            sunday = (frame["weekday"] == 6).mean()
            summary.append((month, len(frame), low, high, winter, sunday))
        con.close()
    table = pd.DataFrame(summary, columns=["month", "children", "low", "high", "winter", "sunday"])
    print(table.iloc[::35].to_string(index=False))
    print(f"{int(table['children'].sum())} children, median stay interval width "
          f"{(table['high'] - table['low']).mean():.2f} days")


if __name__ == "__main__":
    main()
