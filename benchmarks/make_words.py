"""Make ``src/costa/graphs/words.npz``, the part of WordNet that the demo shows.

    python benchmarks/make_words.py FOLDER

FOLDER holds all of WordNet 3.1 as a graph: ``wordnet.npz`` (synsets and their pointers, TF-IDF of the glosses, the 45
lexicographers' files as labels) and ``wordnet-words.tsv.gz`` (first word and gloss of each synset). The part is chosen
as follows; the count of a word is the number of glosses in WordNet that use it.

1. Nouns of the files in ``FILES``, written in small letters. A topmost synset that is named like a file (``noun.Tops``,
   "animal") belongs to that file. Synsets whose word or gloss matches ``UNFIT`` are left out.
2. Each word once, in the sense with the most pointers.
3. Words with a count of ``COMMON`` or more, and words with a count of 1 or more that point to two or more of those.
4. The largest connected component, with all pointers among its synsets as edges.

Features are the TF-IDF columns that at least ``COLUMN`` of the nodes use, with rows scaled to length one again.
"""

from __future__ import annotations

import gzip
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.preprocessing import normalize

FILES = {  # a lexicographers' file's number, and its name without "noun."
    5: "animal",
    6: "artifact",
    8: "body",
    12: "feeling",
    13: "food",
    15: "location",
    17: "object",
    18: "person",
    19: "phenomenon",
    20: "plant",
    27: "substance",
}
TOPS = 3
NAME = re.compile(r"[a-z]+(?:[ -][a-z]+)*")
UNFIT = re.compile(
    "offensive|obscene|vulgar|disparag|slur|slang|derogat|ethnic|taboo|sexual|prostitut|naked|genital|vulva|vagina|penis",
    re.IGNORECASE,
)
COMMON, JOINS, COLUMN = 5, 2, 8
LONGEST = 120
"""Longest gloss, in characters."""
OUT = Path(__file__).parents[1] / "src" / "costa" / "graphs" / "words.npz"


def main(folder: Path) -> None:
    """Choose the part and write the file."""
    with gzip.open(folder / "wordnet-words.tsv.gz", "rt", encoding="utf-8") as file:
        titles, glosses = zip(*(line.rstrip("\n").split("\t") for line in file), strict=True)
    with np.load(folder / "wordnet.npz") as arrays:
        adjacency, features = (
            sparse.csr_array(
                tuple(arrays[f"{part}_{key}"] for key in ("data", "indices", "indptr")), shape=arrays[f"{part}_shape"]
            )
            for part in ("adj", "attr")
        )
        labels = arrays["labels"]
    words = [title.removesuffix(" (noun)") for title in titles]
    number = {name: code for code, name in FILES.items()}
    labels = np.array([number.get(word, TOPS) if y == TOPS else y for word, y in zip(words, labels, strict=True)])
    counts = count_phrases(glosses)
    used = np.array([counts[word.replace("-", " ")] for word in words])

    candidates = each_once(words, glosses, labels, np.diff(adjacency.indptr))
    common = candidates & (used >= COMMON)
    joining = candidates & (used > 0) & (adjacency @ common.astype(np.int64) >= JOINS)
    nodes = np.flatnonzero(common | joining)
    component = connected_components(adjacency[nodes][:, nodes], directed=False)[1]
    nodes = nodes[component == np.bincount(component).argmax()]

    edges = sparse.triu(adjacency[nodes][:, nodes], 1).tocoo()
    x = features[nodes]
    x = normalize(x[:, np.bincount(x.indices, minlength=x.shape[1]) >= COLUMN])
    np.savez_compressed(
        OUT,
        edge_index=np.stack([edges.row, edges.col]).astype(np.int16),
        attr_data=x.data.astype(np.float32),
        attr_indices=x.indices.astype(np.int16),
        attr_indptr=x.indptr.astype(np.int32),
        attr_shape=np.array(x.shape),
        labels=np.array([FILES[y] for y in labels[nodes]]),
        node_ids=np.array([words[node] for node in nodes]),
        node_notes=np.array([textwrap.shorten(glosses[node], LONGEST, placeholder=" …") for node in nodes]),
    )
    print(f"{len(nodes)} nodes, {len(edges.row)} edges, {x.shape[1]} features, {OUT.stat().st_size} bytes")
    print(Counter(FILES[y] for y in labels[nodes]))


def count_phrases(glosses: tuple[str, ...]) -> Counter[str]:
    """The number of glosses that use each word, and each phrase of two or three words."""
    counts: Counter[str] = Counter()
    for gloss in glosses:
        tokens = re.findall("[a-z]+", gloss.lower())
        counts.update({" ".join(tokens[i : i + n]) for n in (1, 2, 3) for i in range(len(tokens) - n + 1)})
    return counts


def each_once(words: list[str], glosses: tuple[str, ...], labels: np.ndarray, pointers: np.ndarray) -> np.ndarray:
    """Which synsets are nouns of the files, each word in the sense with the most pointers, the earliest if tied."""
    sense: dict[str, int] = {}
    for node in np.argsort(-pointers, kind="stable"):
        if labels[node] in FILES and NAME.fullmatch(words[node]) and not UNFIT.search(words[node] + glosses[node]):
            sense.setdefault(words[node], int(node))
    chosen = np.zeros(len(words), dtype=bool)
    chosen[list(sense.values())] = True
    return chosen


if __name__ == "__main__":
    main(Path(sys.argv[1]))
