"""What the processes of the tests of `FullyShardedDataParallel` do."""

import functools
import gc

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed import fsdp
from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP
from rushlight.distributed.fsdp import ShardingStrategy, StateDictType
from rushlight.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from rushlight.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    always_wrap_policy,
    enable_wrap,
    size_based_auto_wrap_policy,
    wrap,
)
from rushlight.distributed.tensor import DTensor, Shard
from rushlight.utils.checkpoint import checkpoint

from .distributed_ddp_workers import same_everywhere
from .distributed_workers import device_type, expect


class Block(nn.Module):
    """A residual block, which may run again in backward."""

    def __init__(self, width, again=None):
        super().__init__()
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.norm = nn.LayerNorm(width)
        self.again = again

    def inner(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))

    def forward(self, x):
        if self.again is None:
            return self.inner(x)
        return checkpoint(self.inner, x, use_reentrant=self.again)


class Net(nn.Module):
    """Blocks between two layers; the last one's weights are the first one's."""

    def __init__(self, width=5, blocks=2, again=None):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.blocks = nn.ModuleList([Block(width, again) for _ in range(blocks)])
        self.last = nn.Linear(width, width, bias=False)
        self.last.weight = self.first.weight
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x) * self.scale


def network(**settings):
    torch.manual_seed(0)
    return Net(**settings)


def samples(step, rows=12, width=5):
    g = torch.Generator().manual_seed(step)
    return torch.randn(rows, width, generator=g), torch.randn(rows, width, generator=g)


def steps(model, optimizer, rank, size, count=3, accumulate=False, begin=0, clip=None):
    """Train, each process on its part; the norms of gradients where they are clipped."""
    norms = []
    for step in range(begin, begin + count):
        x, y = (t.chunk(size)[rank] for t in samples(step))
        if accumulate:
            if isinstance(model, FSDP):
                with model.no_sync():
                    nn.functional.mse_loss(model(x), y).backward()
            else:
                nn.functional.mse_loss(model(x), y).backward()
        nn.functional.mse_loss(model(x), y).backward()
        if clip is not None:
            if isinstance(model, FSDP):
                norms.append(float(model.clip_grad_norm_(*clip)))
            else:
                norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), *clip)))
        optimizer.step()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
    return norms


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=0.02)


def same(got, want):
    assert list(got) == list(want), (list(got), list(want))
    for name, tensor in want.items():
        torch.testing.assert_close(got[name], tensor, msg=lambda m, n=name: f"{n}: {m}")


BLOCKS = ModuleWrapPolicy({Block})


def equals_one_process(rank):
    """Several processes compute what one computes on all samples."""
    size = dist.get_world_size()
    for accumulate, clip in ((False, None), (True, None), (False, (0.1, 2.0))):
        single = network()
        optimizer = adam(single)
        want = steps(single, optimizer, 0, 1, accumulate=accumulate, clip=clip)
        for settings in (
            {},
            {"auto_wrap_policy": BLOCKS},
            {"auto_wrap_policy": BLOCKS, "use_orig_params": True},
            {"auto_wrap_policy": BLOCKS, "sharding_strategy": ShardingStrategy.SHARD_GRAD_OP},
            {"auto_wrap_policy": BLOCKS, "sharding_strategy": ShardingStrategy.NO_SHARD},
            {"use_orig_params": True, "sharding_strategy": ShardingStrategy.NO_SHARD},
        ):
            net = network()
            if rank == 1:
                net.first.weight.data.zero_()  # rank 0's parameters count
            model = FSDP(net, sync_module_states=True, **settings)
            optimizer = adam(model)
            norms = steps(model, optimizer, rank, size, accumulate=accumulate, clip=clip)
            torch.testing.assert_close(torch.tensor(norms), torch.tensor(want))
            same(model.state_dict(), single.state_dict())
            assert same_everywhere(list(model.state_dict().values())), settings


