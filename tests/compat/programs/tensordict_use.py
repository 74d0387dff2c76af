"""Dictionaries of tensors, modules over them, classes."""
# packages: tensordict

import tempfile

import torch
from shown import show
from tensordict import TensorDict, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn

torch.manual_seed(0)
td = TensorDict({"a": torch.randn(4, 3), "b": {"c": torch.arange(4.0)}}, batch_size=[4])
print(td)
show("slice", td[1:3]["a"])
show("stack", torch.stack([td, td], 0)["b", "c"])
show("cat", torch.cat([td, td], 0)["a"])
show("apply", td.apply(lambda x: x * 2)["a"])
print(
    td.reshape(2, 2).shape,
    td.to(torch.float64)["a"].dtype,
    sorted(td.keys(True, True)),
    td.flatten_keys(".").keys(),
)
model = TensorDictSequential(
    TensorDictModule(nn.Linear(3, 8), in_keys=["a"], out_keys=["h"]),
    TensorDictModule(nn.Linear(8, 2), in_keys=["h"], out_keys=["loc"]),
)
show("model", model(td)["loc"])
params = TensorDict.from_module(model)
print(sorted(params.keys(True, True))[:2])
with params.data.to_module(model):
    show("with", model(td)["loc"])


@tensorclass
class Point:
    x: torch.Tensor
    y: torch.Tensor


p = Point(torch.ones(3), torch.zeros(3), batch_size=[3])
show("class", (p + 1)[:2].x)
with tempfile.TemporaryDirectory() as folder:
    td.memmap(folder)
    show("mapped", TensorDict.load_memmap(folder)["a"])
show("lazy", TensorDict.maybe_dense_stack([td, td])["a"])
