"""What the processes of the tests of faults do: they train and save until one of them is killed."""

import faulthandler
import hashlib
import os
import pathlib
import traceback
import warnings
from datetime import timedelta

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP
from rushlight.nn.parallel import DistributedDataParallel as DDP

from .distributed_fsdp_workers import BLOCKS, adam, network, samples

WHOLE = StateDictOptions(full_state_dict=True)
KINDS = ("ddp", "fsdp", "async")


def train(rank, size, folder, attempt, kind, last, where):
    """Go on from the last checkpoint up to step `last`; what is raised is left in a file."""
    folder = pathlib.Path(folder)
    faulthandler.dump_traceback_later(100, exit=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        dist.init_process_group(
            "gloo",
            init_method=where,
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=30),
        )
        _train(rank, size, folder, kind, last)
        dist.destroy_process_group()
    except BaseException as error:
        text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
        (folder / f"error{attempt}_{rank}").write_text(text)
        os._exit(3)


def _train(rank, size, folder, kind, last):
    model = DDP(network()) if kind == "ddp" else FSDP(network(), auto_wrap_policy=BLOCKS)
    optimizer = adam(model)
    kept = folder / "kept"
    begin = 0
    if (kept / ".metadata").exists():
        states = _state(model, optimizer, 0)
        dcp.load(states, checkpoint_id=kept)
        set_state_dict(
            model,
            optimizer,
            model_state_dict=states["model"],
            optim_state_dict=states["optim"],
            options=WHOLE,
        )
        begin = states["step"]
        _log(folder, rank, begin, states)
    saving = None
    for step in range(begin, last):
        x, y = (t.chunk(size)[rank] for t in samples(step))
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        states = _state(model, optimizer, step + 1)
        _log(folder, rank, step + 1, states)
        if kind == "async":
            if saving is not None:
                saving.result()
            saving = dcp.async_save(states, checkpoint_id=kept)
        else:
            dcp.save(states, checkpoint_id=kept)
    if saving is not None:
        saving.result()


def _state(model, optimizer, step):
    states, optim = get_state_dict(model, optimizer, options=WHOLE)
    return {"model": states, "optim": optim, "step": step}


def _log(folder, rank, step, states):
    """Note the bits of a state."""
    if rank != 0:
        return
    digest = hashlib.sha256()
    for name, t in states["model"].items():
        digest.update(name.encode() + t.numpy().tobytes())
    for name, state in states["optim"]["state"].items():
        for key, t in state.items():
            digest.update(f"{name} {key}".encode() + t.numpy().tobytes())
    with open(folder / "log", "a") as log:
        log.write(f"{step} {digest.hexdigest()}\n")
