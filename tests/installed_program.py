"""A program that asks for nothing but rushlight: trains a network, saves it, loads it.

    python tests/installed_program.py [NUMBERS]

Run with an installed wheel in an empty environment, on other instruction sets and on other
machines. NUMBERS is a file: the losses and outputs are written there where it does not exist, and
compared with those in it, within rounding, where it does.
"""

import json
import sys
import tempfile
from pathlib import Path

import rushlight as torch
from rushlight import nn


def network():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * 4 * 4, 16),
        nn.GELU(),
        nn.LayerNorm(16),
        nn.Linear(16, 2),
    )


def train():
    """The losses of thirty steps and the network: which half of a picture is brighter."""
    torch.manual_seed(1)
    pictures = torch.rand(128, 1, 8, 8)
    halves = pictures.sum(dim=(1, 2)).view(128, 2, 4).sum(2)
    sides = halves.argmax(1)
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(pictures), sides)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, net.eval(), pictures[:4]


def reloaded(net):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "net.pt"
        torch.save(net.state_dict(), file)
        again = network().eval()
        again.load_state_dict(torch.load(file))
    return again


def sums():
    """Numbers of other kernels: products, transforms, attention, sorting, decompositions."""
    torch.manual_seed(2)
    a = torch.randn(33, 47)
    q = torch.randn(2, 4, 24, 16)
    return {
        "product": (a @ a.T).sum().item(),
        "bfloat16": (a.bfloat16() @ a.bfloat16().T).float().abs().mean().item(),
        "fft": torch.fft.rfft(a).abs().sum().item(),
        "attention": nn.functional.scaled_dot_product_attention(q, q, q).sum().item(),
        "softmax": torch.softmax(a * 3, 1).max(1).values.sum().item(),
        "sort": (a.sort(1).values * torch.arange(47)).sum().item(),
        "solve": torch.linalg.solve(a @ a.T + torch.eye(33), a).sum().item(),
        "double": a.double().exp().cumsum(1).mean().item(),
    }


def main(path=None):
    losses, net, pictures = train()
    assert losses[-1] < losses[0] / 2, losses
    with torch.no_grad():
        outputs = net(pictures)
        assert torch.equal(reloaded(net)(pictures), outputs)
    numbers = {"losses": losses, "outputs": outputs.flatten().tolist(), **sums()}
    if path is not None and Path(path).exists():
        for name, wanted in json.loads(Path(path).read_text()).items():
            torch.testing.assert_close(
                torch.tensor(numbers[name]), torch.tensor(wanted), rtol=2e-3, atol=2e-3, msg=name
            )
    elif path is not None:
        Path(path).write_text(json.dumps(numbers))
    print(f"rushlight {torch.version.rushlight}: loss {losses[0]:.4f} to {losses[-1]:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
