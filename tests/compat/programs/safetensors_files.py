"""Files of tensors, whole and by slices, of models that share tensors."""
# packages: safetensors

import os
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from shown import show
from torch import nn

torch.manual_seed(0)
tensors = {
    "a": torch.randn(3, 4), "b": torch.arange(5), "c": torch.randn(2).to(torch.bfloat16),
    "d": torch.tensor([True, False]), "e": torch.randn(2, 2).half(), "f": torch.zeros(0, 3),
}  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.safetensors")
    save_file(tensors, path, metadata={"made": "here"})
    back = load_file(path)
    print(
        all(torch.equal(tensors[k], back[k]) and tensors[k].dtype == back[k].dtype for k in tensors)
    )
    with safe_open(path, framework="pt", device="cpu") as f:
        print(sorted(f.keys()), f.metadata())
        show("slice", f.get_slice("a")[1:, :2])
        print(f.get_slice("a").get_shape(), f.get_slice("c").get_dtype())
    print(sorted(load(save(tensors))))
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    save_model(model, path)
    other = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    other[1].weight = other[0].weight
    print(load_model(other, path))
    show("same", torch.equal(model(torch.ones(1, 4)), other(torch.ones(1, 4))))
    try:
        save_file({"x": model[0].weight, "y": model[0].weight}, path)
    except RuntimeError as error:
        print(type(error).__name__, "share memory" in str(error))
