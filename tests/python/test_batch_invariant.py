"""The mode in which a row's bits do not depend on the other rows: products, attention, norms, softmax."""

import json

import pytest

import rushlight as torch
from tests.python import choices

# Each case is a function of rows; all of them at once, and the first n of them, for n from 1 to 130. What is
# compared are bits, over numbers of threads, too.
_PROGRAM = """
import hashlib, json
nn = torch.nn
torch.use_batch_invariant(True)
torch.manual_seed(0)
most = 130
counts = [*range(1, 20), 23, 31, 32, 33, 47, 48, 49, 63, 64, 65, 95, 96, 97, 127, 128, 129, 130]
cases = dict()

def weights(*size, dtype):
    return (torch.randn(size) / 8).to(dtype)

for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    for n, k in ((1, 40), (7, 5), (64, 300), (130, 1000), (33, 2049), (600, 64), (256, 4096)):
        name = str((str(dtype), n, k))
        weight, bias = weights(n, k, dtype=dtype), weights(n, dtype=dtype)
        cases["linear" + name] = k, dtype, lambda x, w=weight, b=bias: F.linear(x, w, b)
        cases["plain" + name] = k, dtype, lambda x, w=weight: F.linear(x, w)
        cases["matmul" + name] = k, dtype, lambda x, w=weight.t().contiguous(): x @ w
        cases["addmm" + name] = k, dtype, lambda x, w=weight, b=bias: torch.addmm(
            b, x, w.t(), beta=0.5, alpha=2
        )
        cases["columns" + name] = k, dtype, lambda x, w=weight: (w @ x.t()).t()
        cases["vector" + name] = k, dtype, lambda x, w=weight[0]: x @ w
        cases["batches" + name] = k, dtype, lambda x, w=weight: (
            x.unsqueeze(1) @ w.t().expand(len(x), -1, -1)
        ).squeeze(1)
    for k in (5, 64, 300, 1000, 4096):
        name = str((str(dtype), k))
        one = weights(k, dtype=dtype)
        cases["softmax" + name] = k, dtype, lambda x: x.softmax(-1)
        cases["log_softmax" + name] = k, dtype, lambda x: x.log_softmax(-1)
        cases["layer_norm" + name] = k, dtype, lambda x, w=one: F.layer_norm(x, w.shape, w, w)
        cases["rms_norm" + name] = k, dtype, lambda x, w=one: F.rms_norm(x, w.shape, w)
        cases["normalize" + name] = k, dtype, lambda x: F.normalize(x, dim=-1)
        cases["batch_norm" + name] = k, dtype, lambda x, w=one: F.batch_norm(
            x, w.float(), w.float().abs() + 1, w.float(), w.float()
        ) if w.dtype != torch.float64 else F.batch_norm(x, w, w.abs() + 1, w, w)
        if k % 4 == 0:
            cases["group_norm" + name] = k, dtype, lambda x, w=one: F.group_norm(x, 4, w, w)
    # Queries of all rows meet the same keys; and each row is a sequence of its own.
    for width, keys, heads in ((16, 33, 2), (64, 200, 3)):
        name = str((str(dtype), width, keys))
        key, value = (weights(1, heads, keys, width, dtype=dtype) for _ in range(2))
        mask = (torch.arange(keys) % 3 > 0).unsqueeze(0)

        def attend(x, k=key, v=value, w=width, h=heads, **how):
            q = x.unflatten(-1, (h, w)).transpose(0, 1).unsqueeze(0)
            found = F.scaled_dot_product_attention(q, k, v, **how)
            return found[0].transpose(0, 1).flatten(1)

        def apart(x, k=key, v=value, w=width, h=heads):
            q = x.unflatten(-1, (h, w)).unsqueeze(2)
            sizes = len(x), -1, -1, -1
            return F.scaled_dot_product_attention(q, k.expand(sizes), v.expand(sizes)).flatten(1)

        cases["attention" + name] = heads * width, dtype, attend
        cases["masked" + name] = heads * width, dtype, lambda x, f=attend, m=mask: f(
            x, attn_mask=m.expand(len(x), -1)
        )
        cases["apart" + name] = heads * width, dtype, apart
differs, bits = [], hashlib.sha256()
for name, (width, dtype, f) in cases.items():
    rows = (torch.randn(most, width) * 2).to(dtype)
    whole = f(rows)
    bits.update(whole.reshape(-1).view(torch.uint8).numpy().tobytes())
    for threads in (1, 3):
        torch.set_num_threads(threads)
        for count in counts if threads == 1 else (1, 5, 33, 97):
            if not torch.equal(f(rows[:count]), whole[:count]):
                differs.append((name, threads, count))
                break
        # From the middle, where tiles begin elsewhere.
        if not torch.equal(f(rows[61:84]), whole[61:84]):
            differs.append((name, threads, "61:84"))
print(json.dumps([len(cases), differs, bits.hexdigest()]))
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("isa", choices.instruction_sets())
def test_rows_do_not_depend_on_other_rows(isa):
    count, differs, _ = json.loads(choices.run(_PROGRAM, RUSHLIGHT_CPU=isa)[0])
    assert count > 250 and not differs


def test_results_are_those_of_the_formula():
    torch.manual_seed(0)
    try:
        torch.use_batch_invariant(True)
        assert torch.is_batch_invariant()
        for dtype, within in (
            (torch.float32, 1e-5),
            (torch.float64, 1e-13),
            (torch.bfloat16, 2e-2),
        ):
            for rows, n, k in ((1, 1, 5000), (3, 200, 600), (90, 7, 33), (2, 3, 0), (0, 3, 4)):
                x, w, b = (torch.randn(size).to(dtype) for size in ((rows, k), (n, k), (n,)))
                exact = x.double() @ w.double().t()
                scale = max(1, k) ** 0.5
                for found, expected in (
                    (torch.nn.functional.linear(x, w, b), exact + b.double()),
                    (torch.addmm(b, x, w.t(), beta=-2, alpha=3), exact * 3 - 2 * b.double()),
                    (torch.addmm(b, x, w.t(), beta=0, alpha=3), exact * 3),
                    ((w @ x.t()), exact.t()),
                ):
                    assert found.shape == expected.shape
                    assert torch.allclose(
                        found.double(), expected, atol=within * scale * 4, rtol=within
                    )
    finally:
        torch.use_batch_invariant(False)


def test_the_mode_is_a_bool():
    for bad in (1, None, "on"):
        with pytest.raises(TypeError, match="must be bool"):
            torch.use_batch_invariant(bad)
    assert not torch.is_batch_invariant()
