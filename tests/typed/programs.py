"""Twenty-one small programs whose results have types that checkers know: pyright in its strict mode and mypy read them, and a test runs them.

`assert_type` holds each result to its type; nothing is to be ignored, cast or of an unknown type.
"""

from collections.abc import Callable, Iterator
from typing import Any

from typing_extensions import assert_type

import rushlight as torch
from rushlight import Tensor, nn, optim
from rushlight.nn import functional as F
from rushlight.utils.data import DataLoader, Dataset, TensorDataset, random_split


def factories() -> None:
    assert_type(torch.zeros(2, 3), Tensor)
    assert_type(torch.tensor([[4.0, 5.0]]), Tensor)
    assert_type(torch.arange(0, 10, 2), Tensor)
    assert_type(torch.linspace(0, 1, 5), Tensor)
    assert_type(torch.randn(3, generator=torch.Generator().manual_seed(4)), Tensor)


def attributes() -> None:
    x = torch.ones(2, 3)
    assert_type(x.shape, torch.Size)
    assert_type(x.dtype, torch.dtype)
    assert_type(x.device, torch.device)
    assert_type(x.requires_grad, bool)
    assert_type(x.dim(), int)
    assert_type(x.numel(), int)


def arithmetic() -> None:
    x, y = torch.ones(3), torch.ones(3)
    assert_type(x + y, Tensor)
    assert_type(2 * x - y / 3, Tensor)
    assert_type(x @ y, Tensor)
    assert_type(-x, Tensor)
    assert_type(x > y, Tensor)
    assert_type(x**2, Tensor)


def reductions() -> None:
    x = torch.ones(2, 3)
    assert_type(x.sum(), Tensor)
    assert_type(x.mean(dim=1, keepdim=True), Tensor)
    assert_type(torch.logsumexp(x, dim=0), Tensor)
    assert_type(x.argmax(), Tensor)
    assert_type(float(x.sum()), float)


def named_results() -> None:
    x = torch.arange(6.0).view(2, 3)
    values, indices = x.max(dim=1)
    assert_type(values, Tensor)
    assert_type(indices, Tensor)
    assert_type(x.topk(2).values, Tensor)
    assert_type(torch.sort(x, descending=True).indices, Tensor)
    assert_type(torch.linalg.svd(x).S, Tensor)
    assert_type(torch.linalg.eigh(x @ x.T).eigenvalues, Tensor)


def indexing() -> None:
    x = torch.arange(12).view(3, 4)
    assert_type(x[0], Tensor)
    assert_type(x[:, 1:3], Tensor)
    assert_type(x[x > 4], Tensor)
    x[1, 2] = 7
    for row in x:
        assert_type(row, Tensor)


def shapes() -> None:
    x = torch.ones(2, 3, 4)
    assert_type(x.view(6, 4), Tensor)
    assert_type(x.permute(2, 0, 1), Tensor)
    assert_type(torch.cat([x, x], dim=1), Tensor)
    assert_type(torch.stack([x, x]), Tensor)
    assert_type(x.unsqueeze(0).flatten(1), Tensor)
    assert_type(torch.einsum("abc,abc->a", x, x), Tensor)


def gradients() -> None:
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    assert_type(x.grad, Tensor | None)
    assert x.grad is not None
    assert_type(x.grad.norm(), Tensor)
    with torch.no_grad():
        assert_type(x + 1, Tensor)


class Net(nn.Module):
    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, 8)
        self.second = nn.Linear(8, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.relu(self.first(x)))


def layers() -> None:
    net = Net(4, 3)
    assert_type(net.first, nn.Linear)
    for name, parameter in net.named_parameters():
        assert_type(name, str)
        assert_type(parameter, nn.Parameter)
    assert_type(net.train(), Net)
    assert_type(net.to("cpu"), Net)
    assert_type(nn.Sequential(nn.Linear(4, 2), nn.ReLU()).eval(), nn.Sequential)


def functionals() -> None:
    x, target = torch.ones(2, 3), torch.tensor([0, 2])
    assert_type(F.dropout(x, 0.5), Tensor)
    assert_type(F.cross_entropy(x, target), Tensor)
    assert_type(F.mse_loss(x, x), Tensor)
    assert_type(F.softmax(x, dim=1), Tensor)
    assert_type(F.interpolate(x[None, None], scale_factor=2.0), Tensor)


