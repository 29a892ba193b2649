"""Two kinds of nodes: customers and products as a HeteroData, and who is like whom.

    python examples/two_kinds.py

Customers have an age and other numbers, products a price and others; who buys what depends on interests that no feature
tells plainly. The vectors of both kinds come from one model. A node's nearest ones are mostly of its own kind.
"""

from __future__ import annotations

import torch
from torch_geometric.data import HeteroData

from costa import COSTA
from costa.graphs import as_graph

CUSTOMERS, PRODUCTS, INTERESTS, BOUGHT = 300, 120, 3, 8


def make_shop() -> tuple[HeteroData, torch.Tensor]:
    """The shop, and the interest of each node, customers first."""
    random = torch.Generator().manual_seed(0)
    interest = torch.randint(INTERESTS, (CUSTOMERS + PRODUCTS,), generator=random)
    of_customer, of_product = interest.split([CUSTOMERS, PRODUCTS])
    data = HeteroData()
    for kind, of, columns in (("customer", of_customer, 6), ("product", of_product, 4)):
        centre = torch.randn(INTERESTS, columns, generator=random)
        data[kind].x = 5 + centre[of] + 2.5 * torch.randn(len(of), columns, generator=random)
    # seven of ten purchases are within one's interest
    likes = torch.where(of_customer[:, None] == of_product, 0.7 * INTERESTS, 0.3)
    bought = torch.multinomial(likes, BOUGHT, generator=random)
    buyer = torch.arange(CUSTOMERS).repeat_interleave(BOUGHT)
    data["customer", "buys", "product"].edge_index = torch.stack([buyer, bought.flatten()])
    return data, interest


def main() -> None:
    """Train on both kinds, then compare the nearest nodes with those by features alone."""
    shop, interest = make_shop()
    graph = as_graph(shop)  # one graph: a block of columns for each kind, and a column that names it
    print(f"{graph.num_nodes} nodes, {graph.num_features} columns: {', '.join(graph.feature_names)}")

    model = COSTA(random_state=0).fit(shop)
    place = {node: row for row, node in enumerate(model.node_ids_)}
    print("nearest to customer/0:", ", ".join(node for node, _ in model.most_similar("customer/0", k=4)))
    print("nearest to product/0:", ", ".join(node for node, _ in model.most_similar("product/0", k=4)))

    right = [
        interest[place[node]] == interest[place[other]]
        for node in model.node_ids_[:40]
        for other, _ in model.most_similar(node, k=5)
    ]
    unit = torch.nn.functional.normalize(graph.x - graph.x.mean(0))
    nearest = (unit[:40] @ unit.T).topk(6).indices[:, 1:]  # the first is the node itself
    alone = interest[nearest] == interest[:40, None]
    print(f"of the same interest: {torch.tensor(right).float().mean():.0%} of the nearest by the vectors")
    print(f"of the same interest: {alone.float().mean():.0%} of the nearest by the features alone")


if __name__ == "__main__":
    main()
