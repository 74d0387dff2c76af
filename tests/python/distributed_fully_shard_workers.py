"""What the processes of the tests of `fully_shard` do."""

import contextlib
import copy
import gc
from types import SimpleNamespace
from unittest.mock import patch

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed import checkpoint as dcp
from rushlight.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from rushlight.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from rushlight.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from rushlight.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from rushlight.distributed.tensor.placement_types import _StridedShard
from rushlight.utils.checkpoint import checkpoint

from .distributed_fsdp_workers import adam, network, same, samples
from .distributed_workers import device_type, expect


def in_turn(rank, cases):
    """Several of the functions below, in the same processes."""
    for case in cases.split():
        globals()[case](rank)


def sharded(net, **settings):
    for block in net.blocks:
        fully_shard(block, **settings)
    return fully_shard(net, **settings)


def whole(model):
    return {
        name: t.full_tensor() if isinstance(t, DTensor) else t
        for name, t in model.state_dict().items()
    }


def steps(model, optimizer, rank, size, count=3, accumulate=False, begin=0, clip=None, width=5):
    norms = []
    for step in range(begin, begin + count):
        x, y = (t.chunk(size)[rank] for t in samples(step, width=width))
        if accumulate:
            if isinstance(model, FSDPModule):
                model.set_requires_gradient_sync(False)
            nn.functional.mse_loss(model(x), y).backward()
            if isinstance(model, FSDPModule):
                model.set_requires_gradient_sync(True)
        nn.functional.mse_loss(model(x), y).backward()
        if clip is not None:
            norm = nn.utils.clip_grad_norm_(model.parameters(), *clip)
            norms.append(float(norm.full_tensor() if isinstance(norm, DTensor) else norm))
        optimizer.step()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
    return norms


def equals_one_process(rank):
    """Several processes compute what one computes on all samples."""
    size = dist.get_world_size()
    for accumulate, clip in ((False, None), (True, None), (False, (0.1, 2.0))):
        single = network()
        want = steps(single, adam(single), 0, 1, accumulate=accumulate, clip=clip)
        for settings in (
            {},
            {"reshard_after_forward": True},
            {"reshard_after_forward": False},
            {"shard_placement_fn": lambda p: Shard(p.ndim - 1), "reshard_after_forward": size},
            {"offload_policy": CPUOffloadPolicy()},
        ):
            model = sharded(network(), **settings)
            assert isinstance(model, FSDPModule) and type(model).__name__ == "FSDPNet"
            norms = steps(model, adam(model), rank, size, accumulate=accumulate, clip=clip)
            torch.testing.assert_close(torch.tensor(norms), torch.tensor(want))
            same(whole(model), single.state_dict())


