"""Passes with and without synchronisation in any order, each over some of the layers.

One process computes by hand what all should have: the mean over the processes of what each has added
up, for every layer that any of them has used since the last synchronised pass.
"""

import random

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks
from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP
from rushlight.distributed.fsdp import fully_shard
from rushlight.distributed.optim import ZeroRedundancyOptimizer
from rushlight.nn.parallel import DistributedDataParallel as DDP

from .distributed_workers import expect

LAYERS = 4


class Parts(nn.Module):
    """The sum of what those layers give that it is told to use."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.ModuleList(nn.Linear(3, 2 + i) for i in range(LAYERS))

    def forward(self, x, use):
        return sum(self.layers[i](x).tanh().sum() for i in use)


class Pass:
    """What one pass does; all processes draw the same."""

    def __init__(self, draw, ranks, alike, fixed):
        def subset():
            return sorted(draw.sample(range(LAYERS), draw.randint(1, LAYERS)))

        same = fixed or subset()
        self.use = [same if alike or fixed else subset() for _ in range(ranks)]
        self.syncs = draw.random() < 0.5
        self.steps = self.syncs and draw.random() < 0.5
        self.to_none = draw.random() < 0.5
        self.seeds = [draw.randrange(1 << 30) for _ in range(ranks)]

    def inputs(self, rank):
        return torch.randn(5, 3, generator=torch.Generator("cpu").manual_seed(self.seeds[rank]))


class ByHand:
    """All processes in one."""

    def __init__(self, ranks):
        self.model = Parts()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.names = [name for name, _ in self.model.named_parameters()]
        self.own = [dict.fromkeys(self.names) for _ in range(ranks)]  # gradients of each
        self.used = set()

    def add(self, step):
        for rank, own in enumerate(self.own):
            loss = self.model(step.inputs(rank), step.use[rank])
            parameters = dict(self.model.named_parameters())
            grads = torch.autograd.grad(loss, parameters.values(), allow_unused=True)
            for name, grad in zip(self.names, grads, strict=True):
                if grad is not None:
                    own[name] = grad if own[name] is None else own[name] + grad
                    self.used.add(name)

    def synchronise(self):
        for name in self.used:
            some = next(own[name] for own in self.own if own[name] is not None)
            parts = [torch.zeros_like(some) if o[name] is None else o[name] for o in self.own]
            mean = torch.stack(parts).mean(0)
            for own in self.own:
                own[name] = mean
        self.used.clear()

    def step(self, to_none):
        for name, p in self.model.named_parameters():
            p.grad = self.own[0][name]
        self.optimizer.step()
        for own in self.own:
            for name in self.names:
                if own[name] is not None:
                    own[name] = None if to_none else torch.zeros_like(own[name])


def same(got, want, what):
    for name, value in want.items():
        if value is None:
            assert got[name] is None, (what, name)
        else:
            assert got[name] is not None, (what, name)
            torch.testing.assert_close(got[name], value, msg=lambda m, n=name: f"{what} {n}: {m}")


def sequences(rank, seeds, **settings):
    """Under DDP: subsets differ between processes, unless the graph is static."""
    ranks = dist.get_world_size()
    hook, zero = settings.pop("hook", False), settings.pop("zero", False)
    for seed in range(seeds):
        draw = random.Random(seed)
        fixed = settings.get("static_graph") and sorted(draw.sample(range(LAYERS), 2))
        hand = ByHand(ranks)
        model = DDP(Parts(), **settings)
        if hook:
            model.register_comm_hook(None, default_hooks.allreduce_hook)
        kind = {"lr": 0.1, "momentum": 0.9}
        if zero:
            optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, **kind)
        else:
            optimizer = torch.optim.SGD(model.parameters(), **kind)
        for number in range(12):
            step = Pass(draw, ranks, False, fixed)
            hand.add(step)
            if step.syncs:
                model(step.inputs(rank), step.use[rank]).backward()
                hand.synchronise()
            else:
                with model.no_sync():
                    model(step.inputs(rank), step.use[rank]).backward()
            grads = {name: p.grad for name, p in model.module.named_parameters()}
            same(grads, hand.own[rank], (settings, seed, number, step.use, step.syncs))
            if step.steps:
                hand.step(step.to_none)
                optimizer.step()
                optimizer.zero_grad(set_to_none=step.to_none)
                same(
                    dict(model.module.named_parameters()),
                    dict(hand.model.named_parameters()),
                    number,
                )


def sharded(rank, seeds, kind):
    """Under FSDP and fully_shard: all processes use the same layers."""
    ranks = dist.get_world_size()
    for seed in range(seeds):
        draw = random.Random(seed)
        hand = ByHand(ranks)
        model = Parts()
        if kind == "fully_shard":
            for layer in model.layers:
                fully_shard(layer)
            fully_shard(model)
        else:
            for i, layer in enumerate(model.layers):
                model.layers[i] = FSDP(layer, use_orig_params=True)
            model = FSDP(model, use_orig_params=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for number in range(12):
            step = Pass(draw, ranks, True, None)
            hand.add(step)
            if kind == "fully_shard":
                model.set_requires_gradient_sync(step.syncs)
                model(step.inputs(rank), step.use[rank]).backward()
            elif step.syncs:
                model(step.inputs(rank), step.use[rank]).backward()
            else:
                with model.no_sync():
                    model(step.inputs(rank), step.use[rank]).backward()
            if not step.syncs:
                continue
            hand.synchronise()
            if step.steps:
                hand.step(step.to_none)
                optimizer.step()
                optimizer.zero_grad(set_to_none=step.to_none)
            what = kind, seed, number, step.use
            if kind == "fully_shard":
                named = dict(model.named_parameters())
                got = {n: p.full_tensor() for n, p in named.items()}
                grads = {
                    n: None if p.grad is None else p.grad.full_tensor() for n, p in named.items()
                }
            else:
                with FSDP.summon_full_params(model, with_grads=True):
                    plain = {
                        n.replace("_fsdp_wrapped_module.", ""): p
                        for n, p in model.named_parameters()
                    }
                    got = {n: p.detach().clone() for n, p in plain.items()}
                    grads = {
                        n: None if p.grad is None else p.grad.clone() for n, p in plain.items()
                    }
            same(got, dict(hand.model.named_parameters()), what)
            for name, value in hand.own[0].items():
                if value is not None and value.any():
                    same(grads, {name: value}, what)


def all_kinds(rank, seeds):
    """Every way to synchronise."""
    for settings in (
        {"find_unused_parameters": True},
        {"find_unused_parameters": True, "gradient_as_bucket_view": True},
        {"find_unused_parameters": True, "bucket_cap_mb": 0.0001},
        {"find_unused_parameters": True, "bucket_cap_mb": 0.0001, "gradient_as_bucket_view": True},
        {"find_unused_parameters": True, "hook": True},
        {"find_unused_parameters": True, "gradient_as_bucket_view": True, "hook": True},
        {"find_unused_parameters": True, "zero": True},
        {"static_graph": True},
        {"static_graph": True, "gradient_as_bucket_view": True},
        {"static_graph": True, "find_unused_parameters": True, "zero": True},
    ):
        sequences(rank, seeds, **settings)
    sharded(rank, seeds, "FSDP")
    sharded(rank, seeds, "fully_shard")


def accused(rank):
    """Who was left out is named, not who comes again, with what to do."""
    for how in ("in no_sync", "twice", "next"):
        model = DDP(Parts())
        loss = model(torch.ones(1, 3), [0, 1, 3])
        loss.backward(retain_graph=True)
        try:
            if how == "twice":
                loss.backward()
            elif how == "next":
                model(torch.ones(1, 3), [0, 1, 3])
            else:
                with model.no_sync():
                    model(torch.ones(1, 3), [0, 1, 3]).backward()
        except RuntimeError as error:
            said = str(error)
        assert "find_unused_parameters=True" in said, (how, said)
        assert f"for rank {rank}: layers.2.weight, layers.2.bias" in said, (how, said)
        assert ("only comes again" in said) == (how == "twice"), (how, said)
    # The gradients of one forward may come by two backwards.
    model = DDP(Pair())
    first, second = model(torch.ones(1, 3) * (rank + 1))
    first.backward()
    second.backward()
    sizes = torch.tensor([float(r + 1) for r in range(dist.get_world_size())])
    for p in (model.module.a.weight, model.module.b.weight):
        torch.testing.assert_close(p.grad, torch.full((1, 3), sizes.mean().item()))
    model(torch.ones(1, 3))  # nothing is left


def outputs_without_use(rank):
    """A loss of some outputs: gradients of all ranks count, those of the others are none."""
    size = dist.get_world_size()
    sizes = torch.tensor([float(r + 1) for r in range(size)])
    for settings in ({}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.00001}):
        model = DDP(Pair(), find_unused_parameters=True, **settings)
        a, b = model.module.a.weight, model.module.b.weight
        for _ in range(3):
            model.zero_grad()
            model(torch.ones(1, 3) * (rank + 1))[0].backward()
            torch.testing.assert_close(a.grad, torch.full((1, 3), sizes.mean().item()))
            assert b.grad is None
        for _ in range(2):  # another one on each rank
            model.zero_grad()
            model(torch.ones(1, 3) * (rank + 1))[min(rank, 1)].backward()
            torch.testing.assert_close(a.grad, torch.full((1, 3), sizes[0].item() / size))
            torch.testing.assert_close(b.grad, torch.full((1, 3), sizes[1:].sum().item() / size))
        with model.no_sync():
            model(torch.ones(1, 3))[1].backward()
        first, second = model(torch.ones(1, 3))
        first.backward()
        expect("came by a second backward", RuntimeError, second.backward)
        x = torch.ones(1, 3, requires_grad=True)
        model.zero_grad()
        first, second = model(x * (rank + 1))  # a penalty: the first backward is of no parameter
        (slope,) = torch.autograd.grad(first, x, create_graph=True)
        (first + slope.pow(2).sum() / 2).backward()
        want = sizes.mean() + model.module.a.weight.detach() * sizes.pow(2).mean()
        torch.testing.assert_close(a.grad, want)


class Pair(nn.Module):
    """Two outputs that have no parameter in common."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x):
        return self.a(x).sum(), self.b(x).sum()
