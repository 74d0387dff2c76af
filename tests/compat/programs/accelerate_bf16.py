"""Mixed precision and offloading hooks."""
# packages: accelerate

import torch
from accelerate import Accelerator, cpu_offload, infer_auto_device_map
from accelerate.utils import compute_module_sizes, set_seed
from shown import show
from torch import nn

set_seed(0)
accelerator = Accelerator(cpu=True, mixed_precision="bf16")
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
x = torch.randn(16, 8)
for _ in range(3):
    out = model(x)
    loss = out.square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    print("loss", out.dtype, f"{loss.item():.2f}")
plain = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
print(dict(compute_module_sizes(plain)))
print(infer_auto_device_map(plain, max_memory={"cpu": 10**6}))
expected = plain(x)
cpu_offload(plain, execution_device=torch.device("cpu"))
show("offloaded", torch.allclose(expected, plain(x)))