def optimizers(rank):
    """Optimisers that need more than elements; a scaler that sees all gradients."""
    size = dist.get_world_size()
    for kind in (torch.optim.Adafactor, torch.optim.NAdam, torch.optim.Rprop):
        single = network()
        steps(single, kind(single.parameters(), lr=0.01), 0, 1)
        model = sharded(network())
        steps(model, kind(model.parameters(), lr=0.01), rank, size)
        same(whole(model), single.state_dict())
    model = sharded(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    before = whole(model)
    for bad in (True, False):
        x, y = samples(0)
        loss = nn.functional.mse_loss(model(x), y) * (float("inf") if bad and rank == 0 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        assert scaler.get_scale() == 4.0
        assert torch.equal(before["first.weight"], model.first.weight.full_tensor()) == bad
    for fill in (nn.init.kaiming_uniform_, nn.init.trunc_normal_, nn.init.orthogonal_):
        weight = fill(model.blocks[0].up.weight).full_tensor()
        everyone = [torch.empty_like(weight) for _ in range(size)]
        dist.all_gather(everyone, weight)
        assert torch.equal(everyone[0], everyone[1]) and weight.unique().numel() > 50


def parts(rank):
    """What modules show, when, and the methods that say so."""
    size = dist.get_world_size()
    net = network()
    plain = copy.deepcopy(net)
    model = sharded(net)
    weight = model.first.weight
    assert isinstance(weight, nn.Parameter) and isinstance(weight, DTensor)
    assert weight is model.last.weight and weight.placements == (Shard(0),)
    assert weight.shape == (5, 5) and weight.to_local().shape[0] == len(
        torch.arange(5).chunk(size)[rank : rank + 1][0] if rank * -(-5 // size) < 5 else []
    )
    assert isinstance(model, type(plain)) and model.blocks[0].up.weight.shape == (15, 5)
    seen = []

    def note(module, args):
        seen.append((type(module.up.weight), module.up.weight.shape))

    model.blocks[0].register_forward_pre_hook(note)
    x, _ = samples(0)
    out = model(x)
    torch.testing.assert_close(out, plain(x))
    assert seen == [(torch.Tensor, (15, 5))]
    assert isinstance(model.blocks[0].up.weight, DTensor)
    out.sum().backward()
    plain(x).sum().backward()
    for (name, p), q in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert isinstance(p.grad, DTensor), name
        torch.testing.assert_close(p.grad.full_tensor(), q.grad, msg=name)
    assert all(
        unit.full is None
        for m in model.modules()
        if isinstance(m, FSDPModule)
        for unit in m._get_fsdp_state().units
    )

    block = model.blocks[1]
    handle = block.unshard(async_op=True)
    handle.wait()
    assert model.unshard() is None
    for module in (block.up, model.first):
        assert not isinstance(module.weight, DTensor)
        assert isinstance(module.weight, nn.Parameter)
    assert torch.equal(block.up.weight, plain.blocks[1].up.weight)
    assert isinstance(model.state_dict()["first.weight"], DTensor)  # reshards
    block.reshard()
    assert isinstance(block.up.weight, DTensor)

    # Parts that were replaced count, and what was written.
    state = {name: t * 2 if t.dim() else t for name, t in model.state_dict().items()}
    model.load_state_dict(state, assign=True)
    with torch.no_grad():
        for p in plain.parameters():
            p.mul_(2)
    torch.testing.assert_close(model(x), plain(x))
    assert model.last.weight is model.first.weight
    model.double()
    torch.testing.assert_close(model(x.double()), plain.double()(x.double()))
    expect("deepcopy", AssertionError, copy.deepcopy, model)
    expect("once", AssertionError, fully_shard, model)
    expect("forward", ValueError, fully_shard, nn.ModuleList([nn.Linear(2, 2)]))
    scalar = nn.Linear(2, 2)
    scalar.scale = nn.Parameter(torch.tensor(1.0))
    expect("scalar", ValueError, fully_shard, scalar)
    expect("factor", ValueError, fully_shard, nn.Linear(2, 2), reshard_after_forward=7)
    expect("bool", ValueError, fully_shard, nn.Linear(2, 2), reshard_after_forward="no")
    expect("FSDPModule", ValueError, model.set_modules_to_forward_prefetch, [nn.Linear(2, 2)])

    # A forward that fails leaves the parts.
    expect("", RuntimeError, model, x[:, :2].double())
    assert isinstance(model.first.weight, DTensor)
    torch.testing.assert_close(model(x.double()), plain(x.double()))

    pair = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    fully_shard([pair[0], pair[2]])
    fully_shard(pair)
    assert type(pair[0:2]) is nn.Sequential
    pair(torch.ones(2, 4)).sum().backward()
    assert pair[2].weight.grad is not None and isinstance(pair[0].weight, DTensor)


class Odd(nn.Module):
    """A layer that only some inputs use, a frozen one, other methods."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
        self.c.requires_grad_(False)

    def forward(self, x, both=True):
        y = self.c(self.a(x))
        return self.b(y) if both else y

    def other(self, x):
        return self.b(x)


def gradients(rank):
    """Unused and frozen parameters, factors, hooks, custom collectives, other methods."""
    size = dist.get_world_size()
    torch.manual_seed(0)
    plain = Odd()
    x = torch.randn(4 * size, 3).chunk(size)[rank]

    def made():
        return fully_shard(copy.deepcopy(plain))

    want = copy.deepcopy(plain)
    want(x).sum().backward()
    for p in want.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
    for change, factor in (
        (lambda m: None, 1 / size),
        (lambda m: m.set_force_sum_reduction_for_comms(True), 1 / size),
        (lambda m: m.set_gradient_divide_factor(4.0), 1 / 4),
        (lambda m: m.set_all_reduce_hook(lambda t: t.mul_(3)), 3 / size),
    ):
        model = made()
        change(model)
        model(x).sum().backward()
        for (name, p), q in zip(model.named_parameters(), want.parameters(), strict=True):
            if name.startswith("c."):
                assert p.grad is None
            else:
                torch.testing.assert_close(p.grad.full_tensor(), q.grad * factor, msg=name)

    model = made()
    model(x, both=rank == 1).sum().backward()  # one process alone uses b
    grad = model.b.weight.grad.full_tensor()
    assert grad.abs().sum() > 0
    model = made()
    model(x, both=False).sum().backward()
    assert model.b.weight.grad is None
    model.set_reduce_scatter_unused_params(True)
    model(x, both=False).sum().backward()
    assert model.b.weight.grad.full_tensor().abs().sum() == 0

    model = made()
    expect("", (RuntimeError, TypeError), model.other, x)
    register_fsdp_forward_method(model, "other")
    register_fsdp_forward_method(plain, "nothing of it")
    torch.testing.assert_close(model.other(x), plain.other(x))
    model.other(x).sum().backward()
    assert model.b.weight.grad is not None

    model = made()
    ran = []
    model.a.weight.register_post_accumulate_grad_hook(lambda p: ran.append(p.grad.shape))
    model.set_reshard_after_backward(False)
    model(x).sum().backward()
    assert ran == [(3, 3)] and model._get_fsdp_state().units[0].full is not None
    with torch.no_grad():
        model.a.weight.zero_()
        model.a.bias.zero_()
    assert torch.equal(model(x), plain.b(plain.c(torch.zeros_like(x))))

    class Comm:
        """A collective of a program's own."""

        def __init__(self, call):
            self.call, self.calls = call, 0

        def allocate(self, size, *, dtype, device):
            return torch.empty(*size, dtype=dtype, device=device)

        def __call__(self, output_tensor, input_tensor, group, op=None, async_op=False):
            self.calls += 1
            more = {} if op is None else {"op": op}
            return self.call(output_tensor, input_tensor, group=group, async_op=async_op, **more)

    model = made()
    gather, scatter = Comm(dist.all_gather_into_tensor), Comm(dist.reduce_scatter_tensor)
    model.set_custom_all_gather(gather)
    model.set_custom_reduce_scatter(scatter)
    model(x).sum().backward()
    torch.testing.assert_close(model.b.weight.grad.full_tensor(), want.b.weight.grad / size)
    assert gather.calls == 1 and scatter.calls == 1


def mixed(rank):
    """Dtypes of parameters, gradients, inputs and outputs."""
    inner = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float64)
    seen = []
    net = network()
    net.first.register_forward_hook(lambda m, a, out: seen.append((m.weight.dtype, out.dtype)))
    for block in net.blocks:
        fully_shard(block, mp_policy=inner)
    model = fully_shard(net, mp_policy=policy)
    out = model(samples(0)[0])
    assert out.dtype == torch.float64 and seen == [(torch.bfloat16, torch.bfloat16)]
    out.sum().backward()
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in model.parameters())
    plain = network()
    plain(samples(0)[0]).sum().backward()
    got, want = model.first.bias.grad.full_tensor(), plain.first.bias.grad
    torch.testing.assert_close(got, want, rtol=0.05, atol=0.1)
    left = fully_shard(
        nn.Linear(2, 2), mp_policy=MixedPrecisionPolicy(torch.bfloat16, None, None, False)
    )
    expect("", RuntimeError, left, torch.ones(1, 2))

    with torch.device("meta"):
        model = network()
    kept = model.first.bias
    sharded(model, ignored_params={kept})
    assert model.first.bias is kept and not isinstance(kept, DTensor)
    expect("meta", RuntimeError, model, samples(0)[0])
    model.to_empty(device=device_type())
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0.25)
        model.scale.fill_(1.0)
    want = network()
    with torch.no_grad():
        for p in want.parameters():
            p.fill_(0.25)
        want.scale.fill_(1.0)
    torch.testing.assert_close(model(samples(0)[0]), want(samples(0)[0]))


