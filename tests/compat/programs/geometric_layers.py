"""Graph networks: layers, batches, loaders, pooling."""
# packages: torch_geometric
# cases: GCNConv GATConv SAGEConv GINConv ChebConv TransformerConv GATv2Conv GraphConv ARMAConv SGConv TAGConv PNAConv loader hetero norms

import sys

import torch
import torch_geometric as pyg
from shown import show, train
from torch import nn
from torch_geometric import nn as gnn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.utils import (
    add_self_loops,
    degree,
    dropout_edge,
    k_hop_subgraph,
    softmax,
    to_dense_adj,
    to_undirected,
)

pyg.seed_everything(0)
edges = to_undirected(torch.randint(20, (2, 40)))
data = Data(x=torch.randn(20, 8), edge_index=edges, y=torch.randint(3, (20,)))
name = sys.argv[1]
if name.endswith("Conv"):
    more = {
        "ChebConv": dict(K=2),
        "PNAConv": dict(
            aggregators=["mean", "max", "std"],
            scalers=["identity", "amplification"],
            deg=torch.bincount(degree(edges[1]).long()),
        ),
    }.get(name, {})
    make = getattr(gnn, name)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            if name == "GINConv":
                self.a, self.b = (
                    make(nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.Linear(o, o)))
                    for i, o in ((8, 16), (16, 3))
                )
            else:
                self.a, self.b = make(8, 16, **more), make(16, 3, **more)

        def forward(self, d):
            return self.b(self.a(d.x, d.edge_index).relu(), d.edge_index)

    net = Net()
    train(net, lambda: nn.functional.cross_entropy(net(data), data.y), lr=1e-2)
    show("out", net(data))
elif name == "loader":
    graphs = [
        Data(x=torch.randn(n, 8), edge_index=torch.randint(n, (2, 2 * n)), y=torch.tensor([n % 2]))
        for n in range(3, 11)
    ]
    for batch in DataLoader(graphs, batch_size=4, shuffle=True):
        show("mean", gnn.global_mean_pool(batch.x, batch.batch))
        show("max", gnn.global_max_pool(batch.x, batch.batch))
        show("add", gnn.global_add_pool(batch.x, batch.batch))
    print(batch, batch.num_graphs, len(Batch.from_data_list(graphs).to_data_list()))
    show("dense", to_dense_adj(edges))
    show("softmax", softmax(torch.randn(edges.size(1)), edges[1]))
    show("degree", degree(edges[0], 20))
    print(add_self_loops(edges)[0].shape, k_hop_subgraph(0, 1, edges)[0].tolist())
    torch.manual_seed(0)
    show("dropped", dropout_edge(edges, 0.5)[0])
elif name == "hetero":
    h = HeteroData()
    h["a"].x, h["b"].x = torch.randn(6, 8), torch.randn(4, 8)
    h["a", "to", "b"].edge_index = torch.stack([torch.randint(6, (9,)), torch.randint(4, (9,))])
    h["b", "to", "a"].edge_index = h["a", "to", "b"].edge_index.flip(0)
    conv = gnn.HeteroConv(
        {
            ("a", "to", "b"): gnn.SAGEConv((8, 8), 5),
            ("b", "to", "a"): gnn.GATConv((8, 8), 5, add_self_loops=False),
        }
    )
    for key, value in conv(h.x_dict, h.edge_index_dict).items():
        show(key, value)
    model = gnn.to_hetero(
        gnn.Sequential(
            "x, edge_index", [(gnn.SAGEConv((-1, -1), 8), "x, edge_index -> x"), nn.ReLU()]
        ),
        h.metadata(),
    )
    for key, value in model(h.x_dict, h.edge_index_dict).items():
        show(key, value)
else:
    batch = torch.arange(20) // 5
    for make in (
        gnn.BatchNorm,
        gnn.GraphNorm,
        gnn.InstanceNorm,
        gnn.LayerNorm,
        gnn.PairNorm,
        gnn.DiffGroupNorm if False else gnn.MeanSubtractionNorm,
    ):
        layer = make() if make in (gnn.PairNorm, gnn.MeanSubtractionNorm) else make(8)
        show(make.__name__, layer(data.x) if make is gnn.BatchNorm else layer(data.x, batch))
    show("aggr", gnn.aggr.MultiAggregation(["mean", "std", "median"])(data.x, batch))
    show("topk", gnn.TopKPooling(8)(data.x, edges, batch=batch)[0])
    show("jk", gnn.JumpingKnowledge("cat")([data.x, data.x]))
    show("set2set", gnn.aggr.Set2Set(8, 2)(data.x, batch))