def training() -> list[float]:
    net = Net(4, 3)
    optimizer = optim.AdamW(net.parameters(), lr=1e-3)
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=2)
    losses: list[float] = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(torch.randn(5, 4)), torch.randint(0, 3, (5,)))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


class Squares(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.full((2,), float(index)), index**2


def data() -> None:
    parts = random_split(Squares(), [8, 2])
    loader = DataLoader(parts[0], batch_size=4, shuffle=True)
    for x, y in loader:
        assert len(x) == len(y)
    pairs = TensorDataset(torch.ones(3, 2), torch.ones(3))
    assert_type(len(pairs), int)


def recurrent() -> None:
    lstm = nn.LSTM(4, 8, num_layers=2, batch_first=True)
    output, (hidden, cell) = lstm(torch.ones(2, 5, 4))
    assert output.shape == (2, 5, 8) and hidden.shape == cell.shape
    padded = nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(3)], batch_first=True)
    assert_type(padded, Tensor)


def saving(path: str) -> None:
    net = Net(4, 3)
    torch.save(net.state_dict(), path)
    net.load_state_dict(torch.load(path))


def transforms_of_functions() -> None:
    def loss(x: Tensor) -> Tensor:
        return (x * x).sum()

    gradient: Callable[..., Any] = torch.func.grad(loss)
    assert torch.equal(gradient(torch.ones(3)), torch.full((3,), 2.0))
    rows: Callable[..., Any] = torch.vmap(loss)
    assert rows(torch.ones(2, 3)).shape == (2,)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return 2 * grads[0]


def own_gradients() -> None:
    x = torch.ones(2, requires_grad=True)
    y: Tensor = Double.apply(x)
    y.sum().backward()


def distributions() -> None:
    normal = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    assert_type(normal.sample(), Tensor)
    assert_type(normal.log_prob(torch.zeros(2)), Tensor)


def devices_and_dtypes() -> None:
    x = torch.ones(2, dtype=torch.float64, device=torch.device("cpu"))
    assert_type(x.to(torch.float32), Tensor)
    assert_type(x.half().float(), Tensor)
    assert_type(torch.finfo(x.dtype).eps, float)
    assert_type(torch.get_default_dtype(), torch.dtype)


def mixed_precision() -> None:
    net = Net(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result: Tensor = net(torch.ones(2, 4))
    assert result.dtype == torch.bfloat16


def batches(x: Tensor, size: int) -> Iterator[Tensor]:
    for part in x.split(size):
        assert_type(part, Tensor)
        yield part


def containers() -> None:
    blocks = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    named = nn.ModuleDict({"a": nn.ReLU()})
    x = torch.ones(1, 2)
    for block in blocks:
        x = block(x)
    assert named["a"](x).shape == (1, 2)
    assert sum(len(part) for part in batches(torch.ones(5), 2)) == 5


def one_or_several() -> None:
    """What is given or comes is one thing or several, by a flag or as it is."""
    x = torch.ones(2, requires_grad=True)
    torch.autograd.backward(x.sum())
    assert_type(torch.autograd.grad((x * 2).sum(), x), tuple[Tensor, ...])
    chosen = torch.utils.data.WeightedRandomSampler(torch.tensor([0.5, 0.5]), 2)
    assert len(list(chosen)) == 2
    image = torch.ones(1, 4, 4)
    assert_type(F.max_pool2d(image, 2), Tensor)
    assert_type(F.max_pool2d(image, 2, return_indices=True), tuple[Tensor, Tensor])
    assert_type(torch.unique(image), Tensor)
    assert_type(torch.unique(image, return_counts=True), tuple[Tensor, Tensor])
    assert_type(torch.nonzero(image), Tensor)
    doubled = torch.compile(double)
    assert_type(doubled(image, 2), Tensor)


def double(x: Tensor, times: int) -> Tensor:
    return x * times


def run(path: str) -> int:
    """Runs all; how many there are."""
    programs: list[Callable[[], object]] = [
        *(factories, attributes, arithmetic, reductions, named_results, indexing, shapes),
        *(gradients, layers, functionals, training, data, recurrent, transforms_of_functions),
        *(own_gradients, distributions, devices_and_dtypes, mixed_precision, containers),
        one_or_several,
    ]
    for program in programs:
        program()
    saving(path)
    return len(programs) + 1