def hybrid(rank):
    """Two groups of two share the parts; groups and grids say which."""
    size = dist.get_world_size()
    single = network()
    steps(single, adam(single), 0, 1)
    grid = dist.init_device_mesh(device_type(), (2, 2), mesh_dim_names=("replicate", "shard"))
    groups = (grid.get_group("shard"), grid.get_group("replicate"))
    for settings in (
        {"device_mesh": grid},
        {"process_group": groups},
        {"process_group": groups, "use_orig_params": True},
    ):
        for strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2):
            model = FSDP(network(), sharding_strategy=strategy, auto_wrap_policy=BLOCKS, **settings)
            assert model.world_size == 2
            optimizer = adam(model)
            steps(model, optimizer, rank, size)
            same(model.state_dict(), single.state_dict())
    for mesh in (grid, dist.init_device_mesh(device_type(), (size,))):
        _distributed_states(mesh, rank, size, single)


def _distributed_states(mesh, rank, size, single):
    """With a mesh sharded states are distributed tensors."""

    def made():
        hybrid = ShardingStrategy.HYBRID_SHARD if mesh.ndim == 2 else ShardingStrategy.FULL_SHARD
        model = FSDP(
            network(),
            sharding_strategy=hybrid,
            auto_wrap_policy=BLOCKS,
            device_mesh=mesh,
            use_orig_params=True,
        )
        FSDP.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT)
        return model

    model = made()
    optimizer = adam(model)
    steps(model, optimizer, rank, size)
    state = model.state_dict()
    weight = state["first.weight"]
    assert isinstance(weight, DTensor) and weight.placements[-1] == Shard(0)
    same({k: _whole(v) for k, v in state.items()}, single.state_dict())
    kept = FSDP.optim_state_dict(model, optimizer)
    assert isinstance(kept["state"]["first.weight"]["exp_avg"], DTensor)
    other = made()
    other.load_state_dict(state)
    others = adam(other)
    others.load_state_dict(FSDP.optim_state_dict_to_load(other, others, kept))
    steps(other, others, rank, size, begin=3)
    steps(model, optimizer, rank, size, begin=3)
    same(
        {k: _whole(v) for k, v in other.state_dict().items()},
        {k: _whole(v) for k, v in model.state_dict().items()},
    )


def recomputed(rank):
    """Blocks that run again in backward: inside of a unit, and around it."""
    size = dist.get_world_size()
    single = network()
    steps(single, adam(single), 0, 1)
    for again in (False, True):
        for use_orig_params in (False, True):
            model = FSDP(
                network(again=again), auto_wrap_policy=BLOCKS, use_orig_params=use_orig_params
            )
            steps(model, adam(model), rank, size)
            same(model.state_dict(), single.state_dict())
    net = network()
    policy = ModuleWrapPolicy({nn.Linear, nn.LayerNorm})
    for block in net.blocks:
        block.again = False
    del net.last.weight
    net.last.weight = nn.Parameter(net.first.weight.detach().clone())
    model = FSDP(net, auto_wrap_policy=policy)
    other = network()
    del other.last.weight
    other.last.weight = nn.Parameter(other.first.weight.detach().clone())
    steps(other, adam(other), 0, 1)
    steps(model, adam(model), rank, size)
    same(model.state_dict(), other.state_dict())


def memory(rank):
    """Parameters, gradients and states take a fourth each; what was gathered has gone."""
    size = dist.get_world_size()

    def held(model, optimizer):
        tensors = [t for p in model.parameters() for t in (p.data, p.grad) if t is not None]
        tensors += [t for s in optimizer.state.values() for t in s.values() if t.dim() > 0]
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors}
        return sum(s.nbytes() for s in storages.values())

    def spent(make):
        before = torch.cpu.memory_stats()["allocated_bytes.all.current"]
        model = make(network(width=64, blocks=6))
        optimizer = adam(model)
        for step in range(2):
            x, y = (t.chunk(size)[0] for t in samples(step, 8, 64))
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        gc.collect()
        after = torch.cpu.memory_stats()["allocated_bytes.all.current"]
        return after - before, held(model, optimizer), model

    whole, whole_held, model = spent(lambda net: net)
    del model
    gc.collect()
    for use_orig_params in (False, True):
        part, part_held, model = spent(
            lambda net, orig=use_orig_params: FSDP(
                net, auto_wrap_policy=BLOCKS, use_orig_params=orig
            )
        )
        assert part <= 0.3 * whole, (part, whole)
        assert part_held <= 0.3 * whole_held, (part_held, whole_held)
        # Between forward and backward, too, nothing of the whole stays.
        x, _ = samples(0, 8, 64)
        gc.collect()
        before = torch.cpu.memory_stats()["allocated_bytes.all.current"]
        loss = model(x).sum()
        between = torch.cpu.memory_stats()["allocated_bytes.all.current"] - before
        loss.backward()
        assert between < 0.3 * whole / 4 + 8 * 64 * 4 * 80, (between, whole)
        del model, loss
        gc.collect()


