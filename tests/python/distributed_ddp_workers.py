"""What the processes of the tests of `DistributedDataParallel` do."""

import copy
import pickle
import warnings
from datetime import timedelta

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed._composable import replicate
from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from rushlight.nn.parallel import DistributedDataParallel as DDP
from rushlight.nn.parallel.distributed import _MixedPrecision

from .distributed_workers import device_type, expect


def same_everywhere(tensors):
    """Every process has the same bits."""
    flat = torch.cat([t.detach().reshape(-1) for t in tensors])
    parts = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, flat)
    return all(torch.equal(parts[0], part) for part in parts)


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 40), nn.Tanh(), nn.Linear(40, 30), nn.Tanh(), nn.Linear(30, 3)
    )


def samples(step):
    g = torch.Generator().manual_seed(step)
    return torch.randn(12, 5, generator=g), torch.randn(12, 3, generator=g)


def train(model, rank, size, steps=4, accumulate=False):
    """Steps of SGD, each process on its part; the parameters."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        x, y = (t.chunk(size)[rank] for t in samples(step))
        if accumulate:
            with model.no_sync():
                nn.functional.mse_loss(model(x), y).backward()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
    return list(model.parameters())


def equals_one_process(rank):
    """Several processes compute what one computes on all samples."""
    size = dist.get_world_size()
    for accumulate in (False, True):
        single = network()
        if accumulate:
            optimizer = torch.optim.SGD(single.parameters(), lr=0.1, momentum=0.9)
            for step in range(4):
                x, y = samples(step)
                (2 * nn.functional.mse_loss(single(x), y)).backward()
                optimizer.step()
                optimizer.zero_grad()
            want = list(single.parameters())
        else:
            want = train(single, 0, 1)
        for settings in (
            {},
            {"gradient_as_bucket_view": True},
            {"find_unused_parameters": True},
            {"static_graph": True},
            {"bucket_cap_mb": 0.001},
            {"bucket_cap_mb": 0.001, "gradient_as_bucket_view": True, "static_graph": True},
        ):
            net = network()
            if rank == 1:
                net[0].weight.data.zero_()  # rank 0's parameters count
            model = DDP(net, **settings)
            got = train(model, rank, size, accumulate=accumulate)
            assert same_everywhere(got), settings
            for a, b in zip(got, want, strict=True):
                torch.testing.assert_close(a, b, msg=lambda m, s=settings: f"{s}: {m}")
    assert set(model.state_dict()) == {f"module.{name}" for name in net.state_dict()}
    again = copy.deepcopy(model)
    assert same_everywhere(train(again, rank, size))


class Branches(nn.Module):
    """Uses its layers as it is told."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, use):
        y = self.a(x)
        if use & 1:
            y = self.b(y)
        return {"out": self.c(y) if use & 2 else y}


def unused(rank):
    """Parameters without a gradient: here, there, everywhere."""
    model = DDP(Branches(), find_unused_parameters=True)
    for use in (rank & 1, 3, 0, 2 * (rank & 1)):
        model.zero_grad()
        model(torch.ones(1, 2), use)["out"].sum().backward()
        grads = [p.grad for p in (model.module.b.weight, model.module.c.weight)]
        had = [None] * dist.get_world_size()
        dist.all_gather_object(had, [g is not None for g in grads])
        assert had[0] == had[-1], (use, had)
    model = DDP(Branches())
    model(torch.ones(1, 2), 0)["out"].sum().backward()
    expect("find_unused_parameters=True", RuntimeError, model, torch.ones(1, 2), 0)
    frozen = Branches()
    for p in frozen.parameters():
        p.requires_grad_(False)
    expect("not needed", RuntimeError, DDP, frozen)
    expect("same model across all ranks", RuntimeError, DDP, nn.Linear(2, 2, bias=rank == 0))
    expect("appears not to match", RuntimeError, DDP, nn.Linear(2, 2 + rank))


