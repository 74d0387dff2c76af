"""What the processes of the tests of `DistributedDataParallel` do: hooks, local steps, and what overlaps with backward."""

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks
from rushlight.nn.parallel import DistributedDataParallel as DDP

from .distributed_ddp_workers import network, same_everywhere, samples, train
from .distributed_workers import expect


def hooks(rank):
    """Communication hooks, buffers, parameters that are left out."""
    size = dist.get_world_size()
    x, y = (t.chunk(size)[rank] for t in samples(0))

    def gradients(hook=None, state=None):
        model = DDP(network(), bucket_cap_mb=0.002)
        if hook is not None:
            model.register_comm_hook(state, hook)
        for _ in range(2):
            model.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
        return [p.grad for p in model.parameters()]

    want = gradients()
    assert all(map(torch.equal, gradients(default_hooks.allreduce_hook), want))
    seen = []

    def doubled(state, bucket: dist.GradBucket) -> torch.futures.Future:
        assert sum(g.numel() for g in bucket.gradients()) == bucket.buffer().numel()
        seen.append((state, bucket.index(), bucket.is_last()))
        return default_hooks.allreduce_hook(None, bucket).then(lambda f: f.value() * 2)

    for got, one in zip(gradients(doubled, "state"), want, strict=True):
        torch.testing.assert_close(got, 2 * one)
    assert seen[0] == ("state", 0, False) and seen[-1][2]
    for hook in (
        default_hooks.fp16_compress_hook,
        default_hooks.bf16_compress_hook,
        default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook),
        default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook),
    ):
        for got, one in zip(gradients(hook), want, strict=True):
            torch.testing.assert_close(got, one, rtol=2e-2, atol=1e-3)
    model = DDP(nn.BatchNorm1d(4))
    expect("must be callable", TypeError, model.register_comm_hook, None, 1)
    with torch.no_grad():
        model.module.running_mean.fill_(rank)
    model(torch.randn(5, 4))
    model(torch.randn(5, 4))
    model.train(False)
    model(torch.randn(5, 4))
    assert same_everywhere([model.module.running_mean])  # rank 0's
    kept = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    DDP._set_params_and_buffers_to_ignore_for_model(kept, ["0.weight"])
    kept[0].weight.data.fill_(rank)
    model = DDP(kept)
    assert kept[0].weight[0, 0].item() == rank
    model(torch.full((1, 2), 1.0 + rank)).sum().backward()
    assert not same_everywhere([kept[0].weight.grad]) and same_everywhere([kept[1].weight.grad])


def shown(rank):
    """Profilers show what goes on between processes."""
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(torch.ones(2, 3))
        dist.barrier()
    name = f"{dist.get_backend()}:all_reduce"
    (event,) = [e for e in profile.function_events if e.name == name]
    assert event.is_async and event.input_shapes == [[2, 3]] and event.cpu_time >= 0


