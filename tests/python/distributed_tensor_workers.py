"""What the processes of the tests of distributed tensors do."""

import copy
import itertools
import pickle

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed import checkpoint
from rushlight.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    init_device_mesh,
)
from rushlight.distributed.tensor import empty as dempty
from rushlight.distributed.tensor import full as dfull
from rushlight.distributed.tensor import ones as dones
from rushlight.distributed.tensor import rand as drand
from rushlight.distributed.tensor import randn as drandn
from rushlight.distributed.tensor import zeros as dzeros
from rushlight.distributed.tensor._rules import REGISTERED
from rushlight.distributed.tensor._utils import compute_local_shape_and_global_offset
from rushlight.distributed.tensor.debug import CommDebugMode
from rushlight.distributed.tensor.experimental import local_map, register_sharding
from rushlight.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInputOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

from .distributed_workers import device_type, expect

F = nn.functional


def mesh_of(dims=1):
    """All processes in a row, or in two rows."""
    size = dist.get_world_size()
    return init_device_mesh(device_type(), (size,) if dims == 1 else (2, size // 2))


def placed(mesh, ndim):
    """All placements of a whole tensor."""
    one = [Replicate(), *map(Shard, range(ndim))]
    return itertools.product(one, repeat=mesh.ndim)


# x is (6, 5), with a row too few for four processes; y is like it, w is (5, 6).
CALLS = {
    "numbers": lambda x, y, w: (2 - x) * 3 / 2 + x**2,
    "two": lambda x, y, w: torch.atan2(x, y) + x * y - y,
    "broadcast": lambda x, y, w: x + y[0] + y[:, :1],
    "sum": lambda x, y, w: x.sum() * 2,
    "sum of a dim": lambda x, y, w: x.sum(0) + x.sum(1).sum(),
    "mean": lambda x, y, w: x.mean() + x.mean(0) + x.mean(1, keepdim=True),
    "extremes": lambda x, y, w: x.amax(0) + x.amin((0, 1)) + x.max() - x.min(),
    "position": lambda x, y, w: x.max(1)[0] + x.argmax(1),
    "spread": lambda x, y, w: x.std() + x.var(0),
    "norms": lambda x, y, w: x.norm() + x.norm(p=1, dim=0) + torch.linalg.vector_norm(x, torch.inf),
    "product": lambda x, y, w: x @ w,
    "products": lambda x, y, w: (x @ w @ x).relu() @ w,
    "transposed": lambda x, y, w: x.t() @ y,
    "added": lambda x, y, w: torch.addmm(x[:, :1], x, w, beta=0.5),
    "batches": lambda x, y, w: torch.bmm(x.expand(2, 6, 5), w.expand(2, 5, 6)),
    "matmul": lambda x, y, w: torch.matmul(x.expand(3, 2, 6, 5), w.expand(2, 5, 6)),
    "dot": lambda x, y, w: torch.mv(x, y[0]) + x[:, 0].dot(y[:, 0]),
    "einsum": lambda x, y, w: torch.einsum("ij,jk->ki", x, w),
    "linear": lambda x, y, w: F.linear(x, y, w[0]),
    "linear of batches": lambda x, y, w: F.linear(x.expand(2, 6, 5), y, w[0]),
    "softmax": lambda x, y, w: x.softmax(0) + x.log_softmax(1),
    "layer norm": lambda x, y, w: F.layer_norm(x, (5,), y[0], y[1]),
    "views": lambda x, y, w: x.reshape(30).view(3, 10).t().unsqueeze(1).squeeze(1),
    "cut": lambda x, y, w: x.view(2, 3, 5).flatten(0, 1),
    "permuted": lambda x, y, w: x.view(3, 2, 5).permute(2, 0, 1).contiguous(),
    "slices": lambda x, y, w: x[1:4, 2:] * y[0, 0] + x.narrow(1, 1, 3)[:3],
    "picked": lambda x, y, w: (
        x[torch.tensor([0, 2])].sum() if type(x) is torch.Tensor else _picked(x)
    ),
    "expanded": lambda x, y, w: x.unsqueeze(0).expand(3, 6, 5),
    "joined": lambda x, y, w: torch.cat([x, y], 1) + torch.stack([x, y], 2).sum(),
    "parts": lambda x, y, w: x.split(2, 0)[1] + x.chunk(3)[2] + x.unbind(1)[0][:2, None],
    "sorted": lambda x, y, w: x.sort(0)[0] + x.topk(5, 1)[0],
    "sums": lambda x, y, w: x.cumsum(0) + x.cumsum(1),
    "where": lambda x, y, w: torch.where(x > y, x, -y),
    "kept": lambda x, y, w: x.clone().detach().contiguous().double().float(),
    "like": lambda x, y, w: torch.ones_like(x) + x.new_zeros(5) + torch.full_like(x, 2),
    "svd": lambda x, y, w: torch.linalg.svdvals(x),
    "gelu": lambda x, y, w: F.gelu(x) + F.silu(y).sigmoid(),
    "loss": lambda x, y, w: F.mse_loss(x, y) + F.cross_entropy(x, y.softmax(1)),
    "attention": lambda x, y, w: F.scaled_dot_product_attention(
        x.expand(2, 4, 6, 5), y.expand(2, 4, 6, 5), x.expand(2, 4, 6, 5)
    ),
    "diagonal": lambda x, y, w: x.diagonal() + (x @ w).trace(),
    "masked": lambda x, y, w: x.masked_fill(x > 0, 1.5).tril(),
}


def _picked(x):
    index = distribute_tensor(
        torch.tensor([0, 2]), x.device_mesh, [Replicate()] * x.device_mesh.ndim
    )
    return x[index].sum()


def _inputs():
    g = torch.Generator().manual_seed(3)
    return [torch.randn(s, generator=g) for s in ((6, 5), (6, 5), (5, 6))]


def ops(rank, dims):
    """Each op under all placements gives the value and the gradients of one process."""
    mesh = mesh_of(dims)
    for name, function in CALLS.items():
        whole = [t.requires_grad_() for t in _inputs()]
        want = function(*whole)
        back = want.requires_grad and name != "svd"
        if back:
            (want * want).sum().backward()
        for ways in itertools.islice(_ways(mesh), None if dims == 1 else 12):
            spread = [
                distribute_tensor(t, mesh, p).requires_grad_()
                for t, p in zip(_inputs(), ways, strict=True)
            ]
            got = function(*spread)
            assert isinstance(got, DTensor), name
            assert (got.shape, got.dtype) == (want.shape, want.dtype), name
            torch.testing.assert_close(
                got.full_tensor(),
                want.detach(),
                msg=lambda m: f"{name} {ways}: {m}",  # noqa: B023
            )
            if not back:
                continue
            (got * got).sum().backward()
            for a, b in zip(spread, whole, strict=True):
                assert (a.grad is None) == (b.grad is None), name
                if b.grad is not None:
                    torch.testing.assert_close(
                        a.grad.full_tensor(),
                        b.grad,
                        msg=lambda m: f"{name} {ways}: {m}",  # noqa: B023
                    )


def _ways(mesh):
    """Placements of three matrices: all that are alike, and each with the others' ones."""
    found = list(placed(mesh, 2))
    for i, p in enumerate(found):
        yield p, p, p
        yield p, found[i - 1], found[i - 2]
        yield p, p, found[i - 1]


def moves(rank, dims):
    """From every placement to every other, and what is yet to be reduced; gradients go back."""
    mesh = mesh_of(dims)
    whole = torch.arange(7 * 5 * 3.0).view(7, 5, 3)
    ways = list(placed(mesh, 3))
    for a, b in itertools.product(ways, ways if dims == 1 else ways[::3]):
        spread = distribute_tensor(whole, mesh, a)
        shape, offset = compute_local_shape_and_global_offset(whole.shape, mesh, a)
        here = whole[tuple(slice(o, o + n) for o, n in zip(offset, shape, strict=True))]
        assert torch.equal(spread.to_local(), here)
        moved = spread.redistribute(placements=b)
        assert moved.placements == tuple(b)
        assert torch.equal(moved.full_tensor(), whole)
    for op, b in itertools.product(("sum", "avg", "max", "min", "product"), ways):
        parts = [whole * (r + 1) for r in range(dist.get_world_size())]
        spread = DTensor.from_local(parts[rank], mesh, [Partial(op)] * mesh.ndim)
        stacked = torch.stack(parts)
        reduce = {"avg": "mean", "max": "amax", "min": "amin", "product": "prod"}.get(op, op)
        torch.testing.assert_close(
            spread.redistribute(placements=b).full_tensor(), getattr(stacked, reduce)(0)
        )
    leaf = torch.ones(6, 4, requires_grad=True)
    spread = DTensor.from_local(leaf, mesh, [Shard(0)] * mesh.ndim)
    out = spread.redistribute(placements=[Replicate()] * mesh.ndim).to_local()
    (out * (rank + 1)).sum().backward()
    assert leaf.grad.shape == leaf.shape
    with CommDebugMode() as comm:
        spread.detach() * 2
    assert comm.get_total_counts() == 0


def thin(rank):
    """A dim of one element is cut as any other, and views of it stay where they are."""
    mesh = mesh_of()
    whole = torch.arange(6.0).reshape(1, 6)
    t = distribute_tensor(whole, mesh, [Shard(0)])
    with CommDebugMode() as moved:
        views = {
            "detach": (t.detach(), 0),
            "t": (t.t(), 1),
            "transpose": (t.transpose(0, 1), 1),
            "unsqueeze": (t.unsqueeze(0), 1),
            "permute": (t.permute(1, 0), 1),
        }
    assert moved.get_total_counts() == 0, moved.get_comm_counts()
    for name, (view, dim) in views.items():
        assert view.placements == (Shard(dim),), (name, view.placements)
        assert torch.equal(view.full_tensor().reshape(-1), whole.reshape(-1)), name
    t.detach().mul_(2)
    assert torch.equal(t.full_tensor(), whole * 2)
    assert torch.equal(t.squeeze(0).full_tensor(), whole[0] * 2)
    assert torch.equal(t.view(2, 3).full_tensor(), whole.view(2, 3) * 2)


def made(rank):
    """Factories, questions, copies, pickles, and what is refused."""
    mesh = mesh_of()
    size = mesh.size()
    for factory, value in ((dones, 1), (dzeros, 0)):
        t = factory(5, 3, device_mesh=mesh, placements=[Shard(0)], dtype=torch.float64)
        assert t.full_tensor().tolist() == [[value] * 3] * 5
        assert t.dtype == torch.float64
    assert dfull((3,), 2.5, device_mesh=mesh).full_tensor().tolist() == [2.5] * 3
    assert dempty((3, 2), device_mesh=mesh, requires_grad=True).requires_grad
    torch.manual_seed(rank)  # draws agree where nobody seeds alike
    a = drand(4, 3, device_mesh=mesh, placements=[Replicate()]).to_local()
    both = [torch.empty_like(a) for _ in range(size)]
    dist.all_gather(both, a)
    assert all(torch.equal(a, b) for b in both)
    spread = drandn(4 * size, device_mesh=mesh, placements=[Shard(0)])
    assert spread.full_tensor().unique().numel() == 4 * size
    dropped = F.dropout(dones(1000 * size, device_mesh=mesh, placements=[Shard(0)]), 0.5)
    pieces = dropped.full_tensor().view(size, 1000)
    assert not torch.equal(pieces[0], pieces[1])
    assert abs(float(pieces.mean()) - 1) < 0.2
    same = F.dropout(dones(100, device_mesh=mesh), 0.5).to_local()
    dist.all_gather(both := [torch.empty_like(same) for _ in range(size)], same)
    assert torch.equal(both[0], both[1])

    t = distribute_tensor(torch.arange(10.0), mesh, [Shard(0)])
    copied = copy.deepcopy(nn.Parameter(t))
    assert isinstance(copied, nn.Parameter)
    assert isinstance(copied, DTensor)
    assert torch.equal(copied.full_tensor(), t.full_tensor())
    assert repr(t).startswith("DTensor(local_tensor=tensor(")
    assert "Shard(dim=0)" in repr(t)
    flat, about = t.__tensor_flatten__()
    again = DTensor.__tensor_unflatten__(
        {name: getattr(t, name) for name in flat}, about, t.shape, t.stride()
    )
    assert torch.equal(again.full_tensor(), t.full_tensor())
    expect("would be lost", RuntimeError, t.__setitem__, 2, 7)
    rows = distribute_tensor(torch.zeros(4, 3), mesh, [Shard(0)])
    rows[:, 1] = 5
    rows.view(2, 6)[:, 0] = 3
    rows.t()[2].fill_(1)
    assert rows.full_tensor().tolist() == [[3, 5, 1], [0, 5, 1], [3, 5, 1], [0, 5, 1]]
    t.mul_(2).add_(1)
    assert t.full_tensor().tolist() == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]
    assert t.placements == (Shard(0),)
    assert t.sum().item() == 100
    assert torch.equal(t, t.clone())

    whole = torch.ones(4, 4)
    expect("got mixed torch.Tensor and DTensor", RuntimeError, lambda: t + torch.ones(10))
    expect("only accepts torch.Tensor", RuntimeError, DTensor.from_local, t, mesh)
    expect("must have the same length", ValueError, distribute_tensor, whole, mesh, [Shard(0)] * 2)
    expect("out of range", IndexError, distribute_tensor, whole, mesh, [Shard(2)])
    expect("leaf", RuntimeError, distribute_tensor, whole.requires_grad_() * 2, mesh)
    expect("Can not redistribute", RuntimeError, t.redistribute, placements=[Partial()])
    expect("placements is needed", RuntimeError, t.redistribute)
    expect("No device mesh", RuntimeError, distribute_tensor, torch.ones(2))
    expect(
        "run_check" if False else "other shapes",
        RuntimeError,
        lambda: DTensor.from_local(torch.ones(3 + rank), mesh, [Replicate()], run_check=True),
    )
    with mesh:
        assert distribute_tensor(torch.ones(2)).placements == (Replicate(),)
    assert pickle.loads(pickle.dumps(Shard(1))) == Shard(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 12), nn.Linear(12, 8)
        self.register_buffer("scale", torch.tensor([0.5]))

    def forward(self, x):
        x = self.rows(x)
        return self.down(F.gelu(self.up(self.norm(x)))) * self.scale


def trained(rank):
    """Modules in pieces train as on one process, with each optimiser."""
    mesh = mesh_of()
    data = torch.arange(12).view(4, 3) % 11
    cuts = {
        "rows.weight": Shard(0),
        "up.weight": Shard(0),
        "up.bias": Shard(0),
        "down.weight": Shard(1),
    }

    def partition(name, module, mesh):
        for key, p in list(module._parameters.items()):
            way = cuts.get(f"{name}.{key}")
            if way is not None and p is not None:
                module.register_parameter(
                    key, nn.Parameter(distribute_tensor(p.detach(), mesh, [way]))
                )

    for make in (
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.AdamW(p, 0.01),
        lambda p: torch.optim.Adam(p, 0.01, foreach=True),
        lambda p: torch.optim.RMSprop(p, 0.01),
    ):
        torch.manual_seed(1)
        alone = Net()
        spread = distribute_module(
            copy.deepcopy(alone),
            mesh,
            partition,
            input_fn=lambda module, inputs, mesh: tuple(distribute_tensor(i, mesh) for i in inputs),
            output_fn=lambda module, outputs, mesh: outputs.redistribute(
                placements=[Replicate()]
            ).to_local(),
        )
        assert isinstance(spread.scale, DTensor)
        one, two = make(alone.parameters()), make(spread.parameters())
        for _ in range(4):
            for model, optimizer in ((alone, one), (spread, two)):
                loss = model(data).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
        for (name, a), b in zip(alone.named_parameters(), spread.parameters(), strict=True):
            assert b.placements == (cuts.get(name, Replicate()),)
            torch.testing.assert_close(b.full_tensor(), a.detach(), msg=lambda m: f"{name}: {m}")  # noqa: B023


def saved(rank, folder):
    """A checkpoint of one placement loads into another, and into a whole tensor."""
    mesh = mesh_of()
    whole = torch.arange(7 * 4.0).view(7, 4)
    state = {"w": distribute_tensor(whole, mesh, [Shard(0)]), "n": 3}
    checkpoint.save(state, checkpoint_id=f"{folder}/checkpoint")
    for way in (Shard(0), Shard(1), Replicate()):
        into = {"w": distribute_tensor(torch.zeros(7, 4), mesh, [way]), "n": 0}
        checkpoint.load(into, checkpoint_id=f"{folder}/checkpoint")
        assert torch.equal(into["w"].full_tensor(), whole)
        assert into["n"] == 3
    into = {"w": torch.zeros(7, 4)}
    checkpoint.load(into, checkpoint_id=f"{folder}/checkpoint")
    assert torch.equal(into["w"], whole)


class Layer(nn.Module):
    """Attention and two linear layers, as decoders have them."""

    def __init__(self, width=8, heads=4):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.o = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        y = self.first(x)
        q, k, v = (f(y).unflatten(-1, (-1, 2)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(13, 8)
        self.layers = nn.ModuleList([Layer() for _ in range(2)])
        self.norm = nn.LayerNorm(8)
        self.out = nn.Linear(8, 13, bias=False)

    def forward(self, x):
        x = self.rows(x)
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))


def parallel(rank, sequence):
    """A decoder by columns and rows, with the sequence cut between or whole, and a loss on pieces."""
    mesh = mesh_of()
    torch.manual_seed(0)
    alone = Decoder()
    spread = copy.deepcopy(alone)
    if sequence:
        style = {
            "rows": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "out": ColwiseParallel(
                input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False
            ),
            "layers.*.first": SequenceParallel(),
            "layers.*.second": SequenceParallel(),
        }
        inner = {"input_layouts": Shard(1)}
        back = {"output_layouts": Shard(1)}
    else:
        style = {
            "rows": ColwiseParallel(output_layouts=Replicate()),
            "out": ColwiseParallel(use_local_output=False),
        }
        inner, back = {}, {}
    for name in ("q", "k", "v", "up"):
        style[f"layers.*.{name}"] = ColwiseParallel(**inner)
    for name in ("o", "down"):
        style[f"layers.*.{name}"] = RowwiseParallel(**back)
    assert parallelize_module(spread, mesh, style) is spread
    assert spread.layers[1].up.weight.placements == (Shard(0),)
    one = torch.optim.AdamW(alone.parameters(), 0.01)
    two = torch.optim.AdamW(spread.parameters(), 0.01)
    data = (torch.arange(2 * 6).view(2, 6) * 5) % 13
    target = data.roll(-1, 1).reshape(-1)
    target[3] = -100
    for _ in range(3):
        want = F.cross_entropy(alone(data).flatten(0, 1), target)
        want.backward()
        with loss_parallel():
            logits = spread(data).flatten(0, 1)
            assert logits.placements == (Shard(1),)
            with CommDebugMode() as comm:
                got = F.cross_entropy(logits, target)
            assert set(comm.get_comm_counts()) == {"all_reduce"}
            got.backward()
        torch.testing.assert_close(got.full_tensor(), want.detach())
        for (name, a), b in zip(alone.named_parameters(), spread.parameters(), strict=True):
            # Layers whose input is plain and whole have their parameters' gradients on every process.
            whole = b.grad.full_tensor() if isinstance(b, DTensor) else b.grad
            torch.testing.assert_close(whole, a.grad, msg=lambda m: f"{name}: {m}")  # noqa: B023
        for optimizer in (one, two):
            optimizer.step()
            optimizer.zero_grad()
    expect(
        "only support nn.Linear",
        NotImplementedError,
        parallelize_module,
        nn.Tanh(),
        mesh,
        ColwiseParallel(),
    )


def losses(rank):
    """Cross entropy on logits that are cut by classes: every reduction, weights, images."""
    mesh = mesh_of()
    for shape, weighted, reduction in itertools.product(
        ((5, 7), (2, 5, 3, 2), (7,)), (False, True), ("none", "sum", "mean")
    ):
        torch.manual_seed(2)
        x = torch.randn(shape)
        classes = shape[1] if len(shape) > 1 else shape[0]
        target = torch.randint(0, classes, () if len(shape) == 1 else (shape[0], *shape[2:]))
        if target.ndim:
            target.view(-1)[0] = -100
        weight = torch.rand(classes) + 0.5 if weighted else None
        leaf = x.clone().requires_grad_()
        want = F.cross_entropy(leaf, target, weight, reduction=reduction)
        want.sum().backward()
        spread = distribute_tensor(x, mesh, [Shard(1 if len(shape) > 1 else 0)]).requires_grad_()
        with loss_parallel():
            got = F.cross_entropy(spread, target, weight, reduction=reduction)
            got.sum().backward()
        torch.testing.assert_close(got.full_tensor(), want.detach())
        assert spread.grad.placements == spread.placements
        torch.testing.assert_close(spread.grad.full_tensor(), leaf.grad)
    with loss_parallel():
        x = distribute_tensor(torch.zeros(2, 4), mesh, [Shard(1)])
        expect(
            "smoothed",
            RuntimeError,
            F.cross_entropy,
            x,
            torch.zeros(2, dtype=torch.int64),
            label_smoothing=0.1,
        )


def tried(rank):
    """Functions of pieces, rules of one's own, inputs and outputs of modules."""
    mesh = mesh_of()
    x = distribute_tensor(torch.arange(12.0).view(4, 3), mesh, [Shard(0)]).requires_grad_()

    @local_map(out_placements=[Partial()], in_placements=([Shard(0)], None))
    def total(piece, factor):
        assert type(piece) is torch.Tensor
        return (piece * factor).sum()

    y = total(x, 2)
    assert y.placements == (Partial(),)
    y.backward()
    assert x.grad.full_tensor().unique().tolist() == [2]
    expect("redistribute_inputs", ValueError, total, x.redistribute(placements=[Replicate()]), 2)

    @register_sharding(torch.ops.aten.softmax.int)
    def softmax(t, dim, *rest):
        return [([Replicate()], [Replicate(), *(None,) * 2])]

    assert x.detach().softmax(1).placements == (Replicate(),)
    REGISTERED.clear()
    assert x.detach().softmax(1).placements == (Shard(0),)

    class Two(nn.Module):
        def forward(self, a, b, *, c):
            assert (a.placements, c.placements) == ((Replicate(),), (Shard(0),))
            assert type(b) is torch.Tensor
            return a * 2, c

    plan = PrepareModuleInputOutput(
        input_layouts=(Shard(0), None),
        desired_input_layouts=(Replicate(), None),
        input_kwarg_layouts={"c": Replicate()},
        desired_input_kwarg_layouts={"c": Shard(0)},
        output_layouts=(Replicate(), Shard(0)),
        desired_output_layouts=(Shard(0), Replicate()),
    )
    module = parallelize_module(Two(), mesh, plan)
    ones = torch.ones(2, 3)
    a, c = module(ones, ones, c=torch.ones(2 * mesh.size()))
    assert a.tolist() == (ones * 2).tolist()
    assert c.shape == (2 * mesh.size(),)