def thin(rank):
    """PowerSGD: exact where the rank is enough, equal everywhere, and it learns where it is not."""
    size = dist.get_world_size()

    def train(hook, steps, rows, **settings):
        """Losses of all samples, gradients of the last step, and the hook's state."""
        model = DDP(network(), bucket_cap_mb=0.002)
        state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, **settings)
        if hook is not None:
            model.register_comm_hook(state, hook)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        losses = []
        for _ in range(steps):
            x, y = samples(0)
            losses.append(nn.functional.mse_loss(model.module(x), y).item())
            model.zero_grad()
            mine = (t.chunk(size)[rank][:rows] for t in (x, y))
            nn.functional.mse_loss(model(next(mine)), next(mine)).backward()
            optimizer.step()
        grads = [p.grad for p in model.parameters()]
        assert same_everywhere([*model.parameters(), *grads])
        return losses, grads, state

    # One sample a process: gradients of rank 1, their mean has rank 2.
    for options in (
        {},
        {"orthogonalization_epsilon": 1e-12},
        {"batch_tensors_with_same_shape": True},
    ):
        _, got, state = train(
            powerSGD_hook.powerSGD_hook, 5, 1, matrix_approximation_rank=2, **options
        )
        for one, want in zip(got, train(None, 5, 1)[1], strict=True):
            torch.testing.assert_close(one, want, rtol=2e-2, atol=1e-3)
        rate, before, after = state.compression_stats()
        assert state.iter == 5 and before > 2 * after > 0 and rate == before / after
    for hook in (powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook):
        losses, _, state = train(hook, 60, None)
        assert losses[-1] < 0.9 * losses[0], (losses[0], losses[-1])
        assert len(state.error_dict) > 1, state.error_dict.keys()
        without = train(hook, 6, None, use_error_feedback=False, warm_start=False)[2]
        assert not without.error_dict
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = pickle.loads(pickle.dumps(state))
    assert again.iter == state.iter and again.process_group is None
    assert torch.equal(again.q_memory_dict[0], state.q_memory_dict[0])
    expect("start_powerSGD_iter", ValueError, powerSGD_hook.PowerSGDState, None, 1, 1)


def uneven(rank):
    """Processes with different numbers of inputs."""
    for initial in (True, False):
        model = DDP(nn.Linear(1, 1, bias=False))
        with torch.no_grad():
            model.module.weight.fill_(1.0)
        grads = []
        with model.join(divide_by_initial_world_size=initial):
            for _ in range(2 + rank):
                model.zero_grad()
                model(torch.ones(1, 1)).sum().backward()
                grads.append(model.module.weight.grad.item())
        size = dist.get_world_size()
        if rank == size - 1:
            active = [size, size] + list(range(size - 1, 0, -1))
            want = [a / size if initial else 1.0 for a in active]
            assert all(abs(a - b) < 1e-6 for a, b in zip(grads, want, strict=True)), grads
        assert same_everywhere([model.module.weight])


