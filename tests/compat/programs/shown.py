"""Prints tensors shortly: what a run with rushlight and one with PyTorch must agree on."""

import torch


def show(name, value):
    """One line: the name, the shape and a few numbers of a tensor, or a number."""
    if not isinstance(value, torch.Tensor):
        print(name, f"{value:.5g}" if isinstance(value, float) else value)
        return
    flat = value.detach().reshape(-1)
    flat = torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat
    flat = flat.double()
    some = flat[:: max(1, flat.numel() // 4)][:4].tolist()
    print(name, list(value.shape), f"{flat.mean():.5g}", *(f"{v:.5g}" for v in some))


def train(model, loss_of, steps=3, lr=1e-3, optimizer=None):
    """A few steps; prints the loss of each and the gradients' norm of the last."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        show("loss", loss)
    show("norm", norm)
