"""C++ fits a screen or two: headers 300 lines, functions 80, but for those listed here, which may only go."""

import re

from tests.test_layout import ROOT, sources

LONGEST_HEADER, LONGEST_FUNCTION = 300, 80
HEADERS = [
    "include/rushlight/absent_functions.h",
    "include/rushlight/autograd.h",
    "include/rushlight/data.h",
    "include/rushlight/distributed/c10d.h",
    "include/rushlight/dtype.h",
    "include/rushlight/internal_functions.h",
    "include/rushlight/nn/layers.h",
    "include/rushlight/nn/module.h",
    "include/rushlight/tensor.h",
    "include/rushlight/tensor_iterator.h",
    "include/rushlight/value.h",
    "include/rushlight/vectorized.h",
    "src/cpu/isa/matmul/gemm_engine.h",
    "src/cpu/isa/nn/attention.h",
    "src/cpu/isa/nn/attention_products.h",
    "src/cpu/isa/reduce/fold.h",
    "src/cpu/isa/simd.h",
    "src/kernels/gamma.h",
    "src/kernels/math.h",
    "src/kernels/optim.h",
    "src/kernels/pointwise.h",
    "src/kernels/random.h",
    "src/kernels/reduce.h",
    "src/kernels/special.h",
    "src/python/parser.h",
]
FUNCTIONS = {
    "src/cpu/isa/image/max_pool.cpp max_pool_typed",
    "src/cpu/isa/matmul/gemm.cpp multiply",
    "src/cpu/isa/matmul/gemm_engine.h micro_kernel",
    "src/cpu/isa/matmul/gguf.cpp add_block",
    "src/cpu/isa/nn/attention.cpp backward",
    "src/cpu/isa/nn/attention.cpp forward",
    "src/cpu/isa/nn/attention.h forward_by_query",
    "src/cpu/isa/nn/loss.cpp _cross_entropy",
    "src/cpu/isa/nn/loss.cpp _cross_entropy_backward",
    "src/cpu/isa/nn/recurrent.cpp backward",
    "src/cpu/isa/nn/recurrent.cpp forward",
    "src/cpu/isa/norm/softmax.cpp softmax_backward",
    "src/cpu/isa/reduce/scan_by.h scan",
    "src/cuda/matmul.cpp multiply",
    "src/cuda/recurrent.cu backward",
    "src/nn/attention.cpp multi_head_attention_forward",
    "src/ops/attention.cpp scaled_dot_product_attention",
    "src/ops/conv.cpp convolution",
    "src/ops/ctc.cpp embedding_bag_padding_idx",
    "src/ops/index_composites.cpp segment_reduce",
    "src/ops/scatter_backward.cpp scatter_reduce_backward",
    "src/optim/lbfgs.cpp step",
    "src/python/distributed.cpp init_stores",
    "src/python/distributed.cpp store_methods",
    "src/python/script_values.cpp to_script",
    "src/script/expressions.cpp attribute_of_value",
    "src/script/flow.cpp merge",
    "src/script/specials.cpp special",
    "src/script/subscripts.cpp subscript",
    "src/serialize/pickle.cpp execute",
}

# The first line of a function, at the margin or in a class, as clang-format has it; no lambda, no data.
HEAD = re.compile(
    r"(  )?(?!(?:namespace|struct|class|union|enum|extern|for|if|while|switch|do|else|return)\b)"
    r"(?!.*(?:\[.?\]\(|= \{$))[\w~\[].*?([~\w]+)\("
)


def long_functions(text, longest=LONGEST_FUNCTION):
    """The names of functions with more lines than that."""
    lines = text.split("\n")
    for start, line in enumerate(lines):
        head = start
        while line.endswith("{") and head > 0 and lines[head].startswith("    "):
            head -= 1
        whole = " ".join([lines[head], *map(str.strip, lines[head + 1 : start + 1])])
        found = HEAD.match(re.sub(r"__attribute__\(\(.*?\)\) ", "", whole))
        if line.endswith("{") and found:
            end = f"{found[1] or ''}}}"
            length = (
                next((i for i in range(start, len(lines)) if lines[i] == end), start) - head + 1
            )
            if length > longest:
                yield found[2]


def test_long_functions_are_found():
    body = "  f();\n" * 4
    assert list(long_functions(f"int one(int a,\n        int b) {{\n{body}}}\n", 5)) == ["one"]
    assert not list(long_functions(f"int one(int a) {{\n{body}}}\n", 6))
    assert not list(long_functions(f"namespace n {{\n{body}}}\nconst int a[] = {{\n{body}}}\n", 5))


def test_functions_are_short():
    found = {
        f"{path} {name}"
        for path in sources(".cpp", ".h", ".cu", ".cuh", ".inc")
        if path.parts[0] in ("src", "include")
        for name in long_functions((ROOT / path).read_text())
    }
    assert found == FUNCTIONS


def test_headers_are_short():
    found = [
        str(path)
        for path in sources(".h", ".cuh")
        if path.parts[0] in ("src", "include")
        and (ROOT / path).read_text().count("\n") > LONGEST_HEADER
    ]
    assert sorted(found) == sorted(HEADERS)
