"""Extensions in C++: what load_inline compiles, what crosses to it and back, what setuptools is told."""

import os
import shutil
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.utils import cpp_extension

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler"),
]

SOURCE = """
torch::Tensor twice(torch::Tensor x, std::optional<torch::Tensor> y) {
  TORCH_CHECK_VALUE(x.dim() > 0, "no vector: ", x.sizes());
  return y ? x * 2 + *y : x * 2;
}
std::vector<int64_t> reversed(const std::vector<int64_t>& list) {
  return {list.rbegin(), list.rend()};
}
std::tuple<std::string, double, bool> several(std::string text, double number, bool flag) {
  return {text + "!", number / 2, !flag};
}
torch::Tensor cast(const torch::Tensor& x, torch::ScalarType t) { return x.to(t); }
void fill(torch::Tensor x, int64_t value) { x.fill_(value); }
torch::Tensor named(const torch::Tensor& x) {
  RECORD_FUNCTION("outer", std::vector<c10::IValue>({x}));
  torch::Tensor y;
  {
    RECORD_USER_SCOPE("inner");
    y = x + 1;
  }
  return y * 2;
}
"""


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    return cpp_extension.load_inline(
        "rl_test_extension",
        "#include <ATen/core/ivalue.h>\n" + SOURCE,
        functions={"twice": '2 x "y"'}
        | dict.fromkeys(("reversed", "several", "cast", "fill", "named"), ""),
        build_directory=str(tmp_path_factory.mktemp("extension")),
    )


def test_what_crosses(extension):
    x = torch.ones(2, requires_grad=True)
    y = extension.twice(x, None)
    assert torch.equal(y, torch.full((2,), 2.0)) and y.requires_grad
    assert torch.equal(extension.twice(x, torch.ones(2)), torch.full((2,), 3.0))
    assert extension.reversed([1, 2, 3]) == [3, 2, 1]
    assert extension.several("a", 3, True) == ("a!", 1.5, False)
    assert extension.cast(x, torch.float64).dtype is torch.float64
    z = torch.zeros(2)
    assert extension.fill(z, 4) is None and z.tolist() == [4, 4]
    assert extension.twice.__doc__ == '2 x "y"'


def test_errors_keep_their_types(extension):
    with pytest.raises(ValueError, match=r"no vector: \[\]"):
        extension.twice(torch.tensor(1.0), None)
    with pytest.raises(TypeError, match="argument 1 must be Tensor, not int"):
        extension.twice(3, None)
    with pytest.raises(TypeError, match="expected 2 arguments, got 1"):
        extension.fill(torch.ones(1))
    with pytest.raises(TypeError, match="must be list"):
        extension.reversed(3)
    with pytest.raises(OverflowError):
        extension.fill(torch.ones(1), 2**70)


def test_ranges_that_the_profiler_shows(extension):
    x = torch.ones(2, 3)
    with torch.profiler.profile(record_shapes=True) as profile:
        extension.named(x)
    found = {e.name: e for e in profile.events()}
    outer, inner = found["outer"], found["inner"]
    assert list(map(list, outer.input_shapes)) == [[2, 3]] and inner.input_shapes == []
    assert inner.cpu_parent is outer and found["aten::add"].cpu_parent is inner
    assert found["aten::mul"].cpu_parent is outer
    assert outer.cpu_time_total >= inner.cpu_time_total > 0
    assert extension.named(x).tolist() == [[4] * 3] * 2  # nobody records


def test_a_source_that_does_not_compile(tmp_path):
    with pytest.raises(RuntimeError, match="Error building extension"):
        cpp_extension.load_inline("broken", "int f( {", build_directory=str(tmp_path))
    with pytest.raises(NotImplementedError):
        cpp_extension.load("cuda_extension", [str(tmp_path / "kernel.cu")])


def test_what_setuptools_is_told():
    pytest.importorskip("setuptools")
    made = cpp_extension.CppExtension("e", ["e.cpp"], include_dirs=["mine"])
    assert made.include_dirs[0] == "mine" and "rushlight" in made.libraries
    assert made.runtime_library_dirs == cpp_extension.library_paths()
    assert cpp_extension.BuildExtension.with_options(use_ninja=False).__name__ == "BuildExtension"
    with pytest.raises(NotImplementedError):
        cpp_extension.CUDAExtension("e", ["e.cu"])


def test_module_of_pybind11(tmp_path):
    pytest.importorskip("pybind11")
    source = """
    #include <torch/extension.h>
    struct Counter {
      explicit Counter(int64_t start) : count(start) {}
      torch::Tensor next(const torch::Tensor& x) { return x + count++; }
      int64_t count;
    };
    torch::Tensor total(const std::vector<torch::Tensor>& list, std::optional<torch::Tensor> more) {
      TORCH_CHECK(!list.empty(), "nothing to add");
      torch::Tensor out = list[0].clone();
      for (size_t i = 1; i < list.size(); i++) out += list[i];
      return more ? out + *more : out;
    }
    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("total", &total, py::arg("list"), py::arg("more") = py::none());
      py::class_<Counter>(m, "Counter").def(py::init<int64_t>()).def("next", &Counter::next);
    }
    """
    module = cpp_extension.load_inline("bound", source, build_directory=str(tmp_path))
    x = torch.ones(2, requires_grad=True)
    module.total([x, x], more=x).sum().backward()
    assert x.grad.tolist() == [3, 3]
    counter = module.Counter(1)
    assert [counter.next(x)[0].item() for _ in range(2)] == [2, 3]
    with pytest.raises(RuntimeError, match="nothing to add"):
        module.total([])
    with pytest.raises(TypeError):
        module.total([1])