def recomputed(rank):
    """Blocks that run again in backward: inside of a unit, and around it."""
    size = dist.get_world_size()
    single = network()
    steps(single, adam(single), 0, 1)
    for again in (False, True):
        model = sharded(network(again=again))
        steps(model, adam(model), rank, size)
        same(whole(model), single.state_dict())

    class Around(nn.Module):
        """Runs blocks again, each of which is spread."""

        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, x):
            x = self.net.first(x)
            for block in self.net.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return self.net.last(x) * self.net.scale

    around = Around(network())
    for block in around.net.blocks:
        fully_shard(block)
    fully_shard(around)
    steps(around, adam(around), rank, size)
    same(whole(around.net), single.state_dict())


@contextlib.contextmanager
def watched(model):
    """A list of what is asked of process groups (`g`: a whole, `r`: gradients), what of that is
    waited for (`G`, `R`), and which blocks compute (`0`, `1` and so on)."""
    log = []

    def watch(name, asked, awaited):
        kind = dist.ProcessGroup
        call = getattr(kind, name)

        def asks(*args):
            work = call(*args)
            log.append(asked)
            return SimpleNamespace(wait=lambda: (log.append(awaited), work.wait()))

        return patch.object(kind, name, asks)

    hooks = []
    for i, block in enumerate(model.blocks):
        hooks.append(block.norm.register_forward_hook(lambda *_, i=i: log.append(str(i))))
        hooks.append(block.norm.register_full_backward_hook(lambda *_, i=i: log.append(str(i))))
    with watch("_allgather_base", "g", "G"), watch("_reduce_scatter_base", "r", "R"):
        yield log
    for hook in hooks:
        hook.remove()


