"""Communication hooks that quantise, with PyTorch or with rushlight by its name."""

import json
import sys

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import (
    DDPCommHookType,
    quantization_hooks,
    register_ddp_comm_hook,
)
from torch.nn.parallel import DistributedDataParallel


class Weighted(nn.Module):
    """The gradients of its parameters are its inputs."""

    def __init__(self, sizes, dtype):
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(torch.zeros(n, dtype=dtype)) for n in sizes])

    def forward(self, inputs):
        return sum((p * x).sum() for p, x in zip(self.parts, inputs, strict=True))


KINDS = ("normal", "positive", "negative", "zero", "tiny", "none here")


def inputs(rank, sizes, kind, dtype):
    g = torch.Generator().manual_seed(17 * rank + len(sizes))
    made = [torch.randn(n, generator=g) * (i + 1) for i, n in enumerate(sizes)]
    made = {
        "normal": made,
        "positive": [x.abs() + 1 for x in made],
        "negative": [-x.abs() - rank for x in made],
        "zero": [0 * x for x in made],
        "tiny": [x * 1e-12 for x in made],
        "none here": [x * rank for x in made],
    }[kind]
    return [x.to(dtype) for x in made]


def reduced(hook, rank, sizes, kind, dtype=torch.float32):
    model = DistributedDataParallel(Weighted(sizes, dtype))
    if isinstance(hook, DDPCommHookType):
        register_ddp_comm_hook(hook, model)
    else:
        model.register_comm_hook(None, hook)
    model(inputs(rank, sizes, kind, dtype)).backward()
    return [p.grad.double().tolist() for p in model.parameters()]


class Gathered:
    """What PyTorch's hooks expect of a gathering: a future as NCCL gives one."""

    def __init__(self, outputs, tensor, group, async_op):
        self.outputs = outputs
        self.work = all_gather(outputs, tensor, group, async_op)

    def get_future(self):
        return self.work.get_future().then(lambda _: [torch.stack(self.outputs)])


all_gather = dist.all_gather


def main():
    dist.all_gather = Gathered
    rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=world)
    found = {}
    hooks = {
        "tensor": quantization_hooks.quantization_pertensor_hook,
        "channel": quantization_hooks.quantization_perchannel_hook,
        "tensor by name": DDPCommHookType.QUANTIZE_PER_TENSOR,
        "channel by name": DDPCommHookType.QUANTIZE_PER_CHANNEL,
    }
    for name, hook in hooks.items():
        for sizes in ([7], [512], [300, 900, 1]):
            for kind in KINDS:
                found[f"{name} {sizes} {kind}"] = reduced(hook, rank, sizes, kind)
        for dtype in (torch.float64, torch.bfloat16, torch.float16):
            found[f"{name} {dtype}"] = reduced(hook, rank, [100, 600], "normal", dtype)
    with open(f"{folder}/{rank}.json", "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
