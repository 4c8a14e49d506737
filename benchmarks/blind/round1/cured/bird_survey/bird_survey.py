"""Join bird sightings with plot attributes, yearly totals per habitat."""
import random
import sqlite3

r = random.Random(8)
con = sqlite3.connect(":memory:")
con.executescript("""
create table plot (name text, habitat text, area real);
create table sighting (plot text, year integer, species text, n integer);
""")
con.executemany("insert into plot values (?,?,?)",
                [(f"plot-{i}", r.choice(["bog", "heath", "wood"]), r.random()) for i in range(9000)])
con.executemany("insert into sighting values (?,?,?,?)",
                [(f"plot-{r.randrange(9000)}", 1990 + r.randrange(30), "sp%d" % r.randrange(80), r.randrange(9))
                 for _ in range(120_000)])
con.execute('create index a on plot(name)')
con.execute('create index b on sighting(plot)')
con.commit()
names = [row[0] for row in con.execute("select name from plot limit 3400")]
density = {}
for k, name in enumerate(names):
    habitat, area = con.execute("select habitat, area from plot where name = ?", (name,)).fetchone()
    n = con.execute("select sum(n) from sighting where plot = ?", (name,)).fetchone()[0] or 0
    density.setdefault(habitat, []).append(n / (area + 0.01))
    if k % 400 == 0:
        print(k, habitat, flush=True)
for h, v in density.items():
    print(h, sum(v) / len(v))
