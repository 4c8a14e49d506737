"""Fill the herbarium database and run the yearly report."""
import os
import random
import sqlite3
import tempfile

r = random.Random(5)


def rows(n):
    for i in range(n):
        yield (f"H{i:07d}", f"genus{r.randrange(400)}", r.randrange(1850, 2020), r.random() * 90, r.random() * 180)


with tempfile.TemporaryDirectory() as d:
    con = sqlite3.connect(os.path.join(d, "herb.db"))
    con.execute("create table sheet (code text primary key, genus text, year int, lat real, lon real)")
    for part in range(6):
        con.executemany("insert into sheet values (?,?,?,?,?)",
                        [(f"{part}{c}", g, y, a, b) for c, g, y, a, b in rows(200_000)])
        con.commit()
        print("part", part, flush=True)
    con.execute("create index g on sheet(genus, year)")
    for k in range(400):
        out = con.execute("select year / 10, count(*), avg(lat) from sheet where genus = ? group by 1", (f"genus{k}",))
        if k % 50 == 0:
            print(k, out.fetchone(), flush=True)
        else:
            out.fetchall()
    print(con.execute("select count(distinct genus), min(year) from sheet").fetchone())
