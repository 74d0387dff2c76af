"""Names of libtorch's C++ API: each is here, or it is known why not, and the page's table says how many."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import rushlight
from tests.parity import cpp_twins
from tests.parity.cpp_names import names_of

torch = pytest.importorskip("torch")

HEADER = """
#include <map>
namespace torch {
namespace nn {
/// Words (of a comment); int hidden();
struct Options {
  Options(int64_t n);
  TORCH_ARG(int64_t, width);
  typedef std::vector<int> list_t;
};
class TORCH_API ThingImpl : public Base<ThingImpl, 2> {
 public:
  explicit ThingImpl(int n) : size_{n}, other_(n) {}
  Tensor forward(const Tensor& x, std::map<int, int> m = {}) { return x; }
  template <typename T> T as() const;
  Tensor weight;
 private:
  int size_;
};
TORCH_MODULE(Thing);
template <class T> struct Generic { T held; };
enum class Mode { On, Off };
namespace detail { int inner(); }
inline std::tuple<Tensor, Tensor> both(const Tensor& x) { if (x) { return {}; } return {}; }
using Alias = Options;
}  // namespace nn
}  // namespace torch
"""


def test_names_are_read():
    found = ["Options", "Options::width", "Options::list_t", "ThingImpl", "ThingImpl::forward", "ThingImpl::as",
             "ThingImpl::weight", "Thing", "Generic", "Mode", "both", "Alias"]  # fmt: skip
    assert list(names_of(HEADER)) == [f"torch::nn::{name}" for name in found]


def test_names_are_here_or_told():
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    theirs, ours = (Path(os.path.dirname(m.__file__)) / "include" for m in (torch, rushlight))
    groups = cpp_twins.read(theirs)
    assert sum(map(len, groups.values())) > 5000
    names = dict.fromkeys(name for group in groups.values() for name in group)
    missing = set(cpp_twins.absent(names, ours))
    assert [name for name in missing if not cpp_twins.reason(name)] == []
    for shape, why in cpp_twins.REASONS.items():
        assert any(cpp_twins.reason(name) == why for name in missing), (
            f"nothing is absent for {shape}"
        )
    assert cpp_twins.table(groups, missing) in cpp_twins.PAGE.read_text()


def test_macros_that_programs_write_are_here():
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")

    def macros(module):
        include = Path(os.path.dirname(module.__file__)) / "include"
        folders = [f"-I{include}", f"-I{include / 'torch/csrc/api/include'}"]
        command = ["g++", "-std=c++17", "-dM", "-E", "-include", "torch/torch.h", *folders]
        text = subprocess.run(
            [*command, "-xc++", os.devnull], capture_output=True, text=True, check=True
        ).stdout
        return set(re.findall(r"^#define (\w+)", text, re.M))

    theirs, ours = macros(torch), macros(rushlight)
    written = re.compile(
        r"AT_DISPATCH_\w+|TORCH_D?CHECK_[A-Z]{2}|CAFFE_ENFORCE(_[A-Z]{2})?|V?LOG|CHECK"
    )
    quantised = re.compile(r"AT_DISPATCH_(CASE_)?(QINT|BIT)\w*")
    wanted = {m for m in theirs if written.fullmatch(m) and not quantised.fullmatch(m)}
    assert len(wanted) > 70 and sorted(wanted - ours) == []