def _whole(value):
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def states(rank):
    """Whole states, parts, and those of optimisers, and loading them."""
    size = dist.get_world_size()
    single = network()
    single_optimizer = adam(single)
    steps(single, single_optimizer, 0, 1)
    want = single.state_dict()
    want_optim = single_optimizer.state_dict()["state"]
    names = [name for name, _ in single.named_parameters()]
    for use_orig_params in (False, True):
        build = functools.partial(FSDP, auto_wrap_policy=BLOCKS, use_orig_params=use_orig_params)
        model = build(network())
        optimizer = adam(model)
        steps(model, optimizer, rank, size)
        same(model.state_dict(), want)
        kept = FSDP.optim_state_dict(model, optimizer)
        assert sorted(kept["state"]) == sorted(names)
        for i, name in enumerate(names):
            for key, value in want_optim[i].items():
                torch.testing.assert_close(kept["state"][name][key], value)
        assert sorted(kept["param_groups"][0]["params"]) == sorted(names)
        assert kept["param_groups"][0]["lr"] == 0.02

        other = build(network())
        with torch.no_grad():
            for p in other.parameters():
                p.zero_()
        assert str(other.load_state_dict(model.state_dict())).startswith("<All keys")
        again = adam(other)
        again.load_state_dict(FSDP.optim_state_dict_to_load(other, again, kept))
        steps(model, optimizer, rank, size, begin=3)
        steps(other, again, rank, size, begin=3)
        for a, b in zip(model.parameters(), other.parameters(), strict=True):
            assert torch.equal(a, b)

        # On the first process alone; from there to all.
        config = fsdp.FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
        optim_config = fsdp.FullOptimStateDictConfig(rank0_only=True)
        with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, config, optim_config):
            state, kept = model.state_dict(), FSDP.optim_state_dict(model, optimizer)
            assert bool(state) == bool(kept) == (rank == 0)
            third = adam(other)
            with FSDP.state_dict_type(other, StateDictType.FULL_STATE_DICT, config, optim_config):
                FSDP.optim_state_dict_to_load(other, third, kept, load_directly=True)
            for p, q in zip(model.parameters(), other.parameters(), strict=True):
                for key, value in optimizer.state[p].items():
                    assert torch.equal(third.state[q][key], value)
        assert FSDP.get_state_dict_type(model).state_dict_config == fsdp.FullStateDictConfig()

        with FSDP.state_dict_type(model, StateDictType.LOCAL_STATE_DICT):
            local = {k: v.clone() for k, v in model.state_dict().items()}
        part = local["first.weight"] if use_orig_params else local["_flat_param"]
        assert part.dim() == 1
        with FSDP.state_dict_type(other, StateDictType.LOCAL_STATE_DICT):
            other.load_state_dict({k: torch.zeros_like(v) for k, v in local.items()})
            assert not any(p.any() for p in other.parameters())
            other.load_state_dict(local)
        same(other.state_dict(), model.state_dict())

        with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            rows, optim_rows = model.state_dict(), FSDP.optim_state_dict(model, optimizer)
        held = sum(shard.tensor.shape[0] for shard in rows["first.weight"].local_shards())
        step = -(-5 // size)
        assert held == max(0, min(step, 5 - rank * step))
        same({k: _whole(v) for k, v in rows.items()}, dict(model.state_dict()))
        with FSDP.state_dict_type(other, StateDictType.SHARDED_STATE_DICT):
            other.load_state_dict(rows)
            fourth = adam(other)
            FSDP.optim_state_dict_to_load(other, fourth, optim_rows, load_directly=True)
        same(other.state_dict(), model.state_dict())
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            for key, value in optimizer.state[p].items():
                assert torch.equal(fourth.state[q][key], value)

        bad = dict(want)
        bad.pop("blocks.0.up.bias")
        expect(
            'Missing key(s) in state_dict: "blocks.0.up.bias"',
            RuntimeError,
            other.load_state_dict,
            bad,
        )
        # Older forms, and the optimiser of a model on one process.
        full = FSDP.full_optim_state_dict(model, optimizer, rank0_only=False)
        numbered = FSDP.rekey_optim_state_dict(full, fsdp.OptimStateKeyType.PARAM_ID, single)
        single_optimizer.load_state_dict(numbered)
        named = FSDP.rekey_optim_state_dict(
            single_optimizer.state_dict(), fsdp.OptimStateKeyType.PARAM_NAME, single
        )
        assert sorted(named["state"]) == sorted(names)
        optimizer.load_state_dict(FSDP.shard_full_optim_state_dict(named, model, optim=optimizer))
        optimizer.load_state_dict(
            FSDP.scatter_full_optim_state_dict(named if rank == 0 else None, model, optim=optimizer)
        )


def summoned(rank):
    """Whole parameters for a while, read and written."""
    for use_orig_params in (False, True):
        model = FSDP(network(), auto_wrap_policy=BLOCKS, use_orig_params=use_orig_params)
        plain = dict(network().named_parameters())
        model(samples(0)[0]).sum().backward()
        with FSDP.summon_full_params(model):
            got = dict(model.named_parameters())
            assert sorted(got) == sorted(plain)
            for name, p in plain.items():
                assert torch.equal(got[name], p)
                got[name].data.add_(1)
        with FSDP.summon_full_params(model, writeback=False):
            for name, p in model.named_parameters():
                assert torch.equal(p, plain[name] + 1)
                p.data.zero_()
        same(
            model.state_dict(),
            {
                **network().state_dict(),
                **{k: v + 1 for k, v in network().state_dict().items() if k != "scale"},
            },
        )
        with FSDP.summon_full_params(model, writeback=False, rank0_only=True, offload_to_cpu=True):
            whole = dict(model.named_parameters()).get("first.weight")
            assert (whole is not None and whole.shape == (5, 5)) == (rank == 0)
        model.apply(lambda m: m.weight.data.fill_(2) if isinstance(m, nn.Linear) else None)
        assert torch.equal(model.state_dict()["first.weight"], torch.full((5, 5), 2.0))
        expect(
            "rank0_only",
            NotImplementedError,
            FSDP.summon_full_params(model, rank0_only=True).__enter__,
        )
        if use_orig_params:
            with FSDP.summon_full_params(model, with_grads=True):
                grads = {n: p.grad.clone() for n, p in model.named_parameters()}
            single = network()
            single(samples(0)[0]).sum().backward()
            same(grads, {n: p.grad for n, p in single.named_parameters()})
        model.double()
        assert model.state_dict()["first.weight"].dtype == torch.float64
        model(samples(0)[0].double()).sum().backward()


class Watched(nn.Linear):
    """Remembers the dtypes of what it computed with."""

    def forward(self, x):
        self.seen = x.dtype, self.weight.dtype, self.weight.shape
        return super().forward(x)


def mixed(rank):
    """Parameters are gathered, and gradients reduced, in other dtypes; states stay as they are."""
    torch.manual_seed(0)
    net = nn.Sequential(Watched(4, 6), nn.BatchNorm1d(6), Watched(6, 2))
    kinds = fsdp.MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16)
    model = FSDP(net, mixed_precision=kinds, auto_wrap_policy=ModuleWrapPolicy({Watched}))
    out = model(torch.randn(8, 4))
    assert out.dtype == torch.bfloat16
    assert net[0].module.seen == (torch.bfloat16, torch.bfloat16, (6, 4))
    assert isinstance(net[1], FSDP) and net[1].module.running_mean.dtype == torch.float32
    out.float().sum().backward()
    for p in model.parameters():
        assert p.dtype == p.grad.dtype == torch.float32
    assert model.state_dict()["0.weight"].dtype == torch.float32
    low = fsdp.MixedPrecision(keep_low_precision_grads=True)
    expect("its parameter's dtype", NotImplementedError, FSDP, nn.ReLU(), mixed_precision=low)


