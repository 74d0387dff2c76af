"""Second-order quantities of backpack."""
# packages: backpack

import torch
from backpack import backpack, extend, extensions
from shown import show
from torch import nn

torch.manual_seed(0)
model = extend(
    nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3),
        nn.Sigmoid(),
        nn.Flatten(),
        nn.Linear(16, 5),
        nn.Tanh(),
        nn.Linear(5, 3),
    )
)
lossfunc = extend(nn.CrossEntropyLoss())
x, y = torch.randn(6, 1, 8, 8), torch.arange(6) % 3
wanted = {
    "grad_batch": extensions.BatchGrad(),
    "batch_l2": extensions.BatchL2Grad(),
    "sum_grad_squared": extensions.SumGradSquared(),
    "variance": extensions.Variance(),
    "diag_ggn_exact": extensions.DiagGGNExact(),
    "diag_h": extensions.DiagHessian(),
    "kfac": extensions.KFAC(),
    "kflr": extensions.KFLR(),
    "kfra": extensions.KFRA(),
    "sqrt_ggn_exact": extensions.SqrtGGNExact(),
    "diag_ggn_exact_batch": extensions.BatchDiagGGNExact(),
}
for name, extension in wanted.items():
    model.zero_grad()
    torch.manual_seed(1)
    try:
        with backpack(extension):
            lossfunc(model(x), y).backward()
    except NotImplementedError as refused:
        print(name, "is refused", type(refused).__name__)
        continue
    for parameter in (model[0].weight, model[8].weight):
        value = getattr(parameter, name)
        for part in value if isinstance(value, list) else [value]:
            show(name, part)
