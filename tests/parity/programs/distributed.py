"""What the processes of test_distributed.py do, with PyTorch or with rushlight by its name."""

import json
import sys

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
)
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)


def seen(value):
    """A result as data: this process's piece, the whole's shape and where it lies."""
    if isinstance(value, DTensor):
        return [list(value.shape), [str(p) for p in value.placements], seen(value.to_local())]
    if isinstance(value, torch.Tensor):
        return value.detach().double().tolist()
    return value


class Net(nn.Module):
    """A block between two layers."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.out = nn.Linear(8, 12)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + self.down(torch.relu(self.up(self.norm(x))))
        return self.out(x)


PLAN = {
    "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "norm": SequenceParallel(),
    "up": ColwiseParallel(input_layouts=Shard(1)),
    "down": RowwiseParallel(output_layouts=Shard(1)),
    "out": ColwiseParallel(
        input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False
    ),
}


def net():
    torch.manual_seed(1)
    return Net()


def batch(step, rows=4):
    g = torch.Generator().manual_seed(step)
    tokens = torch.randint(0, 12, (rows, 7), generator=g)
    return tokens[:, :6], tokens[:, 1:]


def trained(model, rank, size, parallel=False, kind=torch.optim.AdamW):
    """Losses, gradients and parameters of three steps."""
    found = {}
    optimizer = kind(model.parameters(), lr=0.01)
    for step in range(3):
        x, y = (t.chunk(size)[rank] for t in batch(step))
        if parallel:
            with loss_parallel():
                loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
                loss.backward()
        else:
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            loss.backward()
        found[f"loss {step}"] = seen(loss.full_tensor() if isinstance(loss, DTensor) else loss)
        for name, p in model.named_parameters():
            found[f"{step} {name}.grad"] = seen(p.grad)
        optimizer.step()
        optimizer.zero_grad()
    found.update({name: seen(t) for name, t in model.state_dict().items()})
    return found


def sharded(rank, world):
    found = {}
    flat = dist.device_mesh.init_device_mesh("cpu", (world,))
    grid = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    for name, mesh, settings in (
        ("flat", flat, {}),
        ("no reshard", flat, {"reshard_after_forward": False}),
        ("hybrid", grid, {}),
        ("mixed", flat, {"mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)}),
    ):
        model = net()
        for part in (model.up, model.down):
            fully_shard(part, mesh=mesh, **settings)
        fully_shard(model, mesh=mesh, **settings)
        kind = torch.optim.SGD if name == "mixed" else torch.optim.AdamW
        found[name] = trained(model, rank, world, kind=kind)
        found[name]["class"] = type(model).__name__
    return found


def parallel(rank, world):
    found = {}
    grid = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = parallelize_module(net(), grid["tp"], PLAN)
    found["tp"] = trained(model, 0, 1, parallel=True)
    model = parallelize_module(net(), grid["tp"], PLAN)
    for part in (model.up, model.down):
        fully_shard(part, mesh=grid["dp"])
    fully_shard(model, mesh=grid["dp"])
    found["both"] = trained(model, rank // 2, 2, parallel=True)
    layer = parallelize_module(
        nn.Linear(6, 6),
        grid["tp"],
        PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate()),
    )
    kept = []
    layer.register_forward_pre_hook(lambda m, args: kept.append(seen(args[0])))
    layer.weight = nn.Parameter(distribute_tensor(torch.eye(6), grid["tp"]))
    layer.bias = nn.Parameter(distribute_tensor(torch.ones(6), grid["tp"]))
    found["prepared"] = [seen(layer(torch.full((2, 6), float(rank)))), kept]
    return found


def placed(rank, world):
    """Ops whose results lie where PyTorch's do."""
    mesh = dist.device_mesh.init_device_mesh("cpu", (world,))
    g = torch.Generator().manual_seed(0)
    a, b = torch.randn(8, 4, generator=g), torch.randn(4, 8, generator=g)
    rows, cols = distribute_tensor(a, mesh, [Shard(0)]), distribute_tensor(a, mesh, [Shard(1)])
    same = distribute_tensor(a, mesh, [Replicate()])
    other, turned = distribute_tensor(b, mesh, [Shard(0)]), distribute_tensor(b, mesh, [Shard(1)])
    whole = distribute_tensor(b, mesh, [Replicate()])
    part = DTensor.from_local(a * (rank + 1), mesh, [Partial()])
    found = {
        "add": rows + rows,
        "scale": part * 2,
        "relu": rows.relu(),
        "partial add": part + part,
        "matmul rows": rows @ whole,
        "matmul columns": same @ turned,
        "matmul inner": cols @ other,
        "matmul whole": same @ whole,
        "sum": rows.sum(),
        "sum kept": rows.sum(1),
        "sum cut": rows.sum(0),
        "mean": rows.mean(),
        "t": rows.t(),
        "view": rows.view(8, 2, 2),
        "flatten": rows.flatten(),
        "unsqueeze": cols.unsqueeze(0),
        "softmax": rows.softmax(-1),
        "zeros_like": torch.zeros_like(cols),
        "new_zeros": cols.new_zeros(8, 4),
        "new_empty": cols.new_empty(2, 2).zero_(),
        "redistribute": part.redistribute(placements=[Shard(0)]),
        "reduced": part.redistribute(placements=[Replicate()]),
        "layer_norm": nn.functional.layer_norm(rows, (4,)),
        "to": rows.double(),
        "equal": torch.equal(rows, rows),
        "full": cols.full_tensor(),
        "repr": repr(distribute_tensor(torch.ones(8), mesh, [Shard(0)])),
    }
    return {name: seen(value) for name, value in found.items()}


def main():
    rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
    found = {case.__name__: case(rank, world) for case in (sharded, parallel, placed)}
    with open(f"{folder}/{rank}.json", "w") as out:
        json.dump(found, out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
