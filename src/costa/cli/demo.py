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
    """Train and evaluate COSTA on an embedded graph of words; make a table, a picture and a page. Downloads nothing."""
    from costa.demo import ABOUT, GRAPH, PICTURE, REPORT, REPORTED, RESULTS, SPLITS, run

    began = time.perf_counter()
    say(f"{ABOUT} Training uses no labels.\n")
    rows = run(out, lambda step: say(f"  {step} …"))
    say("\nLogistic regression and k-means on the vectors")
    scores = ("2% labels", "10% labels", "NMI")
    print_table(
        ("", *scores),
        [[row.title, percent(row.low_label), percent(row.ten_percent), f"{row.nmi:.3f}"] for row in rows],
        right=scores,
    )
    say(
        "\nAccuracy (percent) is on nodes whose labels were not used: mean ± standard deviation over"
        f" {SPLITS} splits. NMI says how well k-means, which sees no labels, finds the eleven kinds. Raw features"
        " ignore the edges; diffused features and hops are averaged along them, without weights; the untrained GCN has"
        " random ones."
    )
    say(f"\nPage      {out / REPORT}   (open it in a browser, and find a word)")
    say(f"Picture   {out / PICTURE}\nNumbers   {out / RESULTS}")
    say(f"Models    {out}/{GRAPH}-*/   (try: costa probe {out / REPORTED})")
    say(f"Done in {time.perf_counter() - began:.0f} s. Next: costa train cora")
