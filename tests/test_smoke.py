"""A dozen lines that touch every floor: ops, autograd, modules, an optimiser, files."""

import rushlight as torch


def test_smoke(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    x = torch.randn(32, 4)
    target = (x.sum(dim=1) > 0).to(torch.int64)
    losses = []
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]

    torch.save(model.state_dict(), tmp_path / "model.pt")
    for parameter in model.parameters():
        parameter.detach().zero_()
    model.load_state_dict(torch.load(tmp_path / "model.pt"))
    assert (model(x).argmax(dim=1) == target).float().mean().item() > 0.9
