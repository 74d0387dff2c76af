"""Finds the groups of a network of friends from four known people in each.

A graph convolution (Kipf and Welling 2017, arXiv:1609.02907) mixes what is known of a person with
what is known of friends: a product with a sparse matrix. Friends are drawn at random, more often
within a group; of each is known who it is and nothing else, so that friendships alone tell. It
writes demo/graph.png: people, placed by the slowest waves of the graph, coloured by what the
network says, ringed where it is wrong.
"""

import argparse
from pathlib import Path

import drawing
from PIL import Image, ImageDraw

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F


def friends(groups: Tensor, inside: float, outside: float) -> Tensor:
    """A symmetric matrix of 0 and 1 (N, N): two people are friends by chance."""
    same = groups[:, None] == groups
    chance = torch.where(same, inside, outside)
    upper = torch.bernoulli(chance).triu(1)
    return upper + upper.T


def normalised(graph: Tensor) -> Tensor:
    """The matrix that takes means over a person and friends, each weighed by how many they have."""
    with_self = graph + torch.eye(len(graph))
    scale = with_self.sum(1).rsqrt()
    return (scale[:, None] * with_self * scale).to_sparse()


class GraphNet(nn.Module):
    """Features (N, F) and the matrix of a graph to logits of groups (N, groups)."""

    def __init__(self, features: int, groups: int, width: int = 32) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, width), nn.Linear(width, groups)

    def forward(self, x: Tensor, graph: Tensor) -> Tensor:
        h = F.relu(torch.sparse.mm(graph, self.first(F.dropout(x, 0.3, self.training))))
        return torch.sparse.mm(graph, self.second(F.dropout(h, 0.3, self.training)))


def places(graph: Tensor) -> Tensor:
    """Where to draw people: the second and third eigenvector of the graph's Laplacian, (N, 2)."""
    degree = graph.sum(1).clamp(min=1)
    laplacian = torch.eye(len(graph)) - degree.rsqrt()[:, None] * graph * degree.rsqrt()
    slow = torch.linalg.eigh(laplacian).eigenvectors[:, 1:3]
    ranks = slow.argsort(0).argsort(0).float() / (len(graph) - 1)
    return 0.7 * ranks + 0.3 * (slow - slow.amin(0)) / (slow.amax(0) - slow.amin(0))


def draw(graph: Tensor, said: Tensor, right: Tensor, side: int = 560) -> Image.Image:
    image = Image.new("RGB", (side, side), (255, 255, 255))
    pen = ImageDraw.Draw(image)
    where = (places(graph) * (side - 40) + 20).tolist()
    for a, b in graph.triu().nonzero().tolist():
        pen.line((*where[a], *where[b]), fill=(225, 225, 225))
    for i, (x, y) in enumerate(where):
        group, ring = int(said[i]), (255, 255, 255) if bool(right[i]) else (0, 0, 0)
        pen.ellipse(
            (x - 6, y - 6, x + 6, y + 6), fill=drawing.COLOURS[group], outline=ring, width=2
        )
    return image


def main(people: int, groups: int, steps: int, out: Path) -> float:
    """Train on four people of each group; the share of the others that is right."""
    torch.manual_seed(0)
    group = torch.arange(people) % groups
    graph = friends(group, 24 / people, 2 / people)
    matrix = normalised(graph)
    features = torch.eye(people)
    known = torch.arange(4 * groups)
    model = GraphNet(people, groups)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-3)
    for step in range(1, steps + 1):
        loss = F.cross_entropy(model(features, matrix)[known], group[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(1, steps // 5) == 0:
            print(f"step {step:4d}: loss {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        said = model(features, matrix).argmax(1)
    right = said == group
    share = right[4 * groups :].float().mean().item()
    print(f"{100 * share:.1f} % of {people - 4 * groups} people are in the right group")
    drawing.save(draw(graph, said, right), out)
    return share


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("demo/graph.png"))
    arguments = parser.parse_args()
    main(arguments.people, arguments.groups, arguments.steps, arguments.out)