def overlapped(rank):
    """Wholes travel while the unit before computes, gradients while the next one does."""
    size = dist.get_world_size()
    single = network(blocks=3)
    steps(single, adam(single), 0, 1, count=4)
    model = sharded(network(blocks=3))
    optimizer = adam(model)
    steps(model, optimizer, rank, size, count=2)
    with watched(model) as log:
        steps(model, optimizer, rank, size, count=1, begin=2)
    assert "".join(log) == "gGgGg0Gg1G2ggG2rgG1RrG0RrRrR", log
    model.set_modules_to_forward_prefetch(list(model.blocks))
    model.set_modules_to_backward_prefetch([])
    for block in model.blocks:
        block.set_modules_to_forward_prefetch([])
        block.set_modules_to_backward_prefetch([])
    model.set_separate_reduce_scatter_group()
    model.set_reduce_scatter_max_input_buffers(4)
    with watched(model) as log:
        steps(model, optimizer, rank, size, count=1, begin=3)
    assert "".join(log) == "gGgggG0G1G2gG2rgG1rgG0rrRRRR", log
    same(whole(model), single.state_dict())
    for again in (False, True):
        model = sharded(network(blocks=3, again=again))
        optimizer = adam(model)
        steps(model, optimizer, rank, size, count=2)
        with watched(model) as log:
            steps(model, optimizer, rank, size, count=1, begin=2)
        assert log.count("g") == 4 + 3 and log.count("r") == 4, log  # once more for backward


def hybrid(rank):
    """Two groups of two share the parts; their gradients are added up, too, or later."""
    size = dist.get_world_size()
    grid = dist.init_device_mesh(device_type(), (2, 2), mesh_dim_names=("replicate", "shard"))
    single = network()
    steps(single, adam(single), 0, 1)
    model = sharded(network(), mesh=grid)
    assert model.first.weight.placements == (Replicate(), Shard(0)), model.first.weight.placements
    assert model.first.weight.to_local().shape[0] == (3, 2)[rank % 2]
    steps(model, adam(model), rank, size)
    same(whole(model), single.state_dict())
    want = sharded(network(), mesh=grid)
    for step in range(2):
        x = samples(step)[0].chunk(size)[rank]
        want(x).sum().backward()
    model = sharded(network(), mesh=grid)
    for step in range(2):
        model.set_requires_all_reduce(step == 1)
        x = samples(step)[0].chunk(size)[rank]
        model(x).sum().backward()
    for p, q in zip(model.parameters(), want.parameters(), strict=True):
        torch.testing.assert_close(p.grad.full_tensor(), q.grad.full_tensor())
    unnamed = dist.init_device_mesh(device_type(), (2, 2))
    expect("mesh_dim_names", AssertionError, fully_shard, nn.Linear(2, 2), mesh=unnamed)


