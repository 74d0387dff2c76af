"""What the processes of the tests of `distributed.checkpoint` do."""

import os

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight import distributed as dist
from rushlight.distributed._shard.sharded_tensor import (
    Shard,
    ShardedTensor,
    init_from_local_shards,
)
from rushlight.distributed.checkpoint.optimizer import load_sharded_optimizer_state_dict
from rushlight.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP
from rushlight.distributed.fsdp import StateDictType
from rushlight.nn.parallel import DistributedDataParallel as DDP

from .distributed_fsdp_workers import BLOCKS, adam, network, same, steps
from .distributed_workers import device_type, expect


def example(value=0):
    return {
        "model": {"w": torch.arange(6.0).reshape(2, 3) + value, "b": torch.ones(4) * value},
        "list": [torch.ones(2) + value, value, {"half": torch.ones(3).bfloat16() * value}],
        "step": value,
        "scalar": torch.tensor(value),
    }


def files(folder):
    return sorted(os.listdir(folder))


def safe(rank, folder):
    """Pieces of processes as safetensors, made into whole tensors, and read in either form."""
    mesh = dist.init_device_mesh(device_type(), (dist.get_world_size(),))
    whole = torch.arange(30.0).reshape(5, 6)

    def state(value):
        return {
            "rows": dist.tensor.distribute_tensor(whole * value, mesh, [dist.tensor.Shard(0)]),
            "columns": dist.tensor.distribute_tensor(whole * value, mesh, [dist.tensor.Shard(1)]),
            "all": torch.ones(3).bfloat16() * value,
        }

    def check(path, **options):
        got = state(0)
        dcp.load(got, storage_reader=dcp.HuggingFaceStorageReader(path, **options))
        assert torch.equal(got["rows"].full_tensor(), whole)
        assert torch.equal(got["columns"].full_tensor(), whole)
        assert torch.equal(got["all"], torch.ones(3).bfloat16())

    pieces, both, every = (f"{folder}{name}" for name in ("pieces", "both", "every"))
    dcp.save(state(1), storage_writer=dcp.HuggingFaceStorageWriter(pieces, save_distributed=True))
    assert files(pieces) == [f"shard-0000{r}-model-00001-of-00001.safetensors" for r in (1, 2)]
    check(pieces)
    chosen = {"rows": 1, "columns": 2, "all": 2}
    writer = dcp.HuggingFaceStorageWriter(both, chosen, 1, True, enable_consolidation=True)
    dcp.save(state(1), storage_writer=writer)
    dist.barrier()
    check(both)
    check(f"{both}/sharded")
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    assert files(both) == [*names, "model.safetensors.index.json", "sharded"]
    assert torch.equal(torch.safetensors.load_sharded(both)["columns"], whole.cpu())
    dcp.hf_storage.consolidate_safetensors_files_on_every_rank(pieces, every, chosen)
    dist.barrier()
    check(every)
    assert files(every) == [*names, "model.safetensors.index.json"]
    missing = {"nothing": 1}
    expect(
        "has nothing",
        ValueError,
        dcp.hf_storage.consolidate_safetensors_files,
        pieces,
        every,
        missing,
    )


