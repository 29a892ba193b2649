"""Two tables, `costa train`, then the command that it names: vectors and a page with the ids of the tables."""

import csv
import json
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

COMMAND = Path(sys.executable).parent / "costa"
# in an order that is not sorted, with a name that CSV must quote and HTML must escape
PEOPLE = ['O\'Hara, "Pat" <p@x>', *random.Random(0).sample([f"person {i}" for i in range(59)], 59)]
SMALL = ("--epochs", "3", "--set", "encoder.width=8", "--set", "head.width=8")


def write(path, *rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def begin(place, *, labelled):
    """Write the files and start a process that trains on them; with labels, `nodes.csv` gives the order."""
    rng = random.Random(1)
    folder = place / "my people"
    folder.mkdir(parents=True)
    pairs = {(a, b) for a, b in (rng.sample(range(60), 2) for _ in range(700)) if a % 2 == b % 2}
    write(folder / "edges.csv", ["source", "target"], *((PEOPLE[a], PEOPLE[b]) for a, b in sorted(pairs)))
    rows = [[name, rng.gauss(40, 9) + 9 * (i % 2), rng.gauss(1.7, 0.1)] for i, name in enumerate(PEOPLE)]
    write(folder / "features.csv", ["id", "age", "height"], *(rng.sample(rows, 60) if labelled else rows))
    if labelled:
        labels = ("blue", "red")
        write(folder / "nodes.csv", ["id", "label"], *((name, labels[i % 2]) for i, name in enumerate(PEOPLE)))
    return costa(place, "train", "my people/", "--out", "my run", *SMALL)


def costa(place, *arguments):
    return subprocess.Popen(
        [COMMAND, *arguments], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


def end(process):
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    return out


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    """From the files to the page, with and without labels, at the same time: most of it is spent on imports."""
    places = {labelled: tmp_path_factory.mktemp("place") for labelled in (True, False)}
    training = {labelled: begin(place, labelled=labelled) for labelled, place in places.items()}
    trained = {labelled: end(process) for labelled, process in training.items()}
    following = {}
    for labelled, out in trained.items():
        name, *words = shlex.split(out.splitlines()[-1].removeprefix("Next: "))
        assert name == "costa"
        following[labelled] = costa(places[labelled], *words)
    return {
        labelled: SimpleNamespace(run=place / "my run", trained=trained[labelled], reported=end(following[labelled]))
        for labelled, place in places.items()
    }


@pytest.fixture(params=[True, False], ids=["with labels", "without labels"])
def walk(walks, request):
    return walks[request.param]


def read_vectors(run):
    """Ids and vectors, from the table that was written."""
    if (run / "embeddings.csv").exists():
        with (run / "embeddings.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1:]
        return [row[0] for row in rows], np.array([row[1:] for row in rows], dtype="float32")
    from pyarrow import parquet

    table = parquet.read_table(run / "embeddings.parquet")
    ids, *columns = table.columns
    return ids.to_pylist(), np.stack([column.to_numpy() for column in columns], axis=1)


def test_the_vectors_have_the_ids_of_the_files_in_their_order(walk):
    ids, vectors = read_vectors(walk.run)
    assert ids == PEOPLE
    np.testing.assert_allclose(vectors, np.load(walk.run / "embeddings.npy"), rtol=1e-6)
    assert len(vectors) == 60


def test_training_ends_by_naming_the_page_and_the_page_is_there(walk):
    assert walk.trained.count("Next:") == 1
    assert walk.trained.endswith("\nNext: costa report 'my run'\n")
    assert walk.reported.endswith("my run/report.html: open it in a browser\n")


def test_the_page_names_the_nodes_by_their_ids(walk):
    page = (walk.run / "report.html").read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="nodes">(.*?)</script>', page, flags=re.DOTALL)
    assert json.loads(data)["ids"] == PEOPLE


@pytest.mark.parametrize("labelled", [True, False], ids=["with labels", "without labels"])
def test_an_accuracy_is_claimed_where_there_are_labels_and_nowhere_else(walks, labelled):
    walk = walks[labelled]
    written = [(walk.run / name).read_text(encoding="utf-8") for name in ("metrics.json", "report.html")]
    for text in (walk.trained, *written):
        assert ("accuracy" in text.lower()) == labelled
    assert ("not evaluated: no labels of two classes" in walk.trained) != labelled
