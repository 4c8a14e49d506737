"""Matches the blazons of medieval rolls of arms with an armory of known families."""
import multiprocessing as mp
import random
from collections import Counter

TINCTURES = ["or", "argent", "gules", "azure", "sable", "vert", "purpure", "ermine"]
ORDINARIES = ["chevron", "fess", "bend", "pale", "cross", "saltire", "chief", "bordure",
              "pile", "canton"]
CHARGES = ["lion", "eagle", "martlet", "mullet", "crescent", "boar", "stag", "tower",
           "rose", "garb", "escallop", "annulet", "billet", "cinquefoil", "wyvern",
           "griffin", "pheon", "lozenge", "roundel", "bugle"]
POSTURES = ["rampant", "passant", "statant", "displayed", "couped", "erased"]
ROLLS = 76
SHIELDS = 330


def blazon(rng):
    field, first, second = rng.sample(TINCTURES, 3)
    return (field, rng.choice(ORDINARIES), first, rng.randint(1, 6),
            rng.choice(CHARGES), rng.choice(POSTURES), second)


def spell(parts):
    return "{} a {} {} between {} {} {} {}".format(*parts)


def make_armory(rng, families=240_000):
    armory = {}
    for number in range(families):
        armory[spell(blazon(rng))] = (f"family {number}", 1180 + number % 320)
    return armory


def make_rolls(rng):
    return [[blazon(rng) for _ in range(SHIELDS)] for _ in range(ROLLS)]


def variants(parts):
    field, ordinary, first, count, charge, posture, second = parts
    yield parts
    for other in TINCTURES:
        yield (field, ordinary, other, count, charge, posture, second)
        yield (field, ordinary, first, count, charge, posture, other)
        yield (other, ordinary, first, count, charge, posture, second)
    for other in range(1, 7):
        for stance in POSTURES:
            yield (field, ordinary, first, other, charge, stance, second)
    for other in ORDINARIES:
        for beast in CHARGES:
            yield (field, other, first, count, beast, posture, second)


def match_roll(number, roll, armory):
    kinds = Counter()
    years = []
    for parts in roll:
        for distance, candidate in enumerate(variants(parts)):
            known = armory.get(spell(candidate))
            if known:
                kinds["exact" if distance == 0 else "near"] += 1
                years.append(known[1])
                if distance == 0:
                    break
    return number, kinds, sum(years) / max(len(years), 1)


def main():
    rng = random.Random(1254)
    armory = make_armory(rng)
    rolls = make_rolls(rng)
    context = mp.get_context("fork")
    with context.Pool(2) as pool:
        tasks = [(number, roll, armory) for number, roll in enumerate(rolls)]
        results = pool.starmap(match_roll, tasks, chunksize=1)
    kinds = sum((k for _, k, _ in results), Counter())
    print(f"{len(armory)} blazons in the armory, {ROLLS} rolls of {SHIELDS} shields")
    print("matches:", dict(sorted(kinds.items())))
    print(f"mean year {sum(y for _, _, y in results) / len(results):.2f}")


if __name__ == "__main__":
    main()