def together(rank, folder):
    """Each process writes; what several have is written once; everybody reads."""
    size = dist.get_world_size()
    state = {**example(1), "big": torch.ones(100), "object": {"rank": "text"}}
    metadata = dcp.save(state, checkpoint_id=folder)
    assert metadata.state_dict_metadata["model.w"].size == (2, 3)
    assert len(files(folder)) == size + 1, files(folder)
    other = {**example(5), "big": torch.zeros(100), "object": {"rank": ""}}
    keep = other["model"]["w"]
    dcp.load(other, checkpoint_id=folder)
    assert keep is other["model"]["w"] and torch.equal(keep, state["model"]["w"])
    assert other["step"] == 1 and other["list"][1] == 1 and other["object"]["rank"] == "text"
    assert torch.equal(other["list"][2]["half"], torch.ones(3).bfloat16())

    # Saved again, it replaces; names must be there; sizes must agree.
    dcp.save(example(2), storage_writer=dcp.FileSystemWriter(folder, single_file_per_rank=False))
    dcp.load(other := example(0), storage_reader=dcp.FileSystemReader(folder))
    assert other["step"] == 2
    expect(
        "Missing key in checkpoint state_dict: new.",
        dcp.CheckpointException,
        dcp.load,
        {"new": torch.ones(1)},
        checkpoint_id=folder,
    )
    partial = {"new": torch.ones(1), "scalar": torch.tensor(0)}
    dcp.load(partial, checkpoint_id=folder, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert partial["scalar"] == 2 and partial["new"] == 1
    expect(
        "Size mismatch",
        dcp.CheckpointException,
        dcp.load,
        {"scalar": torch.ones(1)},
        checkpoint_id=folder,
    )
    expect(
        "already exists",
        dcp.CheckpointException,
        dcp.save,
        example(0),
        storage_writer=dcp.FileSystemWriter(folder, overwrite=False),
    )

    # What one process raises is raised on all, with its rank, and nothing is replaced.
    bad = {**example(3), "step": (lambda: 0) if rank == 0 else 0}
    try:
        dcp.save(bad, checkpoint_id=folder)
    except dcp.CheckpointException as error:
        assert list(error.failures) == [0] and "RANK 0" in str(error)
    else:
        raise AssertionError("a lambda was saved")
    dcp.load(other := example(0), checkpoint_id=folder)
    assert other["step"] == 2

    # While the state changes.
    state = example(4)
    future = dcp.async_save(state, checkpoint_id=folder)
    state["model"]["w"].zero_()
    for _ in range(20):
        dist.all_reduce(torch.ones(1))
    future.result()
    dcp.load(other := example(0), checkpoint_id=folder)
    assert torch.equal(other["model"]["w"], example(4)["model"]["w"]) and other["step"] == 4


class App:
    """A model and its optimiser, as something with a state."""

    def __init__(self, model, optimizer, options):
        self.model, self.optimizer, self.options = model, optimizer, options

    def state_dict(self):
        model, optim = get_state_dict(self.model, self.optimizer, options=self.options)
        return {"model": model, "optim": optim}

    def load_state_dict(self, state):
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optim"],
            options=self.options,
        )


def wrappings(kind):
    if kind == "ddp":
        return DDP(network())
    if kind == "plain":
        return network()
    return FSDP(network(), auto_wrap_policy=BLOCKS, use_orig_params=kind == "fsdp_orig")


def rewrapped(rank, folder):
    """A checkpoint goes from a model that is wrapped in one way to one in another."""
    size = dist.get_world_size()
    kinds = ("ddp", "fsdp", "fsdp_orig")
    for flat in (False, True):
        options = StateDictOptions(full_state_dict=True, flatten_optimizer_state_dict=flat)
        for kind in kinds:
            model = wrappings(kind)
            optimizer = adam(model)
            steps(model, optimizer, rank, size)
            want = {k: v.clone() for k, v in get_model_state_dict(model, options=options).items()}
            assert list(want) == list(network().state_dict())
            dcp.save({"app": App(model, optimizer, options)}, checkpoint_id=folder)
            steps(model, optimizer, rank, size, begin=3)
            after = get_model_state_dict(model, options=options)
            for other in kinds:
                loaded = wrappings(other)
                with torch.no_grad():
                    for p in loaded.parameters():
                        p.mul_(3)
                again = adam(loaded)
                dcp.load({"app": App(loaded, again, options)}, checkpoint_id=folder)
                same(get_model_state_dict(loaded, options=options), want)
                steps(loaded, again, rank, size, begin=3)
                same(get_model_state_dict(loaded, options=options), after)
    # From the first process, which alone has it.
    first = StateDictOptions(full_state_dict=True, cpu_offload=True, broadcast_from_rank0=True)
    model = wrappings("fsdp")
    optimizer = adam(model)
    steps(model, optimizer, rank, size)
    state = get_state_dict(model, optimizer, options=first)
    assert bool(state[0]) == bool(state[1]) == (rank == 0)
    other = wrappings("fsdp_orig")
    again = adam(other)
    set_state_dict(
        other, again, model_state_dict=state[0], optim_state_dict=state[1], options=first
    )
    steps(model, optimizer, rank, size, begin=3)
    steps(other, again, rank, size, begin=3)
    same(other.state_dict(), model.state_dict())
    small = StateDictOptions(ignore_frozen_params=True, strict=False)
    net = network()
    net.first.weight.requires_grad_(False)
    state = get_model_state_dict(net, options=small)
    assert "first.weight" not in state and "first.bias" in state
    got = get_model_state_dict(
        net, submodules={net.first}, options=StateDictOptions(keep_submodule_prefixes=False)
    )
    assert list(got) == ["weight", "bias"]
    keys = set_model_state_dict(net, {**state, "more": torch.ones(1)}, options=small)
    assert keys.unexpected_keys == ["more"]