def local_sgd(rank, hierarchical):
    """Local SGD equals what one process computes of all."""
    from rushlight.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local
    from rushlight.distributed.algorithms.model_averaging import (
        averagers,
        hierarchical_model_averager,
        utils,
    )
    from rushlight.distributed.optim import PostLocalSGDOptimizer

    size, start, count = dist.get_world_size(), 2, 9

    def sample(step, r):
        g = torch.Generator().manual_seed(10 * step + r)
        return torch.randn(4, 3, generator=g)

    def net():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

    def mean(lists):
        return [sum(each) / len(lists) for each in zip(*lists, strict=True)]

    model = DDP(net())
    pairs, _ = dist.new_subgroups(2)
    if hierarchical:
        state = local.PostLocalSGDState(None, pairs, start)
        sizes = {2: 2, 4: size}
        averager = hierarchical_model_averager.HierarchicalModelAverager(sizes, start)
    else:
        state = local.PostLocalSGDState(None, None, start, post_local_gradient_allreduce=False)
        averager = averagers.PeriodicModelAverager(3, start)
    model.register_comm_hook(state, local.post_localSGD_hook)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), averager)

    nets = [net() for _ in range(size)]
    for step in range(count):
        model(sample(step, rank)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        grads = [
            torch.autograd.grad(n(sample(step, r)).square().mean(), list(n.parameters()))
            for r, n in enumerate(nets)
        ]
        team = size if step < start else 2 if hierarchical else 1
        with torch.no_grad():
            for r, n in enumerate(nets):
                begin = r // team * team
                for p, g in zip(n.parameters(), mean(grads[begin : begin + team]), strict=True):
                    p -= 0.1 * g
            team = 1
            if step >= start and hierarchical:
                team = size if step % 4 == 0 else 2 if step % 2 == 0 else 1
            elif step >= start:
                team = size if (step - start) % 3 == 0 else 1
            all_params = [[p.clone() for p in n.parameters()] for n in nets]
            for r, n in enumerate(nets):
                begin = r // team * team
                means = mean(all_params[begin : begin + team])
                for p, value in zip(n.parameters(), means, strict=True):
                    p.copy_(value)
    for p, q in zip(model.parameters(), nets[rank].parameters(), strict=True):
        torch.testing.assert_close(p, q)
    kept = optimizer.state_dict()
    assert kept["step"] == averager.step == count
    averager.step = 0
    optimizer.load_state_dict(kept)
    assert averager.step == count
    expect("non-negative", ValueError, averagers.PeriodicModelAverager, 2, -1)
    expect("positive", ValueError, averagers.PeriodicModelAverager, 0)
    hierarchical_of = hierarchical_model_averager.HierarchicalModelAverager
    expect("not be empty", ValueError, hierarchical_of)
    expect("equal to the size", ValueError, hierarchical_of, {1: 1})
    expect("not supported", NotImplementedError, utils.get_params_to_average, [3])


def hooks_by_name(rank):
    """Each gives the gradients that its hook gives."""
    from rushlight.distributed.algorithms.ddp_comm_hooks import (
        DDPCommHookType,
        register_ddp_comm_hook,
    )

    x = torch.ones(2, 3) * (rank + 1)
    for kind in DDPCommHookType:
        torch.manual_seed(0)
        model = DDP(nn.Linear(3, 1, bias=False))
        register_ddp_comm_hook(kind, model)
        model(x).sum().backward()
        want = 2.0 * (rank + 1) if kind is DDPCommHookType.NOOP else 3.0
        torch.testing.assert_close(model.module.weight.grad, torch.full((1, 3), want))


def overlapped(rank):
    """Steps of ZeroRedundancyOptimizer in backward equal those of an optimiser after it."""
    from rushlight.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook
    from rushlight.distributed.optim import ZeroRedundancyOptimizer

    size = dist.get_world_size()

    def loss(model, step):
        x, y = (t.chunk(size)[rank] for t in samples(step))
        return nn.functional.mse_loss(model(x), y)

    for hook, settings, shard, kind, options in (
        (ddp_zero_hook.hook_with_zero_step, {}, False, torch.optim.Adam, {"lr": 0.01}),
        (
            ddp_zero_hook.hook_with_zero_step,
            {"static_graph": True},
            True,
            torch.optim.SGD,
            {"lr": 0.1, "momentum": 0.9},
        ),
        (
            ddp_zero_hook.hook_with_zero_step_interleaved,
            {"gradient_as_bucket_view": True},
            False,
            torch.optim.AdamW,
            {"lr": 0.01},
        ),
        (
            ddp_zero_hook.hook_with_zero_step_interleaved,
            {"find_unused_parameters": True},
            True,
            torch.optim.RMSprop,
            {"lr": 0.01},
        ),
    ):
        plain = DDP(network(), bucket_cap_mb=0.002, **settings)
        want = kind(plain.parameters(), **options)
        model = DDP(network(), bucket_cap_mb=0.002, **settings)
        zero = ZeroRedundancyOptimizer(model.parameters(), kind, overlap_with_ddp=True, **options)
        model.register_comm_hook(None, hook(default_hooks.allreduce_hook, model, zero, shard))
        expect("fully initialized", RuntimeError, zero.consolidate_state_dict)
        for step in range(6):
            if step == 5:
                want.param_groups[0]["lr"] = zero.param_groups[0]["lr"] = 0.003
            for each in (plain, model):
                each.zero_grad()
                loss(each, step).backward()
            if step >= (3 if "static_graph" in settings else 2):
                want.step()
            assert zero.step() is None
            assert step < 2 or len(model.reducer.buckets) > 1
            for a, b in zip(plain.parameters(), model.parameters(), strict=True):
                torch.testing.assert_close(a, b)
                torch.testing.assert_close(a.grad, b.grad)
            assert same_everywhere(model.parameters())
        mine = sum(p.numel() for p in zero.optim.param_groups[0]["params"])
        assert 0 < mine < sum(p.numel() for p in model.parameters())
        zero.consolidate_state_dict(to=1)
        if rank == 1:
            kept = zero.state_dict()
            assert list(kept["state"]) == list(want.state_dict()["state"])
            for state, other in zip(
                kept["state"].values(), want.state_dict()["state"].values(), strict=True
            ):
                assert list(state) == list(other)
                for name, value in state.items():
                    torch.testing.assert_close(value, other[name])
            zero.load_state_dict(kept)
    parameters = list(network().parameters())
    expect("single parameter group", RuntimeError, zero.add_param_group, {"params": parameters})
    other = ZeroRedundancyOptimizer(parameters, torch.optim.SGD, lr=0.1)
    expect(
        "overlap_with_ddp=True", ValueError, ddp_zero_hook.hook_with_zero_step, None, model, other
    )
    expect("iterable", TypeError, ZeroRedundancyOptimizer, parameters[0], torch.optim.SGD)
    expect("iterable", TypeError, ZeroRedundancyOptimizer, [1], torch.optim.SGD)
    expect("empty", ValueError, ZeroRedundancyOptimizer, [], torch.optim.SGD)
    mixed = [parameters[0], parameters[1].double()]
    expect("same dense type", ValueError, ZeroRedundancyOptimizer, mixed, torch.optim.SGD)
    view = ZeroRedundancyOptimizer(
        parameters, torch.optim.SGD, parameters_as_bucket_view=True, lr=0.1
    )
    assert len({p.untyped_storage().data_ptr() for p in parameters}) == size
    plain = network()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for p, q in zip(parameters, plain.parameters(), strict=True):
        p.grad, q.grad = torch.ones_like(p), torch.ones_like(q)
    view.step()
    optimizer.step()
    for p, q in zip(parameters, plain.parameters(), strict=True):
        assert torch.equal(p, q)


def in_backward(rank):
    """Optimisers that step in backward, with gradients of all processes, and delayed reductions."""
    from rushlight.distributed.algorithms.ddp_comm_hooks.optimizer_overlap_hooks import (
        _hook_then_optimizer,
        _OptimizerHookState,
    )
    from rushlight.distributed.optim import (
        _apply_optimizer_in_backward,
        _get_in_backward_optimizers,
        as_functional_optim,
    )

    size = dist.get_world_size()
    want = train(DDP(network()), rank, size)

    def equal(got):
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b)

    settings = {"lr": 0.1, "momentum": 0.9}
    for view in (False, True):
        net = network()
        _apply_optimizer_in_backward(torch.optim.SGD, net.parameters(), settings)
        assert len(_get_in_backward_optimizers(net)) == len(list(net.parameters()))
        model = DDP(net, bucket_cap_mb=0.002, gradient_as_bucket_view=view)
        for step in range(4):
            x, y = (t.chunk(size)[rank] for t in samples(step))
            nn.functional.mse_loss(model(x), y).backward()
            assert all(p.grad is None for p in net.parameters())
        equal(net.parameters())

    model = DDP(network(), bucket_cap_mb=0.002)
    functional = as_functional_optim(torch.optim.SGD, **settings)
    state = _OptimizerHookState(functional, model.parameters())
    model.register_comm_hook(None, _hook_then_optimizer(default_hooks.allreduce_hook, state))
    for step in range(4):
        x, y = (t.chunk(size)[rank] for t in samples(step))
        model.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
    equal(model.parameters())
    expect("step_param", ValueError, _OptimizerHookState, torch.optim.SGD([torch.ones(1)]))
    expect("functional counterpart", ValueError, as_functional_optim, torch.optim.ASGD)

    def first_without_bias():
        net = network()
        net[0].bias = None
        return net

    want = train(DDP(first_without_bias()), rank, size)
    for delayed in (("2.weight", "4.bias"), tuple(dict(first_without_bias().named_parameters()))):
        net = first_without_bias()
        if rank == 1:
            net[4].bias.data.zero_()  # rank 0's counts
        named = [(name, p) for name, p in net.named_parameters() if name in delayed]
        last = net[0].weight
        model = DDP(net, delay_all_reduce_named_params=named, param_to_hook_all_reduce=last)
        equal(train(model, rank, size))
    expect("given together", ValueError, lambda: DDP(network(), param_to_hook_all_reduce=last))

    model = DDP(network(), bucket_cap_mb_list=[0.0001, 0.002, 0.01])
    want = train(DDP(network()), rank, size)
    equal(train(model, rank, size))
    sizes = [4 * bucket.flat.numel() for bucket in model.reducer.buckets]
    assert len(sizes) == 3 and sum(sizes) == 4 * 1563, sizes
