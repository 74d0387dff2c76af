"""`distributed` without processes: what programs ask is answered, what is not there refuses."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn


def test_before_there_is_a_group():
    assert dist.is_available() and not dist.is_initialized()
    assert not (dist.is_nccl_available() or dist.is_ucc_available())
    assert dist.is_backend_available("gloo") == dist.is_gloo_available()
    assert dist.is_backend_available("mpi") == dist.is_mpi_available()
    assert not dist.is_backend_available("nccl") and not dist.is_torchelastic_launched()
    assert dist.group.WORLD is None and dist.GroupMember.WORLD is None
    assert dist.ReduceOp.SUM is not dist.ReduceOp.MAX and dist.Backend("NCCL") == "nccl"
    assert dist.default_pg_timeout.total_seconds() == 1800
    assert str(dist.BackendConfig("gloo")) == "cpu:gloo,cuda:gloo"
    with pytest.raises(ValueError, match="Duplicate device type cpu"):
        dist.BackendConfig("cpu:gloo,cpu:mpi")


def test_levels_of_checks(monkeypatch):
    monkeypatch.setattr(dist._kinds, "_debug_level", None)
    assert dist.get_debug_level() is dist.DebugLevel.OFF
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "much")
    with pytest.raises(ValueError, match="must be OFF, INFO, or DETAIL"):
        dist.set_debug_level_from_env()


def test_reductions_are_values():
    op = dist.ReduceOp.MAX
    scaled = dist._make_nccl_premul_sum(2.0)
    for value in (op, scaled):
        assert copy.deepcopy(value) == value and pickle.loads(pickle.dumps(value)) == value
        assert isinstance(value, dist.ReduceOp) and value != "abc"
    assert scaled != dist.ReduceOp.PREMUL_SUM and dist.ReduceOp(op) == op


def test_without_gloo(monkeypatch):
    monkeypatch.setattr(dist._world._kinds, "is_gloo_available", lambda: False)
    with pytest.raises(RuntimeError, match="install libgloo-dev"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


@pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo")
def test_what_cannot_begin():
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        dist.init_process_group("gloo")
    with pytest.raises(RuntimeError, match="No rendezvous handler for http://"):
        dist.init_process_group("gloo", init_method="http://x", rank=0, world_size=1)
    with pytest.raises(RuntimeError, match="doesn't have UCC built in"):
        dist.init_process_group("ucc", store=dist.HashStore(), rank=0, world_size=1)
    assert not dist.is_initialized()


def test_launched_processes_are_known(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    assert dist.is_torchelastic_launched()


def test_before_a_group_is_made():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.get_rank()
    assert not isinstance(nn.Linear(2, 2), nn.parallel.DistributedDataParallel)
    assert not isinstance(torch.ones(1), torch.distributed.tensor.DTensor)


def test_settings_are_plain_data():
    from rushlight.distributed import fsdp
    from rushlight.distributed.checkpoint.state_dict import StateDictOptions
    from rushlight.distributed.tensor import Partial, Replicate, Shard

    assert fsdp.FullStateDictConfig(True, True).rank0_only
    assert fsdp.FullOptimStateDictConfig().offload_to_cpu
    assert fsdp.MixedPrecision(param_dtype=torch.bfloat16).buffer_dtype is None
    assert fsdp.MixedPrecisionPolicy().cast_forward_inputs
    assert fsdp.CPUOffloadPolicy().pin_memory and not fsdp.CPUOffload().offload_params
    assert fsdp.ShardingStrategy["FULL_SHARD"] is fsdp.ShardingStrategy.FULL_SHARD
    assert StateDictOptions(full_state_dict=True).strict
    assert Shard(1) == Shard(1) and Shard(1).is_shard(1) and not Shard(1).is_shard(0)
    assert Replicate().is_replicate() and not Replicate().is_partial()
    assert Partial().is_partial("sum") and not Partial().is_partial("avg")


def test_policies_choose_modules():
    from rushlight.distributed.fsdp import wrap

    layer, net = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))
    assert wrap.always_wrap_policy() and wrap.transformer_auto_wrap_policy(net, True, 1, {nn.ReLU})
    assert wrap.transformer_auto_wrap_policy(layer, False, 6, {nn.Linear})
    assert not wrap.transformer_auto_wrap_policy(net, False, 6, {nn.Linear})
    assert wrap.lambda_auto_wrap_policy(layer, False, 6, lambda m: m is layer)
    assert wrap.size_based_auto_wrap_policy(layer, False, 6, min_num_params=6)
    assert not wrap.size_based_auto_wrap_policy(layer, True, 5, min_num_params=6)
    assert not wrap.size_based_auto_wrap_policy(nn.ModuleList(), False, 9, min_num_params=6)
    policy = wrap.ModuleWrapPolicy({nn.Linear})
    assert policy(layer, recurse=False) and not policy(net, recurse=False) and policy(net, True)
    assert "Linear" in repr(policy)
    assert wrap.CustomPolicy(lambda m: m is net)(net, False)
    assert wrap._or_policy(
        layer, False, 6, [policy.__call__ and (lambda **k: k["module"] is layer)]
    )


def test_wrapped_layers_compute_again_with_the_same_names_and_numbers():
    from rushlight.distributed.algorithms._checkpoint.checkpoint_wrapper import (
        ActivationWrapper,
        CheckpointImpl,
        apply_activation_checkpointing,
        checkpoint_wrapper,
    )

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    states, x = net.state_dict(), torch.randn(5, 3)
    net(x).sum().backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    apply_activation_checkpointing(net, check_fn=lambda m: isinstance(m, nn.Linear))
    assert isinstance(net[0], ActivationWrapper) and not isinstance(net[1], ActivationWrapper)
    assert list(net.state_dict()) == list(states) and net[0].in_features == 3
    assert [name for name, _ in net[0].named_parameters()] == ["weight", "bias"]
    net.load_state_dict(states)
    net(x).sum().backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), expected, strict=True))

    class Keyword(nn.Module):
        def forward(self, x, *, y):
            return x * y

    for kind in CheckpointImpl:
        a = torch.ones(2, requires_grad=True)
        wrapped = checkpoint_wrapper(Keyword(), checkpoint_impl=kind)
        wrapped(a, y=torch.full((2,), 3.0)).sum().backward()
        assert a.grad.tolist() == [3, 3]
    own = checkpoint_wrapper(
        nn.ReLU(), checkpoint_fn=lambda module, x, plus: module(x) + plus, plus=1
    )
    assert own(torch.ones(1)).item() == 2
    assert checkpoint_wrapper(nn.Sequential(nn.ReLU()))[0].__class__ is nn.ReLU
    with pytest.raises(ValueError, match="forward"):
        ActivationWrapper(nn.ReLU())(1)