def _sharded_app(kind):
    model = FSDP(network(), auto_wrap_policy=BLOCKS, use_orig_params=kind == "fsdp_orig")
    optimizer = adam(model)
    return model, optimizer, App(model, optimizer, StateDictOptions())


def save_rows(rank, folder):
    """Each process saves its rows of every parameter and state."""
    model, optimizer, app = _sharded_app("fsdp")
    steps(model, optimizer, rank, dist.get_world_size(), count=2)
    state = app.state_dict()
    weight = state["model"]["first.weight"]
    assert isinstance(weight, ShardedTensor) and weight.size() == (5, 5)
    assert weight.full_tensor().shape == (5, 5)
    out = torch.zeros(5, 5) if rank == 0 else None
    weight.gather(0, out)
    if rank == 0:
        assert torch.equal(out, weight.full_tensor()) if dist.get_world_size() == 1 else out.any()
    dcp.save({"app": app}, checkpoint_id=folder)
    dcp.async_save({"app": app}, checkpoint_id=folder).result()
    dcp.save({"model": state["model"], "optim": state["optim"]}, checkpoint_id=folder + "_optim")
    steps(model, optimizer, rank, dist.get_world_size(), count=1, begin=2)
    dcp.save({"after": model.state_dict()}, checkpoint_id=folder + "_after")


def load_rows(rank, folder):
    """Any number of processes loads them, and goes on."""
    size = dist.get_world_size()
    for kind in ("fsdp", "fsdp_orig"):
        model, optimizer, app = _sharded_app(kind)
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(3)
        dcp.load({"app": app}, checkpoint_id=folder)
        steps(model, optimizer, rank, size, count=1, begin=2)
        want = {"after": {k: torch.zeros_like(v) for k, v in model.state_dict().items()}}
        dcp.load(want, checkpoint_id=folder + "_after")
        same(model.state_dict(), want["after"])
    # An optimiser's state without one to load into.
    model, optimizer, _ = _sharded_app("fsdp")
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        states = {"model": model.state_dict()}
        found = load_sharded_optimizer_state_dict(
            states["model"], "optim", dcp.FileSystemReader(folder + "_optim")
        )
        FSDP.optim_state_dict_to_load(model, optimizer, found["optim"], load_directly=True)
    dcp.load(states, checkpoint_id=folder + "_optim")
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        model.load_state_dict(states["model"])
    steps(model, optimizer, rank, size, count=1, begin=2)
    same(model.state_dict(), want["after"])
    boxes = [Shard.from_tensor_and_offsets(torch.full((2, 3), float(rank)), [2 * rank, 0], rank)]
    made = init_from_local_shards(boxes, 2 * size, 3)
    assert made.full_tensor()[:, 0].tolist() == [r // 2 for r in range(2 * size)]
    assert made.clone().local_tensor().shape == (2, 3) and made.numel() == 6 * size
