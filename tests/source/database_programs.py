"""Programs with queries in loops: in some, the table `bird` lacks an index on `plot`.

Each program has the calls of its stack, the outermost first.
"""

from __future__ import annotations

FOUND = {
    "the text has a name, and the rows come later": (
        """
        db.executescript('''create table plot (name text, area real);
                            create table bird (plot text, n integer);''')
        QUERY = "SELECT n FROM bird WHERE plot = ?"
        def main(db, names):
            cur = db.cursor()
            for name in names:
                cur.execute(QUERY, (name,))
                rows = cur.fetchall()
        """,
        "cur.fetchall()",
    ),
    "a function with the statement as an argument": (
        """
        def ask(db, sql, *values):
            return db.execute(sql, values).fetchone()
        def main(db, names):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            for name in names:
                row = ask(db, "SELECT n FROM bird WHERE plot = ?", name)
        """,
        ['ask(db, "SELECT n FROM bird WHERE plot = ?", name)', "db.execute(sql, values)"],
    ),
    "parts of the text, and a name of the table": (
        """
        BIRDS = "bird"
        class Store:
            SQL = f"SELECT n FROM {BIRDS}" + " WHERE plot = ?"
            def make(self):
                self.db.execute(f"CREATE TABLE {BIRDS} (plot TEXT, n INTEGER)")
            def all_of(self, names):
                return {name: self.db.execute(self.SQL, (name,)).fetchall() for name in names}
        """,
        "self.db.execute(self.SQL, (name,))",
    ),
    "a value in the text": (
        """
        import pandas as pd
        def main(db, names):
            frame.to_sql("bird", db, index=False)
            for name in names:
                part = pd.read_sql(f"SELECT * FROM bird WHERE plot = '{name}'", db)
        """,
        "pd.read_sql(f\"SELECT * FROM bird WHERE plot = '{name}'\", db)",
    ),
    "one call for many rows": (
        """
        def main(db, rows):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            db.executemany("UPDATE bird SET n = ? WHERE plot = ?", rows)
        """,
        'db.executemany("UPDATE bird SET n = ? WHERE plot = ?", rows)',
    ),
    "rows in a comprehension": (
        """
        def of(db, plot):
            cur = db.execute("SELECT n FROM bird WHERE plot = ?", (plot,))
            return [row[0] for row in cur]
        def main(db, plots):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            while plots:
                of(db, plots.pop())
        """,
        ["of(db, plots.pop())", "[row[0] for row in cur]"],
    ),
}
CLEAN = {
    "no loop": (
        """
        def main(db, name):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            row = db.execute("SELECT n FROM bird WHERE plot = ?", (name,)).fetchone()
        """,
        'db.execute("SELECT n FROM bird WHERE plot = ?", (name,))',
    ),
    "a loop of a few queries": (
        """
        def main(db, name):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            for name in ("bog", "heath", "wood"):
                row = db.execute("SELECT n FROM bird WHERE plot = ?", (name,)).fetchone()
        """,
        'db.execute("SELECT n FROM bird WHERE plot = ?", (name,))',
    ),
    "an index of a name that is not known": (
        """
        def main(db, names, tables):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            for table in tables:
                db.execute(f"CREATE INDEX {table}_plot ON {table} (plot)")
            for name in names:
                row = db.execute("SELECT n FROM bird WHERE plot = ?", (name,)).fetchone()
        """,
        'db.execute("SELECT n FROM bird WHERE plot = ?", (name,))',
    ),
    "an index of columns that are not known": (
        """
        def main(db, names, keys):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            db.execute("CREATE INDEX i ON bird (" + ", ".join(keys) + ")")
            for name in names:
                row = db.execute("SELECT n FROM bird WHERE plot = ?", (name,)).fetchone()
        """,
        'db.execute("SELECT n FROM bird WHERE plot = ?", (name,))',
    ),
    "statements in a file": (
        """
        from pathlib import Path
        def main(db, names):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            db.executescript(Path("indexes.sql").read_text())
            for name in names:
                row = db.execute("SELECT n FROM bird WHERE plot = ?", (name,)).fetchone()
        """,
        'db.execute("SELECT n FROM bird WHERE plot = ?", (name,))',
    ),
    "an index of pandas": (
        """
        def main(db, frame, names):
            frame.to_sql("bird", db)
            for name in names:
                row = db.execute("SELECT n FROM bird WHERE plot = ?", (name,)).fetchone()
        """,
        'db.execute("SELECT n FROM bird WHERE plot = ?", (name,))',
    ),
    "a part of the condition is not known": (
        """
        def main(db, names, more):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            for name in names:
                sql = "SELECT n FROM bird WHERE plot = ? AND " + more
                row = db.execute(sql, (name,)).fetchone()
        """,
        "db.execute(sql, (name,))",
    ),
    "a text that is put together": (
        """
        def main(db, names, more):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            for name in names:
                sql = "SELECT n FROM bird WHERE plot = ?"
                sql += " OR n = 3"
                row = db.execute(sql, (name,)).fetchone()
        """,
        "db.execute(sql, (name,))",
    ),
    "only an example in a docstring": (
        '''
        """Reads birds: CREATE TABLE bird (plot TEXT, n INTEGER)"""
        def main(db, names):
            for name in names:
                row = db.execute("SELECT n FROM bird WHERE plot = ?", (name,)).fetchone()
        ''',
        'db.execute("SELECT n FROM bird WHERE plot = ?", (name,))',
    ),
    "a list of rows": (
        """
        def main(db, names):
            db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")
            for name in names:
                rows = db.execute("SELECT n FROM bird WHERE plot = ?", (name,)).fetchall()
                fit(rows)
        """,
        "fit(rows)",
    ),
}
