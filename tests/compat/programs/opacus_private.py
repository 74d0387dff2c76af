"""Training with differential privacy."""
# packages: opacus

import warnings

import torch
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator
from shown import show
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = ModuleValidator.fix(
    nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)
    )
)
print(model)
data = torch.utils.data.TensorDataset(torch.randn(40, 1, 8, 8), torch.randint(3, (40,)))
loader = torch.utils.data.DataLoader(data, batch_size=10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    poisson_sampling=False,
    noise_generator=torch.Generator().manual_seed(0),
)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    show("sample", model._module[0].weight.grad_sample)
    optimizer.step()
    show("loss", loss)
show("epsilon", float(engine.get_epsilon(1e-5)))
