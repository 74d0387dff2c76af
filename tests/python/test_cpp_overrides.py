"""TORCH_LIBRARY_IMPL(aten, KEY, m): C++ in the place of the table's ops, in a process of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler"),
]
SOURCE = Path(__file__).resolve().parent.parent / "cpp_programs" / "overrides.cpp"

PROGRAM = """
import sys
import rushlight as torch

from rushlight.utils import cpp_extension

cpp_extension.load("overrides", sys.argv[1], is_python_module=False, build_directory=sys.argv[2])
ours = torch.ops.overrides
x = torch.ones(3, requires_grad=True)
y = torch.neg(x)
assert y.tolist() == [11] * 3 and type(y.grad_fn).__name__ == "NegBackward0" and ours.count() == 1
y.sum().backward()
assert x.grad.tolist() == [11] * 3  # its derivative is made of it, too
assert torch.ones(2).neg_().tolist() == [7, 7]
assert torch.arange(6).reshape(2, 3).sum(0).tolist() == [0, 1, 2]
assert torch.arange(3).sum().item() == 3  # another overload
assert torch.cat([torch.zeros(2), torch.ones(2)], 0).tolist() == [0, 0]
values, places = torch.sort(torch.zeros(2), descending=True)
assert values.tolist() == [1, 1] and places.tolist() == [1, 1]
assert torch.empty(2).tolist() == [3, 3]
x.grad = None
(x * -1).abs().sum().backward()
assert x.grad.tolist() == [100] * 3
before = ours.count()
assert torch.exp(torch.zeros(1)).item() == 1 and torch.cos(torch.zeros(1)).item() == 1
assert ours.count() == before + 2 and torch.sin(torch.zeros(1)).item() == 0
assert torch.neg(torch.ones(2, device="meta")).shape == (2,)  # another device

# What fallbacks are for, and what is added to aten.
assert ours.lonely(torch.ones(1)).item() == 0
assert torch.ops.aten.overrides_more(torch.ones(1)).item() == 11

tag = torch.Tag
assert set(ours.lonely.default.tags) == {tag.pt2_compliant_tag, tag.pointwise}
assert ours.listed.default.tags == [tag.core]
assert ours.tagged("aten::add", "Tensor", tag.pointwise.value)
assert not ours.tagged("aten::add", "Tensor", tag.reduction.value)
assert ours.tagged("overrides::listed", "", tag.core.value)
print("all is well")
"""


def test_functions_of_cpp_in_the_place_of_ops(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(SOURCE), str(tmp_path)], capture_output=True, text=True
    )
    assert done.stdout.strip().endswith("all is well"), done.stderr[-3000:]
