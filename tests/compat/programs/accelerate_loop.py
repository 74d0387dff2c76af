"""A training loop prepared by Accelerator, saved and loaded; big-model tools on the CPU."""
# packages: accelerate

import tempfile

import torch
from accelerate import Accelerator, init_empty_weights, load_checkpoint_and_dispatch
from accelerate.utils import set_seed
from shown import show
from torch import nn

set_seed(3)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(2, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
print(accelerator.device, accelerator.num_processes, accelerator.is_main_process)
for epoch in range(2):
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    show("loss", accelerator.gather(loss))
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    before = model[0].weight.clone()
    with torch.no_grad():
        model[0].weight.zero_()
    accelerator.load_state(folder)
    show("restored", torch.equal(before, model[0].weight))
    accelerator.save_model(model, folder)
    with init_empty_weights():
        empty = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2))
    print(empty[0].weight.device)
    filled = load_checkpoint_and_dispatch(empty, folder, device_map={"": "cpu"})
    show("filled", filled(torch.ones(1, 8)))
