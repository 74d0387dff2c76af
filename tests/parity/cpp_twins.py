"""Which names of libtorch's C++ API rushlight has: `python -m tests.parity.cpp_twins` writes the table of a page.

The names are those that PyTorch's headers declare (cpp_names.py). A program with a using-declaration for each is
compiled against rushlight; a name is absent where its line is an error.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.parity.cpp_names import names_of

API = "torch/csrc/api/include/torch"
PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "from-libtorch.md"
# What the table calls it → headers, and what a name must look like.
GROUPS = {
    "functions (`ATen/ops`)": (
        ["ATen/ops/*.h"],
        r"at::(?!_ops)\w+(?<!_outf)(?<!_symint)(?<!_symint_out)",
    ),
    "their `_outf` forms": (["ATen/ops/*.h"], r"at::\w+_outf"),
    "overloads (`at::_ops`)": (["ATen/ops/*_ops.h"], r"at::_ops::\w+"),
    "methods of `Tensor`": (["ATen/core/Tensor*.h"], r"at::Tensor(Base)?::(?!\w+_symint)\w+"),
    "`nn`: modules": ([f"{API}/nn/*.h", f"{API}/nn/modules/**/*.h"], r"torch::nn::.*"),
    "`nn`: options": ([f"{API}/nn/options/*.h"], r"torch::nn::.*"),
    "`nn::functional`": ([f"{API}/nn/functional/*.h"], r"torch::nn::functional::.*"),
    "`nn::utils`, `nn::parallel`": (
        [f"{API}/nn/utils/*.h", f"{API}/nn/parallel/*.h"],
        r"torch::nn::.*",
    ),
    "`optim`, schedulers": ([f"{API}/optim/**/*.h"], r"torch::optim::.*"),
    "`data`": ([f"{API}/data/**/*.h"], r"torch::data::.*"),
    "archives": ([f"{API}/serialize/*.h", f"{API}/serialize.h"], r"torch::.*"),
    "`fft`, `linalg`, `special`, `nested`, `sparse`": (
        [f"{API}/{name}.h" for name in ("fft", "linalg", "special", "nested", "sparse")],
        r"torch::\w+::.*",
    ),
    "other headers of `torch/`": (
        [
            f"{API}/{name}.h"
            for name in (
                "arg",
                "cuda",
                "enum",
                "expanding_array",
                "jit",
                "mps",
                "ordered_dict",
                "types",
                "utils",
                "version",
                "xpu",
            )
        ],
        r"torch::.*",
    ),
    "TorchScript (`jit/api`, `jit/serialization`)": (
        [
            "torch/csrc/jit/api/*.h",
            "torch/csrc/jit/serialization/import.h",
            "torch/csrc/jit/serialization/export.h",
            "torch/csrc/jit/serialization/pickle.h",
        ],
        r"torch::jit::.*",
    ),
    "autograd": (
        [
            f"torch/csrc/autograd/{name}.h"
            for name in (
                "anomaly_mode",
                "autograd",
                "custom_function",
                "edge",
                "engine",
                "function",
                "grad_mode",
                "InferenceMode",
                "saved_variable",
            )
        ],
        r"torch::autograd::.*",
    ),
    "libraries of ops": (["torch/library.h", "torch/custom_class.h"], r"torch::.*"),
    "`c10d`": (
        [
            f"torch/csrc/distributed/c10d/{name}.hpp"
            for name in (
                "Backend",
                "FileStore",
                "HashStore",
                "PrefixStore",
                "ProcessGroup",
                "Store",
                "TCPStore",
                "Types",
                "Work",
            )
        ],
        r"c10d::.*",
    ),
    "`c10`": (
        [
            f"c10/core/{name}.h"
            for name in (
                "Device",
                "DeviceType",
                "Layout",
                "MemoryFormat",
                "Scalar",
                "ScalarType",
                "Storage",
                "Stream",
                "TensorOptions",
            )
        ]
        + [f"c10/util/{name}.h" for name in ("ArrayRef", "Exception", "intrusive_ptr", "irange")],
        r"c10::.*",
    ),
}
# Why names are absent, by what they look like.
REASONS = {
    r"at::\w+_outf": "write `_out`, whose tensors come first",
    r"at::_ops::\w+": "ops and `out=` forms that the op table lacks",
    r"at::_foreach_\w+|at::_fused_\w+|at::_amp_\w+": "lists are written in place (`_foreach_add_`); steps of optimisers are `torch::optim`'s",
    r"at::\w*(cudnn|cufft|miopen|mps|mkldnn|fbgemm|flash_attention|efficient_attention|attention_overrideable|semi_structured|_thnn_)\w*": "kernels of other libraries and devices have no names",
    r"at::\w*(nested|jagged|padded)\w*|torch::nested::.*|at::Tensor::\w*nested\w*": "nested tensors are Python's `torch.nested`",
    r"at::\w*(qparams|quantize)\w*|at::Tensor(Base)?::q\w+": "quantised tensors are Python's `torch.ao.quantization`",
    r"at::Tensor(Base)?::(is_)?(ipu|hip|ve|maia|metal|vulkan)|torch::(mps|xpu)::.*|c10::Device::is_\w+": "no such devices",
    r"at::Tensor(Base)?::(sym_\w+|.*_or_false|is_fake|key_set|toBackend|.*[bB]orrow\w*|wrap_tensor_impl|.*Intrusive\w*|.*unsafe\w*|_set_\w+|_fw_grad|\w*use_count|hook_return_\w+|expect_contiguous)": "parts of libtorch's tensors that are made otherwise here",
    r"torch::nn::(\w+::)*(\w+Impl(Base)?|_\w+|\w*Iterator|begin|end|CrossMapLRN2d|forward|backward)|torch::nn::(functions|modules|AnyModule\w+|utils|Module)::.*|torch::nn::AnyModule\w+": "bases and helpers that libtorch's modules share; modules stand alone here, and iterators have no names",
    r"torch::nn::(functional::)?(\w+::)?(reduction_t|mode_t|nonlinearity_t|Conv\w*FuncOptions|EmbeddingBagMode|padding_t)|torch::enumtype::.*": "enumerators have one type, and options of one dimension are not a template's",
    r"torch::nn::functional::_\w+|torch::nn::replicate_grad_edges|torch::nn::_\w+": "inner functions",
    r"torch::optim::.*": "states do not write themselves",
    r"torch::data::.*": "loaders have one kind of options; sizes of batches are numbers",
    r"torch::serialize::.*|torch::jit::.*": "archives and programs are those of `<rushlight/graph.h>`",
    r"torch::autograd::.*": "the engine's inside is other; anomaly mode and dual levels have guards and Python's functions",
    r"torch::(\w*[cC]allback\w*|\w*RecordFunction\w*)": "callbacks are objects of `RangeRecorder`",
    r"torch::.*": "inner names of libtorch's registration",
    r"c10d::.*": "inner parts of backends; queues, splits and timings are not offered",
    r"c10::.*": "inner parts of storages, warnings, symbols and counted pointers",
    r"at::.*": "not written yet",
}
HEADERS = """torch/torch.h torch/script.h torch/library.h torch/custom_class.h torch/csrc/autograd/engine.h
    torch/nn/parallel/data_parallel.h ATen/record_function.h torch/csrc/jit/serialization/export.h
    torch/csrc/distributed/c10d/ProcessGroup.hpp torch/csrc/distributed/c10d/FileStore.hpp
    torch/csrc/distributed/c10d/HashStore.hpp torch/csrc/distributed/c10d/PrefixStore.hpp
    torch/csrc/distributed/c10d/TCPStore.hpp"""
NOT_PUBLIC = re.compile(
    r"_(ops|native|meta|dispatch|\w*_dispatch)\.h$"
)  # unless a group names them


def read(include: Path) -> dict[str, list[str]]:
    """The names of each group."""
    groups = {}
    for group, (patterns, shape) in GROUPS.items():
        files = [
            f
            for p in patterns
            for f in sorted(include.glob(p))
            if NOT_PUBLIC.search(p) or not NOT_PUBLIC.search(f.name)
        ]
        found = (name for f in files for name in names_of(f.read_text(errors="replace")))
        groups[group] = list(dict.fromkeys(name for name in found if re.fullmatch(shape, name)))
    return groups


def probe(name: str, classes: set[str]) -> str:
    """A line that compiles where the name exists."""
    owner = name.rpartition("::")[0]
    if owner == "at::TensorBase":
        owner, name = "at::Tensor", name.replace("TensorBase", "Tensor")
    inside = f"using {name};"
    return f"struct P : {owner} {{ {inside} }};" if owner in classes else inside


def absent(names: Iterable[str], include: Path, compiler: str = "g++") -> list[str]:
    """Those that rushlight's headers do not have."""
    names = list(names)
    classes = {name.rpartition("::")[0] for name in names} & {*names, "at::Tensor"}
    lines = [f"#include <{header}>" for header in HEADERS.split()]
    first = len(lines) + 1
    lines += [f"namespace p{i} {{ {probe(name, classes)} }}" for i, name in enumerate(names)]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text("\n".join(lines) + "\n")
        command = [
            compiler,
            "-w",
            "-std=c++17",
            "-fsyntax-only",
            "-fmax-errors=0",
            "-fdiagnostics-color=never",
        ]
        said = subprocess.run(
            [*command, f"-I{include}", str(source)], capture_output=True, text=True
        ).stderr
        at = [
            int(n)
            for n in re.findall(
                rf"^{re.escape(str(source))}:(\d+):\d+: (?:fatal )?error:", said, re.M
            )
        ]
    assert all(n >= first for n in at), said[:2000]
    return [names[n - first] for n in sorted(set(at))]


