"""A program whose arguments are of all the types that are accepted: pyright checks it in `./dev lint`, a test runs it."""

import rushlight as torch
from rushlight import nn, optim
from rushlight.nn import functional as F
from rushlight.optim import lr_scheduler
from rushlight.utils.data import DataLoader, TensorDataset


def optimizers(model: nn.Module) -> list[optim.Optimizer]:
    rate = torch.tensor(0.1)
    return [
        optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        optim.SGD(model.parameters(), lr=1, momentum=0.5, dampening=0.1, weight_decay=0),
        optim.SGD(model.parameters(), lr=rate),
        optim.RMSprop(model.parameters(), lr=0.1, momentum=0.9, alpha=0.9),
        optim.Adagrad(model.parameters(), lr=1, lr_decay=0.1, initial_accumulator_value=0.5),
        optim.Adam(model.parameters(), lr=rate, betas=(0.5, 0.9), weight_decay=1),
        optim.AdamW(model.parameters(), lr=1, eps=1e-6),
        optim.Adafactor(model.parameters(), lr=0.1, beta2_decay=-1),
    ]


def schedules(optimizer: optim.Optimizer) -> list[object]:
    return [
        lr_scheduler.ReduceLROnPlateau(optimizer, min_lr=0.1, patience=3),
        lr_scheduler.ReduceLROnPlateau(optimizer, min_lr=[0.1], factor=0.5),
        lr_scheduler.StepLR(optimizer, 2, gamma=1),
        lr_scheduler.CosineAnnealingLR(optimizer, 10, eta_min=0.01),
        lr_scheduler.LinearLR(optimizer, 1, 0.5),
    ]


def layers() -> list[nn.Module]:
    return [
        nn.Conv2d(1, 2, 3, stride=(1, 2), padding="valid", groups=1),
        nn.BatchNorm1d(2, momentum=None),
        nn.BatchNorm2d(2, eps=1, momentum=0.5),
        nn.Dropout(1),
        nn.Hardtanh(-2, 2.5),
        nn.MaxUnpool1d(2, padding=(0,)),
        nn.LeakyReLU(1),
        nn.TripletMarginLoss(margin=2, p=1),
    ]


def values(x: torch.Tensor) -> list[torch.Tensor]:
    weight = nn.init.orthogonal_(torch.empty(2, 2), gain=0.5)
    nn.init.trunc_normal_(weight, a=-1, b=1.5)
    return [
        weight,
        F.gumbel_softmax(x, tau=0.5),
        F.gumbel_softmax(x, tau=2, dim=0),
        F.dropout(x, 0.25),
        F.elu(x, 2),
        F.leaky_relu(x, 1),
        torch.cdist(x, x, p=1),
        torch.clamp(x, 0, 0.5),
        torch.clamp(x, min=x),
        x.add(1, alpha=2.5).mul_(2).pow(0.5),
        torch.full((2, 3), 1.5),
        torch.full((2,), 1),
    ]


def batches(x: torch.Tensor) -> int:
    loader = DataLoader(TensorDataset(x), batch_size=2, timeout=0)
    waiting = DataLoader(TensorDataset(x), num_workers=1, timeout=0.5)
    return len(loader) + len(waiting)


def main() -> None:
    model = nn.Linear(2, 2)
    x = torch.rand(4, 2)
    for optimizer in optimizers(model):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    assert len(schedules(optim.SGD(model.parameters(), lr=1))) == 5
    assert len(layers()) == 8 and all(v.numel() for v in values(x)) and batches(x) == 6


if __name__ == "__main__":
    main()
