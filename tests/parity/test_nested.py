"""Nested tensors: PyTorch's results, shapes, gradients and refusals for the same programs."""

import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")

warnings.filterwarnings("ignore", message="The PyTorch API of nested tensors is in prototype")

BOTH = """
t * 2 - t.sin()
F.gelu(t)
t.masked_fill(t > 0, 1.5)
t.transpose(1, 2).contiguous()
t.unsqueeze(-1)
t.unsqueeze(1)
t.reshape(2, -1, 2, 2)
t.view(2, -1, 2, 2)
t.select(2, 1)
t[0]
t[-1]
t.chunk(2, -1)[1].contiguous()
t.detach().split_with_sizes([1, 3], -1)[0].contiguous()
F.linear(t, w, b)
torch.bmm(t, m)
F.layer_norm(t, (4,), b[:4], b[:4])
F.softmax(t, -1)
F.softmax(t, 1)
t.sum(-1, keepdim=True)
t.to_padded_tensor(0.5)
t.to_padded_tensor(0.5, (2, 7, 4))
F.scaled_dot_product_attention(h(t), h(t) * 2, h(t))
t.sum(1)
t.softmax(0)
t.transpose(0, 1)
t.squeeze(0)
t.unsqueeze(0)
t.unbind(1)
t.size(0)
t.size(3)
t.chunk(2, 1)
t.unflatten(0, (1, 2))
torch.nested.narrow(m, 1, 1, 2, layout=t.layout)
"""
JAGGED = """
t + m[:, :1]
t + m[:, :1].expand(2, 1, 4)
t + b[:4]
t + m[:, :3].sum()
t.sum()
t.mean()
t.sum((0, 1))
t.sum((1, 2))
t.sum(0)
t.sum(2)
t.mean(1)
t.mean(2)
t.amax(1)
t.max(2).values
t.prod(1)
t.sum(1, keepdim=True)
t @ w.T
t @ m
t.transpose(1, 2) @ t
t.permute(0, 2, 1)
t.flatten(2)
t.unflatten(2, (2, 2)).flatten(2, 3)
t.unflatten(2, (2, 2)).flatten(1, 2)
torch.cat([t, t * 2], -1)
torch.cat([t, t], 0)
torch.cat([t, t], 1)
torch.stack([t, t], -1)
torch.stack([t, t], 0)
torch.where(t > 0, t, t * 3)
t.clamp(-0.5, 0.5)
F.log_softmax(t, 2)
F.rms_norm(t, (4,))
t.select(1, 0)
t.split(1, 0)
t.view(2, 8)
t.expand(2, t.shape[1], 4)
t.mT
t.new_empty(())
torch.lerp(t, t * 2, 0.3)
torch.nested.nested_tensor_from_jagged(t.values(), t.offsets()) * t
torch.nested.masked_select(m[0], m[0] > 0)
torch.nested.narrow(m, 1, torch.tensor([0, 1]), torch.tensor([2, 1]), layout=torch.jagged) * 2
t.to(torch.float32).double()
t.squeeze(1)
t.item()
t.tolist()
"""
STRIDED = """
t @ t.transpose(1, 2)
t + t.transpose(1, 2)
t + b[:4]
t.reshape(3, -1, 4)
t.squeeze()
t.narrow(0, 0, 1)
t.size(1)
t.shape
torch.cat([t, t], 0)
torch.cat([t, t], 1)
F.linear(t, w[:, :3])
t._nested_tensor_size()
t._nested_tensor_strides()
t._nested_tensor_storage_offsets()
t.transpose(1, 2)._nested_tensor_strides()
t.transpose(1, 2).to_padded_tensor(0.0)
t.cumsum(1)
t.values()
"""


def run(lib, text, layout):
    """What a program gives, as numbers, and the gradients of the components; or its exception."""
    lib.manual_seed(0)
    kwargs = {"dtype": lib.float64, "generator": lib.Generator().manual_seed(3)}
    parts = [lib.randn(n, 4, **kwargs).requires_grad_() for n in (2, 3)]
    names = {"torch": lib, "F": lib.nn.functional, "w": lib.randn(5, 4, **kwargs)}
    names |= {"b": lib.rand(5, **kwargs), "m": lib.randn(2, 4, 4, **kwargs)}
    names["h"] = lambda t: t.reshape(2, -1, 2, 2).transpose(1, 2)
    if "bmm" not in text and "t @ m" not in text and "narrow" not in text:
        names["m"] = lib.randn(2, 4, 4, **kwargs)
    names["t"] = lib.nested.as_nested_tensor(parts, layout=getattr(lib, layout))
    try:
        out = eval(text, names)
    except Exception as error:
        return type(error).__name__, None
    if not isinstance(out, lib.Tensor):
        return out, None
    pieces = list(out.unbind()) if out.is_nested else [out]
    grads = None
    if out.requires_grad:
        total = sum((p * p.detach().sin()).sum() for p in pieces)
        try:
            grads = [g.tolist() for g in lib.autograd.grad(total, parts)]
        except Exception:  # PyTorch lacks derivatives of some; gradcheck is for those
            assert lib is torch
    return (out.is_nested, out.dim(), [p.detach().tolist() for p in pieces]), grads


def lines(text, layout):
    return [(line, layout) for line in text.strip().splitlines()]


@pytest.mark.parametrize(
    ("text", "layout"),
    lines(BOTH, "jagged")
    + lines(BOTH, "strided")
    + lines(JAGGED, "jagged")
    + lines(STRIDED, "strided"),
)
def test_programs(text, layout):
    want, got = run(torch, text, layout), run(rushlight, text, layout)
    if isinstance(want[0], str):  # PyTorch refuses; rushlight may know more, but not another error
        assert not isinstance(got[0], str) or got[0] == want[0]
        return
    assert close(got[0], want[0])
    # PyTorch's gradient of a ragged softmax is none: its columns do not sum to zero.
    if want[1] is not None and (text, layout) != ("F.softmax(t, 1)", "jagged"):
        assert close(got[1], want[1])


def close(a, b):
    if isinstance(b, (tuple, list)):
        assert len(a) == len(b)
        return all(close(x, y) for x, y in zip(a, b, strict=True))
    return a == pytest.approx(b, rel=1e-7, abs=1e-9)


def test_files_are_pytorchs(tmp_path):
    for layout in ("jagged", "strided"):
        for source, other in ((torch, rushlight), (rushlight, torch)):
            parts = [source.randn(2, 3), source.randn(1, 3)]
            nt = source.nested.nested_tensor(parts, layout=getattr(source, layout))
            source.save(nt, tmp_path / "nt.pt")
            back = other.load(
                tmp_path / "nt.pt", weights_only=layout == "jagged" or other is rushlight
            )
            assert [p.tolist() for p in back.unbind()] == [p.tolist() for p in parts]
            assert str(back.layout) == str(nt.layout).replace(source.__name__, "torch")
