"""Make a graph of any size, in the folder that ``costa train FOLDER`` reads.

    python benchmarks/make_graph.py FOLDER --nodes 1_000_000 --edges 10_000_000

:mod:`costa.graphs.communities` says what is in it. Ten million nodes with a hundred million edges and 64 columns take
less than a minute, 0.2 GB of memory and 3.3 GB on disk.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from pyarrow import parquet

from costa.errors import InputError
from costa.graphs.streamed import stream_communities
from costa.wording import counted, duration


def main() -> None:
    """Parse, make the graph, and print what was made."""
    parser = argparse.ArgumentParser(description="Make a synthetic graph of communities within classes.")
    parser.add_argument("folder", type=Path, help="A folder that is new or empty.")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--edges", type=int, help="Undirected edges; ten for each node by default.")
    parser.add_argument("--columns", type=int, default=128, help="Feature columns.")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--exponent", type=float, default=2.5, help="Exponent of the degrees' power law, above 2.")
    parser.add_argument("--sparse", action="store_true", help="Sparse features instead of dense.")
    parser.add_argument("--seed", type=int, default=0, help="Random seed.")
    arguments = vars(parser.parse_args())
    began = time.perf_counter()

    def announce(text: str) -> None:
        print(f"{duration(time.perf_counter() - began):>6}  {text}", flush=True)

    try:
        stream_communities(**arguments, announce=announce)
    except InputError as error:
        parser.error(str(error))
    folder: Path = arguments["folder"]
    size = sum(file.stat().st_size for file in folder.iterdir())
    nodes, edges = (parquet.read_metadata(folder / f"{name}.parquet").num_rows for name in ("nodes", "edges"))
    announce(f"{counted(nodes, 'node')}, {counted(edges, 'edge')}, {counted(size, 'byte')} in {folder}")


if __name__ == "__main__":
    main()
