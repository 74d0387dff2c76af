"""Fabric: a loop of one's own, bf16, saved and loaded."""
# packages: lightning

import tempfile

import torch
from lightning.fabric import Fabric
from shown import show
from torch import nn

fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
fabric.launch()
fabric.seed_everything(2, verbose=False)
with fabric.init_module():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = fabric.setup(model, optimizer)
data = torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=8, shuffle=True))
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x).float(), y)
    fabric.backward(loss)
    fabric.clip_gradients(model, optimizer, max_norm=1.0)
    optimizer.step()
print("loss", f"{loss.item():.1f}")
with tempfile.TemporaryDirectory() as folder:
    fabric.save(folder + "/x.ckpt", {"model": model, "optimizer": optimizer, "step": 4})
    state = {"model": model, "optimizer": optimizer, "step": 0}
    fabric.load(folder + "/x.ckpt", state)
    print(state["step"])
show("module", fabric.all_reduce(torch.ones(2)))