def reason(name: str) -> str:
    """Why a name is absent; empty where nobody has said it."""
    return next((why for shape, why in REASONS.items() if re.fullmatch(shape, name)), "")


def table(groups: dict[str, list[str]], missing: set[str]) -> str:
    lines = ["| of libtorch's headers | names | here | absent |", "|---|---|---|---|"]
    for group, names in groups.items():
        gone = [name for name in names if name in missing]
        reasons = sorted({reason(name) for name in gone})
        lines.append(
            f"| {group} | {len(names)} | {len(names) - len(gone)} | {'; '.join(reasons)} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    import torch

    import rushlight

    theirs, ours = (Path(os.path.dirname(m.__file__)) / "include" for m in (torch, rushlight))
    groups = read(theirs)
    missing = set(absent(dict.fromkeys(n for names in groups.values() for n in names), ours))
    if sys.argv[1:] == ["--absent"]:
        print(
            "\n".join(
                f"{group}: {n}"
                for group, names in groups.items()
                for n in names
                if n in missing and not reason(n)
            )
        )
        return
    page = PAGE.read_text()
    start, end = "<!-- twins -->\n", "<!-- end of twins -->"
    before, _, rest = page.partition(start)
    PAGE.write_text(before + start + table(groups, missing) + end + rest.partition(end)[2])


if __name__ == "__main__":
    main()
