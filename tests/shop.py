"""A shop whose truth is known: customers and products of four interests, in one messy table and one list of purchases.

A customer buys products of the same interest in six of ten cases, else any. What is written about a node has few words
of its interest among many others; in a quarter of the cases a customer lives where that interest is at home. The other
columns tell a little or nothing.
"""

import csv
import random

INTERESTS = {
    "garden": "soil seeds roses shears hedge compost tulips watering lawn pruning",
    "kitchen": "knives baking oven pans recipes dough spices roasting whisk saucepan",
    "music": "guitar strings vinyl concert piano drums melody amplifier chords choir",
    "sport": "running football tennis marathon shoes training goals racket cycling swimming",
}
PLAIN = "the a with for always never often likes wants new old good second best very much small large blue green"
TOWNS = ("Bern", "Lyon", "Turin", "Graz", "Porto", "Ghent")
COLUMNS = ("entity_id", "kind", "name", "town", "age", "price", "joined", "newsletter", "about", "label")
LABELLED = 0.3


def write_shop(folder, customers=500, products=300, seed=0):
    """Write ``nodes.csv``, ``edges.csv`` and a file that is no part of the graph; the kind and interest of each id.

    The ids are the numbers 0 … n − 1 in another order than the rows, in a column that is not called ``id``.
    """
    rng, n = random.Random(seed), customers + products
    names = list(INTERESTS)
    ids = rng.sample(range(n), n)
    truth = [("customer" if i < customers else "product", rng.choice(names)) for i in range(n)]
    rows = [[ids[i], kind, *_cells(rng, kind, interest)] for i, (kind, interest) in enumerate(truth)]
    rng.shuffle(rows)
    of = {name: [i for i in range(customers, n) if truth[i][1] == name] for name in names}
    edges = []
    for i in range(customers):
        for _ in range(rng.randint(2, 7)):
            bought = rng.choice(of[truth[i][1]]) if rng.random() < 0.6 else rng.randrange(customers, n)
            edges.append([*rng.sample([ids[i], ids[bought]], 2), rng.randint(1, 4)])
    folder.mkdir(parents=True)
    for file, header, lines in (("nodes", COLUMNS, rows), ("edges", ("From", "To", "weight"), edges)):
        with (folder / f"{file}.csv").open("w", newline="") as opened:
            csv.writer(opened).writerows([header, *lines])
    (folder / "orders-2019.xlsx").write_bytes(b"PK")
    return {str(node): about for node, about in zip(ids, truth, strict=True)}


def _cells(rng, kind, interest):
    """Name, town, age, price, date, newsletter, text and label of a node; some are blank, some only one kind has."""

    def blank(cell, share=0.1):
        return "" if rng.random() < share else cell

    def word():
        any_of_them = INTERESTS[rng.choice(list(INTERESTS))]
        words = rng.choices((INTERESTS[interest], any_of_them, PLAIN), (0.15, 0.15, 0.7))[0]
        return rng.choice(words.split())

    place, customer = list(INTERESTS).index(interest), kind == "customer"
    town = TOWNS[place] if rng.random() < 0.25 else rng.choice(TOWNS)
    return (
        f"{rng.choice(('Kim', 'Ada', 'Leo', 'Ida'))}{rng.randrange(10**6)}",
        blank(town) if customer else "",
        blank(round(rng.gauss(40 + 4 * place, 12))) if customer else "",
        "" if customer else blank(round(rng.gauss(20 + 5 * place, 8), 2)),
        blank(f"{rng.randint(2015, 2023)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"),
        blank(rng.choice(("yes", "no"))) if customer else "",
        blank(" ".join(word() for _ in range(rng.randint(6, 14)))),
        interest if rng.random() < LABELLED else "",
    )