def flattened(rank):
    """Dimensions of a mesh taken together, alone and beside others."""
    grid = dist.init_device_mesh(device_type(), (2, 1, 2), mesh_dim_names=("dp", "cp", "tp"))
    both = grid["dp", "cp"]._flatten("dp_cp")
    assert both is grid["dp_cp"] is grid["dp", "cp"]._flatten("dp_cp")
    assert both.mesh.tolist() == [rank % 2, 2 + rank % 2] and both.mesh_dim_names == ("dp_cp",)
    assert dist.get_process_group_ranks(both.get_group()) == both.mesh.tolist()
    everyone = grid._flatten()
    assert everyone.mesh_dim_names == ("dp_cp_tp",) and everyone.size() == 4
    assert everyone.get_local_rank() == rank
    two = grid["dp_cp", "tp"]
    assert two.mesh.tolist() == [[0, 1], [2, 3]] and two.shape == (2, 2)
    assert two.get_group("dp_cp") is both.get_group()
    assert two.get_group("tp") is grid.get_group("tp")
    assert str(two) == "DeviceMesh((dp_cp=2, tp=2), 'cpu', stride=(2, 1))"
    assert both._flatten("dp_cp") is both and copy.deepcopy(two) == two
    expect("already exists", ValueError, grid["cp", "tp"]._flatten, "dp_cp")
    expect("order", KeyError, grid.__getitem__, ("dp", "dp_cp"))
    expect("Valid", KeyError, grid.__getitem__, ("nothing",))
    layer = parallelize_module(nn.Linear(4, 4), grid["tp"], ColwiseParallel())
    fully_shard(layer, mesh=both)
    assert layer.weight.device_mesh == two
    layer(torch.ones(1, 4)).sum().backward()
    assert layer.weight.grad.full_tensor().tolist() == torch.ones(4, 4).tolist()


def memory(rank):
    """Parameters, gradients and states take a fourth each; what was gathered has gone."""
    size = dist.get_world_size()

    def now():
        gc.collect()
        return torch.cpu.memory_stats()["allocated_bytes.all.current"]

    def spent(make):
        before = now()
        model = make(network(width=64, blocks=6))
        optimizer = adam(model)
        for step in range(2):
            x, y = (t.chunk(size)[0] for t in samples(step, 8, 64))
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        del x, y
        return now() - before, model

    alone, model = spent(lambda net: net)
    del model
    part, model = spent(lambda net: sharded(net, reshard_after_forward=True))
    assert part <= 0.3 * alone, (part, alone)
    x, _ = samples(0, 8, 64)
    before = now()
    loss = model(x).sum()
    between = now() - before
    loss.backward()
    assert between < 0.3 * alone / 4 + 8 * 64 * 4 * 80, (between, alone)


