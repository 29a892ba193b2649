"""``costa demo``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from costa.cli.console import percent, print_table, say


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page, the numbers and the models.")] = Path("costa-demo"),
) -> None:
    """Train and evaluate COSTA on the embedded digits graph; make a table, a picture and a page. Downloads nothing."""
    from costa.demo import PICTURE, REPORT, REPORTED, RESULTS, SEEDS, SPLITS, run

    began = time.perf_counter()
    say("1,797 handwritten digits, linked to their nearest neighbours. Training uses no labels.\n")
    rows = run(out, lambda step: say(f"  {step} …"))
    say("\nLogistic regression and k-means on the vectors")
    scores = ("2% labels", "10% labels", "NMI")
    print_table(
        ("", *scores),
        [
            [row.title, percent(row.low_label), percent(row.ten_percent), "{:.3f} ± {:.3f}".format(*row.nmi)]
            for row in rows
        ],
        right=scores,
    )
    say(
        "\nAccuracy (percent) is on nodes whose labels were not used: mean ± standard deviation over"
        f" {SEEDS} seeds × {SPLITS} splits. NMI says how well k-means, which sees no labels, finds the ten digits, over"
        f" {SEEDS} seeds. Diffused features and hops have no weights and the untrained GCN has random ones: three"
        " strong baselines."
    )
    say(f"\nPage      {out / REPORT}   (open it in a browser)")
    say(f"Picture   {out / PICTURE}\nNumbers   {out / RESULTS}")
    say(f"Models    {out}/digits-*/   (try: costa probe {out / REPORTED})")
    say(f"Done in {time.perf_counter() - began:.0f} s. Next: costa train cora --method costa-mv")
