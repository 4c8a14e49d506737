"""Load lab results into a database and match each to its patient."""
import os
import random
import sqlite3
import tempfile


def main():
    r = random.Random(2)
    with tempfile.TemporaryDirectory() as d:
        db = sqlite3.connect(os.path.join(d, "lab.db"))
        db.execute("create table patient (code text, born integer, ward text)")
        db.execute("create table result (code text, test text, value real)")
        db.executemany("insert into patient values (?, ?, ?)",
                       [(f"P{i:06d}", r.randrange(1930, 2015), r.choice("ABCDEF")) for i in range(60000)])
        db.execute('create index pc on patient(code)')
        db.commit()
        for i in range(2500):
            code = f"P{r.randrange(60000):06d}"
            row = db.execute("select born, ward from patient where code = ?", (code,)).fetchone()
            value = r.gauss(5, 1) + (2020 - row[0]) * 0.01
            db.execute("insert into result values (?, ?, ?)", (code, f"{row[1]}-Na", value))
            if i % 250 == 0:
                print(i, code, round(value, 2), flush=True)
        values = [v for (v,) in db.execute("select value from result")]
        low = []
        for _ in range(2600):  # reference interval by bootstrap
            low.append(sorted(r.choices(values, k=len(values)))[62])
        print("lower limit", sum(low) / len(low))
        print(db.execute("select test, avg(value) from result group by test").fetchall())


if __name__ == "__main__":
    main()