def test_setups_bring_the_binding_with_the_plain_header(tmp_path):
    pytest.importorskip("pybind11")
    source = tmp_path / "plain.cpp"
    source.write_text("""
    #include <torch/torch.h>
    torch::Tensor total(std::vector<torch::Tensor> list) { return torch::stack(list).sum(0); }
    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("total", &total); }
    """)
    defined = ["-DTORCH_API_INCLUDE_EXTENSION_H"]  # as BuildExtension defines it
    module = cpp_extension.load(
        "plain", str(source), extra_cflags=defined, build_directory=str(tmp_path)
    )
    assert module.total([torch.ones(2), torch.ones(2)]).tolist() == [2, 2]


def test_module_of_nanobind(tmp_path):
    nanobind = pytest.importorskip("nanobind")
    source = tmp_path / "bound_by_nanobind.cpp"
    source.write_text("""
    #include <torch/nanobind.h>
    #include <nanobind/stl/vector.h>
    namespace nb = nanobind;

    torch::Tensor total(const std::vector<torch::Tensor>& list) {
      TORCH_CHECK(!list.empty(), "nothing to add");
      torch::Tensor out = list[0].clone();
      for (size_t i = 1; i < list.size(); i++) out += list[i];
      return out;
    }
    NB_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("total", &total, nb::arg("list"));
      m.def("same", [](torch::Tensor x) { return x; });
    }
    """)
    folder = Path(nanobind.__file__).parent
    module = cpp_extension.load(
        "bound_by_nanobind",
        [str(source), str(folder / "src" / "nb_combined.cpp")],
        extra_include_paths=[nanobind.include_dir(), str(folder / "ext/robin_map/include")],
        extra_cflags=["-O0", "-fno-strict-aliasing"],
        build_directory=str(tmp_path),
    )
    x = torch.ones(2, requires_grad=True)
    module.total([x, x]).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]
    assert module.same(x) is x
    with pytest.raises(RuntimeError, match="nothing to add"):
        module.total([])
    with pytest.raises(TypeError):
        module.total([1])


def test_headers_by_the_names_of_their_parts(tmp_path):
    parts = {
        "ATen": "ATen Dispatch OpMathType Operators Parallel",
        "c10": "core/ScalarType util/Exception",
        "torch": "all autograd cuda data enum nn optim serialize utils",
    }
    headers = [f"{folder}/{part}.h" for folder, names in parts.items() for part in names.split()]
    source = "".join(f"#include <{header}>\n" for header in headers)
    source += """
    at::Tensor muladd(const at::Tensor& a, const at::Tensor& b, double c) {
      TORCH_CHECK(a.sizes() == b.sizes());
      TORCH_CHECK(a.dtype() == at::kFloat);
      TORCH_INTERNAL_ASSERT(a.device().type() == at::DeviceType::CPU);
      const at::Tensor x = a.contiguous();
      const at::Tensor y = b.contiguous();
      at::Tensor out = torch::empty(x.sizes(), x.options());
      const float* px = x.data_ptr<float>();
      const float* py = y.data_ptr<float>();
      float* to = out.data_ptr<float>();
      at::parallel_for(0, out.numel(), 1024, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) to[i] = px[i] * py[i] + static_cast<float>(c);
      });
      return out;
    }
    at::Tensor largest(const at::Tensor& x) {
      at::Tensor out;
      AT_DISPATCH_ALL_TYPES_AND(at::kBool, x.scalar_type(), "largest", [&] {
        const scalar_t* p = x.data_ptr<scalar_t>();
        out = at::scalar_tensor(*std::max_element(p, p + x.numel()), x.options());
      });
      return out;
    }
    """
    module = cpp_extension.load_inline(
        "rl_test_parts", source, functions=["muladd", "largest"], build_directory=str(tmp_path)
    )
    x = torch.arange(4.0)
    assert module.muladd(x, x, 0.5).tolist() == [0.5, 1.5, 4.5, 9.5]
    assert module.largest(torch.tensor([1, 7, 3])).item() == 7
    assert module.largest(torch.tensor([False, True])).item() is True


def test_what_build_scripts_ask():
    from rushlight.utils import cpp_extension as ext

    assert ext.CUDA_HOME is None and ext.ROCM_HOME is None and not ext.IS_HIP_EXTENSION
    assert ext.IS_LINUX and not ext.IS_WINDOWS and ext.CLIB_PREFIX + "x" + ext.LIB_EXT == "libx.so"
    assert ext.library_paths()[0] == ext.TORCH_LIB_PATH
    compiler = ext.get_cxx_compiler()
    good, version = ext.get_compiler_abi_compatibility_and_version(compiler)
    assert good and version >= (10,) and ext.check_compiler_ok_for_platform(compiler)
    assert ext.get_compiler_abi_compatibility_and_version("no-such-compiler") == (False, "0.0.0")
    assert not ext.check_compiler_is_gcc("cat")
    assert ext._is_cuda_file("a/b.cu") and not ext._is_cuda_file("b.cpp")
    with pytest.raises(OSError, match="CUDA_HOME"):
        ext._join_cuda_home("bin", "nvcc")
    with pytest.raises(NotImplementedError, match="SYCL"):
        ext.SyclExtension("x", ["x.sycl"])