def scaled(rank):
    """A step is skipped everywhere where one process has an infinite gradient."""
    model = FSDP(nn.Linear(3, 3, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = ShardedGradScaler("cpu", init_scale=4.0)
    before = model.state_dict()["weight"].clone()
    scaler.scale(model(torch.ones(2, 3)).sum()).backward()
    if rank == 1:
        next(model.parameters()).grad[0] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(model.state_dict()["weight"], before) and scaler.get_scale() == 2.0
    optimizer.zero_grad()
    scaler.scale(model(torch.ones(2, 3)).sum()).backward()
    scaler.step(optimizer)
    torch.testing.assert_close(model.state_dict()["weight"], before - 2)


def wrapped(rank):
    """What policies wrap."""

    def units(model):
        return [n for n, m in model.named_modules() if isinstance(m, FSDP)]

    inner = "_fsdp_wrapped_module."
    net = nn.Sequential(nn.Linear(3, 40), nn.Sequential(nn.ReLU(), nn.Linear(40, 3)))
    small = functools.partial(size_based_auto_wrap_policy, min_num_params=100)
    model = FSDP(net, auto_wrap_policy=small)
    assert units(model) == ["", inner + "0", inner + "1.1"], units(model)
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 3))
    ignored = net[0].weight
    model = FSDP(net, auto_wrap_policy=always_wrap_policy, ignored_states=[ignored])
    assert len(units(model)) == 3
    assert net[0].module.weight is ignored
    assert set(model.state_dict()) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    policy = CustomPolicy(
        lambda m: (
            {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP}
            if isinstance(m, nn.Linear)
            else False
        )
    )
    model = FSDP(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), auto_wrap_policy=policy)
    assert model[0].sharding_strategy == ShardingStrategy.SHARD_GRAD_OP
    assert model.check_is_root() and not model[0].check_is_root()
    with enable_wrap(wrapper_cls=FSDP, use_orig_params=True):
        part = wrap(nn.Linear(2, 2))
    assert isinstance(part, FSDP) and part._use_orig_params
    assert isinstance(wrap(nn.ReLU()), nn.ReLU)
    left = nn.Linear(3, 3)
    model = FSDP(nn.Sequential(nn.Linear(3, 3), left), ignored_modules=[left])
    assert left.weight.shape == (3, 3) and len(FSDP.fsdp_modules(model)) == 1
    with torch.device("meta"):
        net = nn.Linear(4, 4)
    model = FSDP(net, sync_module_states=True)
    assert model.state_dict()["weight"].any()
    frozen = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3).requires_grad_(False), nn.Linear(3, 3))
    model = FSDP(frozen, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    model(torch.ones(2, 3)).sum().backward()
    grads = [p.grad is not None for p in model.parameters()]
    assert grads == [True, False, True], grads
    mixed = nn.Linear(3, 3)
    mixed.bias.requires_grad_(False)
    expect("uniform `requires_grad`", ValueError, FSDP, mixed)
    mixed = FSDP(mixed, use_orig_params=True)
    mixed(torch.ones(2, 3)).sum().backward()
    assert mixed.module.bias.grad is None
    expect(
        "uniform dtype", ValueError, FSDP, nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    )
    # Parameters that are written between forward and backward are noticed.
    model = FSDP(nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)))
    out = model(torch.ones(2, 3, requires_grad=True)).sum()
    with torch.no_grad():
        next(model.parameters()).add_(1)
    expect("modified by an inplace", RuntimeError, out.backward)


def hooked(rank):
    """A hook reduces; eval and several forwards need no backward."""
    size = dist.get_world_size()
    calls = []

    def hook(state, gradient, part=None):
        state.append(gradient.numel())
        dist.reduce_scatter_tensor(part, gradient / size)

    single, model = network(), FSDP(network(), auto_wrap_policy=BLOCKS)
    model.register_comm_hook(calls, hook)
    optimizer = adam(model)
    steps(single, adam(single), 0, 1)
    with torch.no_grad():
        model.eval()(samples(9)[0])
    model.train()(samples(9)[0])
    steps(model, optimizer, rank, size)
    assert len(calls) == 9
    same(model.state_dict(), single.state_dict())