def states(rank, folder):
    """States by name, whole and in pieces, loaded into models that are spread otherwise."""
    size = dist.get_world_size()
    single = network()
    optimizer = adam(single)
    steps(single, optimizer, 0, 1)
    want, want_optim = single.state_dict(), get_optimizer_state_dict(single, optimizer)
    model = sharded(network())
    optimizer = adam(model)
    steps(model, optimizer, rank, size)

    full = StateDictOptions(full_state_dict=True)
    same(get_model_state_dict(model, options=full), want)
    first = get_model_state_dict(
        model, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
    )
    assert (len(first) > 0) == (rank == 0)
    got = get_optimizer_state_dict(model, optimizer, options=full)
    assert got["param_groups"][0]["params"] == want_optim["param_groups"][0]["params"]
    for name, state in want_optim["state"].items():
        same(got["state"][name], state)
    pieces, optim_pieces = get_state_dict(model, optimizer)
    assert isinstance(pieces["first.weight"], DTensor)
    assert isinstance(optim_pieces["state"]["first.weight"]["exp_avg"], DTensor)

    grid = dist.init_device_mesh(
        device_type(), (size // 2, 2), mesh_dim_names=("replicate", "shard")
    )
    for settings in ({"mesh": grid}, {"shard_placement_fn": lambda p: Shard(p.ndim - 1)}):
        other = sharded(network(), **settings)
        others = adam(other)
        none = set_model_state_dict(
            other, first, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        )
        assert not none.missing_keys and not none.unexpected_keys
        set_optimizer_state_dict(other, others, copy.deepcopy(got), options=full)
        same(whole(other), want)
        steps(other, others, rank, size, begin=3)
        if "mesh" in settings:
            dcp.save({"model": pieces, "optim": optim_pieces}, checkpoint_id=f"{folder}/saved")
        loading = sharded(network(), **settings)
        loaded = adam(loading)
        into = dict(zip(("model", "optim"), get_state_dict(loading, loaded), strict=True))
        dcp.load(into, checkpoint_id=f"{folder}/saved")
        set_state_dict(
            loading, loaded, model_state_dict=into["model"], optim_state_dict=into["optim"]
        )
        same(whole(loading), want)
        steps(loading, loaded, rank, size, begin=3)
        same(whole(loading), whole(other))
    same({k: v.full_tensor() if isinstance(v, DTensor) else v for k, v in pieces.items()}, want)


def with_tensor_parallelism(rank, folder):
    """Blocks cut by two processes, and once more by two groups of them."""
    grid = dist.init_device_mesh(device_type(), (2, 2), mesh_dim_names=("dp", "tp"))
    single = network(width=6)
    steps(single, adam(single), 0, 1, width=6)
    plan = {
        "up": ColwiseParallel(),
        "down": RowwiseParallel(),
    }

    def made(mesh=grid):
        model = network(width=6)
        for block in model.blocks:
            parallelize_module(block, mesh["tp"], plan)
            fully_shard(block, mesh=mesh["dp"])
        return fully_shard(model, mesh=mesh["dp"])

    model = made()
    up, down = model.blocks[0].up, model.blocks[0].down
    assert up.weight.placements == (_StridedShard(0, split_factor=2), Shard(0))
    assert up.weight.to_local().shape == (5, 6) if rank < 2 else (4, 6)
    assert down.weight.placements == (Shard(0), Shard(1))
    assert down.bias.placements == (Shard(0), Replicate())
    fresh = network(width=6)
    for name, p in fresh.named_parameters():
        got = model.get_parameter(name)
        assert torch.equal(got.full_tensor() if isinstance(got, DTensor) else got, p), name
    optimizer = adam(model)
    steps(model, optimizer, rank // 2, 2, width=6, count=2)
    assert optimizer.state[up.weight]["exp_avg"].placements == up.weight.placements
    steps(model, optimizer, rank // 2, 2, width=6, begin=2, count=1)
    same(whole(model), single.state_dict())

    # Elements, moves and files of tensors that are cut so.
    value = torch.arange(42.0).reshape(7, 6)
    cut = distribute_tensor(value, grid, [_StridedShard(0, split_factor=2), Shard(0)])
    begin = (rank % 2) * 4 + (rank // 2) * 2
    assert torch.equal(cut.to_local(), value[begin : min(begin + 2, 4 + 4 * (rank % 2))])
    twice = cut * 2 + cut
    assert twice.placements == cut.placements
    assert torch.equal(twice.full_tensor(), value * 3)
    assert torch.equal(cut.sum().full_tensor(), value.sum())
    for target in (
        [Shard(0), Shard(0)],
        [Replicate(), Shard(0)],
        [Shard(1), Shard(0)],
        [Shard(0), Replicate()],
        [Shard(0), Shard(1)],
    ):
        moved = cut.redistribute(placements=target)
        assert torch.equal(moved.to_local(), distribute_tensor(value, grid, target).to_local())
        assert torch.equal(moved.redistribute(placements=cut.placements).to_local(), cut.to_local())
    expect(
        "split factor",
        NotImplementedError,
        distribute_tensor,
        value,
        grid,
        [_StridedShard(0, split_factor=3), Shard(0)],
    )
    state = get_model_state_dict(model)
    dcp.save(state, checkpoint_id=f"{folder}/two")
    flat = get_model_state_dict(sharded(network(width=6)))
    dcp.load(flat, checkpoint_id=f"{folder}/two")
    same(
        {k: v.full_tensor() if isinstance(v, DTensor) else v for k, v in flat.items()},
        single.state_dict(),
    )
    again = made()
    into = get_model_state_dict(again)
    dcp.load(into, checkpoint_id=f"{folder}/two")
    set_model_state_dict(again, into)
    same(whole(again), single.state_dict())

    # Files of `torch.save`, of which each process has its own.
    torch.save({**state, "parameter": up.weight}, f"{folder}/{rank}.pt")
    loaded = torch.load(f"{folder}/{rank}.pt")
    assert isinstance(loaded.pop("parameter"), nn.Parameter)
    name = "blocks.0.up.weight"
    assert loaded[name].device_mesh == grid and loaded[name].placements == up.weight.placements
    assert torch.equal((loaded[name] - up.weight).full_tensor(), torch.zeros(18, 6))
    assert loaded["first.weight"].device_mesh == grid["dp"] == copy.deepcopy(grid["dp"])
    again = made()
    again.load_state_dict(loaded)
    same(whole(again), single.state_dict())