def normalised(rank):
    """SyncBatchNorm over processes is BatchNorm over all samples."""
    size = dist.get_world_size()
    g = torch.Generator().manual_seed(0)
    every = torch.randn(8, 3, 4, 4, generator=g) * 3 + 5
    weights = torch.randn(8, 3, 4, 4, generator=g)
    for affine, momentum in ((True, 0.1), (False, None)):
        one = nn.BatchNorm2d(3, affine=affine, momentum=momentum)
        sync = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(one))
        assert isinstance(sync, nn.SyncBatchNorm)
        for _ in range(2):
            whole = every.clone().requires_grad_()
            want = one(whole)
            (want * weights).sum().backward()
            parts = [3, 5] if size == 2 else [8 // size] * size
            x = every.split(parts)[rank].clone().requires_grad_()
            got = sync(x)
            (got * weights.split(parts)[rank]).sum().backward()
            torch.testing.assert_close(got, want.split(parts)[rank], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(x.grad, whole.grad.split(parts)[rank], rtol=1e-3, atol=1e-5)
        for name, value in one.state_dict().items():
            torch.testing.assert_close(sync.state_dict()[name], value)
        if affine:
            for a, b in zip(sync.parameters(), one.parameters(), strict=True):
                total = a.grad.clone()
                dist.all_reduce(total)
                torch.testing.assert_close(total, b.grad, rtol=1e-4, atol=1e-4)
        sync.train(False)
        one.train(False)
        torch.testing.assert_close(sync(every), one(every))


def differentiable(rank):
    """Gradients pass through collectives; functional ones write into nothing."""
    from rushlight.distributed import _functional_collectives as functional
    from rushlight.distributed import nn as dnn

    size = dist.get_world_size()

    def leaf():
        return torch.full((2,), rank + 1.0, requires_grad=True)

    x = leaf()
    out = dnn.all_reduce(x)
    (out * (rank + 1)).sum().backward()
    total = size * (size + 1) / 2
    assert out.tolist() == [total] * 2 and x.grad.tolist() == [total] * 2
    x = leaf()
    out = dnn.all_gather(x)
    assert [t[0].item() for t in out] == [r + 1.0 for r in range(size)]
    sum((i + 1) * t.sum() for i, t in enumerate(out)).backward()
    assert x.grad.tolist() == [size * (rank + 1.0)] * 2
    x = leaf()
    out = dnn.broadcast(x, 1)
    assert out.tolist() == [2.0] * 2
    out.sum().backward()
    assert x.grad.tolist() == [float(size) if rank == 1 else 0.0] * 2
    x = leaf()
    out = dnn.reduce_scatter(torch.empty(2), [x * i for i in range(size)])
    assert out.tolist() == [total * rank] * 2
    out.sum().backward()
    assert x.grad.tolist() == [sum(range(size))] * 2
    x = leaf()
    out = dnn.functional.all_to_all([torch.empty(2)] * size, [x * (i + 1) for i in range(size)])
    sum((i + 1) * t.sum() for i, t in enumerate(out)).backward()
    assert x.grad.tolist() == [(rank + 1) * total] * 2
    x = leaf()
    out = dnn.gather(x, 0)
    if rank == 0:
        assert [t[0].item() for t in out] == [r + 1.0 for r in range(size)]
    sum(3 * t.sum() for t in out).backward()
    assert x.grad.tolist() == [3.0] * 2
    with torch.no_grad():
        x = leaf()
        assert functional.all_reduce(x, "sum", dist.group.WORLD).tolist() == [total] * 2
        assert functional.all_gather_tensor(x, 0, dist.group.WORLD).shape == (2 * size,)
        part = functional.reduce_scatter_tensor(torch.ones(size, 2), "avg", 0, dist.group.WORLD)
        assert part.tolist() == [[1.0, 1.0]]
        assert functional.broadcast(x, 1, dist.group.WORLD).tolist() == [2.0] * 2
        assert x.tolist() == [rank + 1.0] * 2


def functional_gradients(rank):
    """What functional collectives give, and the gradients, are those of one process with all."""
    from rushlight.distributed import _functional_collectives as functional

    size = dist.get_world_size()
    world = dist.group.WORLD

    def inputs():
        g = torch.Generator().manual_seed(1)
        return [
            torch.randn(2 * size, 3 * size, generator=g, dtype=torch.float64).requires_grad_()
            for _ in range(size)
        ]

    def of_all(make):  # (out of this process, of all inputs) as the definition has it
        return lambda parts: [make(parts, r) for r in range(size)]

    swapped = [(r + 1) % size for r in range(size)]
    cases = {
        "sum": (
            lambda x: functional.all_reduce(x, "sum", world),
            of_all(lambda parts, r: sum(parts)),
        ),
        "mean": (
            lambda x: functional.all_reduce_coalesced(
                [x], "avg", dist.init_device_mesh(device_type(), (size,))
            )[0],
            of_all(lambda parts, r: sum(parts) / size),
        ),
        "gather": (
            lambda x: functional.all_gather_tensor(x, 1, world.group_name),
            of_all(lambda parts, r: torch.cat(parts, 1)),
        ),
        "gather rows": (
            lambda x: functional.all_gather_single_coalesced([x], list(range(size)))[0],
            of_all(lambda parts, r: torch.cat(parts)),
        ),
        "scatter": (
            lambda x: functional.reduce_scatter_tensor(x, "avg", 1, world),
            of_all(lambda parts, r: (sum(parts) / size).chunk(size, 1)[r]),
        ),
        "scatter rows": (
            lambda x: functional.reduce_scatter_single_coalesced([x], "sum", [0], world)[0],
            of_all(lambda parts, r: sum(parts).chunk(size)[r]),
        ),
        "swap": (
            lambda x: functional.all_to_all_single_autograd(x, None, None, world),
            of_all(lambda parts, r: torch.cat([p.chunk(size)[r] for p in parts])),
        ),
        "permute": (
            lambda x: functional.permute_tensor(x, swapped, world),
            of_all(lambda parts, r: parts[swapped.index(r)]),
        ),
    }
    for name, (together, alone) in cases.items():
        parts = inputs()
        outs = alone(parts)
        weights = [torch.randn_like(out) for out in outs]
        dist.broadcast_object_list(weights, 0)
        sum((w * out**2).sum() for w, out in zip(weights, outs, strict=True)).backward()
        x = inputs()[rank]
        out = functional.wait_tensor(together(x))
        torch.testing.assert_close(out, outs[rank], msg=name)
        (weights[rank] * out**2).sum().backward()
        torch.testing.assert_close(x.grad, parts[rank].grad, msg=name)
    best = functional.all_reduce(inputs()[rank], "max", world)
    expect("only supports", RuntimeError, best.sum().backward)
    expect("no process group", ValueError, functional.broadcast, x, 0, "nobody")


def grid(rank):
    """Meshes on groups."""
    from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh

    mesh = init_device_mesh(device_type(), (2, 2), mesh_dim_names=("dp", "tp"))
    assert mesh.shape == (2, 2) and mesh.get_coordinate() == [rank // 2, rank % 2]
    t = torch.ones(1) * rank
    dist.all_reduce(t, group=mesh.get_group("tp"))
    assert t.item() == (1 if rank < 2 else 5)
    assert mesh["tp"].get_group() is mesh.get_group(1) and mesh["dp"] is mesh["dp"]
    assert mesh["dp"].mesh.tolist() == [rank % 2, 2 + rank % 2]
    assert mesh.get_local_rank("dp") == rank // 2 and mesh["dp"].size() == 2
    expect("mesh_dim", RuntimeError, mesh.get_group)
    expect("Invalid mesh_dim_name", KeyError, mesh.__getitem__, "pp")
    expect("unique", RuntimeError, init_device_mesh, "cpu", (2, 2), mesh_dim_names=("a", "a"))
    line = DeviceMesh(device_type(), list(range(4)))
    assert line.get_group() is dist.group.WORLD and line == DeviceMesh(
        device_type(), list(range(4))
    )
    again = DeviceMesh.from_group(dist.group.WORLD, device_type())
    assert again == line and again.get_local_rank() == rank

    options = dist.ProcessGroupGloo._Options()
    options._timeout = timedelta(seconds=17)
    for override in ({"dp": "gloo", 1: options}, {0: ("gloo", options)}):
        own = init_device_mesh(
            "cpu", (2, 2), mesh_dim_names=("dp", "tp"), backend_override=override
        )
        times = [own.get_group(dim)._timeout.total_seconds() for dim in (0, 1)]
        assert times == ([30, 17] if "dp" in override else [17, 30]), times
        assert own.get_group("dp").group_desc == "mesh_dp"
    whole = init_device_mesh(device_type(), (4,), backend_override={0: "gloo"})
    assert whole.get_group() is not dist.group.WORLD and whole.get_group().size() == 4
    for wrong, why in (({0: "gloo", "a": "gloo"}, "redundant"), ({"b": "gloo"}, "invalid keys")):
        expect(
            why,
            RuntimeError,
            init_device_mesh,
            "cpu",
            (4,),
            mesh_dim_names=("a",),
            backend_override=wrong,
        )
    one = init_device_mesh(device_type(), (4,), mesh_dim_names=("all",))
    two = one._unflatten("all", (2, 2), ("dp", "tp"), {"tp": options})
    assert str(two) == f"DeviceMesh((dp=2, tp=2), '{device_type()}', stride=(2, 1))", two
    assert dist.get_process_group_ranks(two.get_group("tp")) == [rank // 2 * 2, rank // 2 * 2 + 1]
    assert dist.get_process_group_ranks(two["dp"].get_group()) == [rank % 2, rank % 2 + 2]
    assert two.get_group("tp")._timeout == options._timeout
    three = mesh["tp"]._unflatten(0, (1, 2), ("a", "b"))
    assert three.get_group("b").size() == 2 and three.mesh.tolist() == [mesh["tp"].mesh.tolist()]
    flat = mesh._flatten("both", options)
    assert flat.get_group()._timeout == options._timeout and flat.size() == 4
    expect("is not in", ValueError, one._unflatten, "x", (2, 2), ("dp", "tp"))
    expect("out of range", ValueError, one._unflatten, 1, (2, 2), ("dp", "tp"))
    expect("same length", RuntimeError, one._unflatten, 0, (2, 2), ("dp",))
    expect("must be equal", ValueError, one._unflatten, 0, (2, 3), ("dp", "tp"))


def sharded_states(rank):
    """ZeroRedundancyOptimizer steps as the optimiser does, with a part of its state."""
    from rushlight.distributed.optim import ZeroRedundancyOptimizer

    size = dist.get_world_size()
    plain, sharded = network(), network()
    one = torch.optim.Adam(plain.parameters(), lr=0.01)
    zero = ZeroRedundancyOptimizer(sharded.parameters(), torch.optim.Adam, lr=0.01)
    expect("consolidate", RuntimeError, zero.state_dict)
    for step in range(3):
        x, y = samples(step)
        for net, optimizer in ((plain, one), (sharded, zero)):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
    assert all(map(torch.equal, sharded.parameters(), plain.parameters()))
    counts = [0] * size
    dist.all_gather_object(counts, len(zero.optim.state))
    assert sum(counts) == len(one.state) and max(counts) < len(one.state)
    zero.consolidate_state_dict(0)
    states = [zero.state_dict() if rank == 0 else None]
    dist.broadcast_object_list(states, 0)
    want = one.state_dict()
    for index, state in states[0]["state"].items():
        for name, value in state.items():
            assert torch.equal(value, want["state"][index][name])
    other = ZeroRedundancyOptimizer(network().parameters(), torch.optim.Adam, lr=1.0)
    other.load_state_dict(states[0])
    assert other.param_groups[0]["lr"] == 0.01
    assert len(other.optim.state) == len(zero.optim.state)


class Watched(nn.Linear):
    """Remembers the dtypes of what it computed with."""

    def forward(self, x):
        self.seen = x.dtype, self.weight.dtype
        return super().forward(x)


def mixed(rank):
    """Forward in another dtype, gradients in the parameters'."""
    size = dist.get_world_size()
    torch.manual_seed(0)
    single = nn.Sequential(Watched(5, 8), nn.ReLU(), Watched(8, 3))
    half = torch.bfloat16
    for kinds in (_MixedPrecision(half), _MixedPrecision(half, torch.float32, half)):
        model = DDP(copy.deepcopy(single), mixed_precision=kinds)
        out = model(samples(0)[0].chunk(size)[rank])
        assert out.dtype == half and model.module[0].seen == (half, half)
        assert "weight" not in vars(model.module[0])
        out.float().sum().backward()
        for p in model.parameters():
            assert p.dtype == p.grad.dtype == torch.float32
        other = copy.deepcopy(single)
        other(samples(0)[0]).sum().backward()
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(size * p.grad, q.grad, rtol=0.1, atol=0.3)
        assert same_everywhere([p.grad for p in model.parameters()])
        if kinds.reduce_dtype is None:
            assert all(torch.equal(p.grad, p.grad.to(half).float()) for p in model.parameters())


class Placed(nn.Linear):
    """Notes where its arguments lie."""

    def forward(self, x, more):
        self.places = [x.device.type, more["bias"].device.type, more["name"]]
        return super().forward(x) + more["bias"]


def moved(rank):
    """Inputs go where `device_ids` says, those inside of containers, too."""
    part = Placed(3, 2, device="meta")
    model = DDP(part, device_ids=["meta"], output_device="cpu", dim=1, init_sync=False)
    assert model.device_ids == ["meta"]
    with torch.no_grad():
        result = model(torch.ones(1, 3), more={"bias": torch.ones(2), "name": "b"})
    assert part.places == ["meta", "meta", "b"] and result.shape == (1, 2)
    plain = DDP(Placed(3, 2))
    assert plain.device_ids is None
    plain(torch.ones(1, 3), more={"bias": torch.ones(2), "name": "b"})
    assert plain.module.places == ["cpu", "cpu", "b"]
    for ids in ([0], ["cpu"]):
        expect("single-device", ValueError, lambda ids=ids: DDP(Placed(3, 2), device_ids=ids))


def replicated(rank):
    """A module that stays the module it is."""
    size = dist.get_world_size()
    want = train(network(), 0, 1)
    model = replicate(network(), bucket_cap_mb=1)
    assert isinstance(model, nn.Sequential) and list(model.state_dict()) == list(
        network().state_dict()
    )
    for a, b in zip(train(model, rank, size), want, strict=True):
        torch.testing.assert_close(a, b)
    parts = network()
    for part in (parts[0], parts[2], parts[4]):
        replicate(part)
    for a, b in zip(train(parts, rank, size), want, strict=True):
        torch.testing.assert_close(a, b)
    model = network()
    replicate(model, ignored_modules=[model[0]])
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    x, y = (t.chunk(size)[rank] for t in samples(0))
    model.set_requires_gradient_sync(False)
    nn.functional.mse_loss(model(x), y).backward()
    assert not same_everywhere([model[4].weight.grad])
    model.set_requires_gradient_sync(True)
    model.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    assert same_everywhere([model[4].weight.grad]) and not same_everywhere([model[0].weight.grad])
    expect("already been applied", AssertionError, replicate, model)
    expect("device_id to be int", RuntimeError, replicate, network(), device_id=[0])
