"""Find occupations and origins of guests in transcribed abbey guest books (1780-1900)."""
import re
from collections import Counter

import numpy as np
import pandas as pd

STEMS = ["mill", "tann", "weav", "coop", "bak", "carp", "saddl", "print", "brew", "fish",
         "smith", "mason", "glaz", "chandl", "garden", "pott", "roof", "tinn", "fur", "scriv"]
REGIONS = ["alp", "berg", "dorf", "feld", "heim", "bach", "wald", "burg", "stein", "au",
           "ried", "moos", "see", "tal", "egg", "brunn", "furt", "haus", "kirch", "hof",
           "au-west", "ober", "nieder", "mitter", "klein", "gross", "alt", "neu", "hinter",
           "vorder", "inner", "ausser", "sankt"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August",
          "September", "October", "November", "December"]


def expressions():
    """One spelling-tolerant expression for each pair of craft and region."""
    table = {}
    for craft in STEMS:
        for region in REGIONS:
            table[craft, region] = (r"\b%s(?:er|ar|erin|ers?)\s+(?:von|aus|of|from)\s+"
                                    r"(?:der\s+|dem\s+)?[A-Z]?%s(?:[a-z]{0,4})\b" % (craft, region))
    return table


def page_text(rng, lines=45):
    rows = []
    for _ in range(lines):
        craft = STEMS[rng.integers(len(STEMS))]
        region = REGIONS[rng.integers(len(REGIONS))]
        joint = ("von", "aus", "of", "from")[rng.integers(4)]
        rows.append("Item a %ser %s %s, lodged %d nights and gave %d kreuzer"
                    % (craft, joint, region, rng.integers(1, 9), rng.integers(2, 60)))
    return "\n".join(rows)


def arrivals(rng, count):
    days = rng.integers(1, 29, count)
    months = rng.integers(0, 12, count)
    years = rng.integers(1780, 1900, count)
    minutes = rng.integers(0, 1440, count)
    return ["%d %s %d %02d:%02d" % (d, MONTHS[m], y, t // 60, t % 60)
            for d, m, y, t in zip(days, months, years, minutes)]


def main():
    rng = np.random.default_rng(77)
    pages = [page_text(rng) for _ in range(65)]
    dates = arrivals(rng, 70000)
    table = expressions()

    found = Counter()
    for page in pages:
        for key, expression in table.items():
            hits = re.findall(expression, page)
            if hits:
                found[key] += len(hits)

    stamps = pd.to_datetime(pd.Series(dates), format="mixed", dayfirst=True)
    by_decade = (stamps.dt.year // 10 * 10).value_counts().sort_index()
    crafts = Counter()
    for (craft, _), n in found.items():
        crafts[craft] += n
    print("pairs found:", len(found), "mentions:", sum(found.values()))
    print("commonest craft:", crafts.most_common(1)[0])
    print("busiest decade:", int(by_decade.idxmax()), int(by_decade.max()))
    print("arrivals before noon: %.3f" % (stamps.dt.hour < 12).mean())


if __name__ == "__main__":
    main()
