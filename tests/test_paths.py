"""Comments, docstrings and pages name files that exist.

A name such as `src/core/sparse.h` or `isa/simd.h` has to be the end of the path of a file of the
repository, of one that the build generates, or of one of the list `ELSEWHERE`.
"""

import ast
import fnmatch
import io
import re
import tokenize
from pathlib import Path

import pytest

from tests.test_layout import sources

ROOT = Path(__file__).resolve().parent.parent

SUFFIXES = "h hpp inc cuh cu cpp py pyi cmake md"
NAME = re.compile(
    r"(?<![\w/.*{}<>~$-])(?:[\w.*{},-]+/)*[\w*{},-]+(?:\.\w+)*"
    rf"\.(?:{SUFFIXES.replace(' ', '|')})\b(?![\w(])"
)
FOLDER = re.compile(
    r"(?<![\w/.*<>~$-])(?:src|include|python|tests|bench|cmake|docs|gen)(?:/[\w-]+)*/(?![\w*<{])"
)

# Files that are not in the repository, by why they are named.
ELSEWHERE = {
    "the build generates it": """
        ops.h tensor_methods.inc stateless.h modules.md generated/kernels.h core/interface_hash.h
        include/generated/kernels.h build/release/generated/include/generated/kernels.h
        _C.pyi gen/_C.pyi _functions.pyi _linalg.pyi include/torch/csrc/distributed/c10d/*.hpp""",
    "a module, `python -m bench.cpp`": "bench.cpp",
    "a program of the reader": """
        train.py light.py ray_train.py script.py spirals.cpp read.py net.cpp hubconf.py net.py file.py
        serve.py ask.py
        src/cpu/isa/index/pair_sum.cpp""",
    "a member of an archive of TorchScript": "code/__torch__/models.py code/__torch__/a/b.py",
    "a report that torch.onnx.export writes": "onnx_export_report.md",
    "a library's header": "dnnl.hpp dnnl_config.h omp.h",
    "a project": "llama.cpp",
    "the benchmark suite, which is no part of the repository": "pair.py",
    "tests of PyTorch and of packages": """
        test_binary_ufuncs.py test_convolution.py test_nestedtensor.py test_ops_gradients.py
        test_reductions.py test_torch.py test_tensor_creation_ops.py test_type_promotion.py
        test_unary_ufuncs.py api_tests.py event_tests.py gradient_tests.py norm_tests.py
        odeint_tests.py test_handle.py test_multithreaded.py test_pt_comparison.py test_pt_model.py
        test_simple.py test_threadable.py""",
}
SOME_NAME = re.compile(rf"\.(?:{SUFFIXES.replace(' ', '|')})\b|\w/")
KNOWN = {name for names in ELSEWHERE.values() for name in names.split()}


def comments(path, text):
    """Number and text of each line of prose in a file: comments, docstrings, or the whole page."""
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            if isinstance(node, kinds) and ast.get_docstring(node) is not None:
                string = node.body[0].value
                yield from enumerate(string.value.splitlines(), string.lineno)
        # Taking a file apart takes long: only where a comment may name something.
        if any(SOME_NAME.search(line.partition("#")[2]) for line in text.splitlines()):
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT:
                    yield token.start[0], token.string
    else:
        mark = "#" if path.suffix in (".cmake", ".txt") else "//"
        for number, line in enumerate(text.splitlines(), 1):
            before, _, comment = line.partition(mark)
            # Within a string, or the middle of an address, it begins no comment.
            if comment and before.count('"') % 2 == 0 and not before.endswith(":"):
                yield number, comment


def spelled(name):
    """The names that a name with braces stands for."""
    if m := re.match(r"(.*)\{(.*)\}(.*)", name):
        return [m[1] + middle + m[3] for middle in m[2].split(",")]
    return [name]


@pytest.fixture(scope="module")
def files():
    return [*sources(*(f".{s}" for s in SUFFIXES.split()), ".txt", ".in")]


def missing(prose, endings):
    """The names of files in a text that are no end of a path and not known to be elsewhere."""
    for found in NAME.findall(prose):
        for name in spelled(found):
            name = re.sub(r"^(\.\./)+", "", name)  # a link of a page in a folder
            known = name in KNOWN or name in endings
            if not known and not ("*" in name and fnmatch.filter(endings, name)):
                yield name
    for folder in FOLDER.findall(prose):
        if not (ROOT / folder).is_dir():
            yield folder


def endings_of(paths):
    return {"/".join(p.parts[i:]) for p in paths for i in range(len(p.parts))}


def test_files_that_are_named_exist(files):
    endings = endings_of(files)
    wrong = []
    for path in files:
        # Expected outputs name the files that a build would write; programs are not ours alone.
        if path.parts[:2] == ("tests", "golden") or path.parts[:3] == (
            "tests",
            "compat",
            "programs",
        ):
            continue
        text = (ROOT / path).read_text()
        if not SOME_NAME.search(text):
            continue
        for number, prose in comments(path, text):
            if not SOME_NAME.search(prose):
                continue
            wrong += [f"{path}:{number} names {name}" for name in missing(prose, endings)]
    assert not wrong, "\n".join(wrong)


def test_known_names_are_named(files):
    """A name in `ELSEWHERE` that nobody mentions has to go."""
    text = "".join((ROOT / p).read_text() for p in files if p.name != "test_paths.py")
    assert not [name for name in KNOWN if name not in text]


def test_what_is_missing_is_found():
    endings = endings_of([Path("src/core/sparse.h"), Path("src/cpu/isa/conv/batch.cpp")])
    assert not list(
        missing("see core/sparse.h, sparse.h, conv/batch.cpp and isa/conv/*.cpp", endings)
    )
    assert list(missing("see isa/conv_batch.cpp, core/{sparse,whole}.h", endings)) == [
        "isa/conv_batch.cpp",
        "core/whole.h",
    ]
    assert list(missing("all of src/nowhere/ and src/core/", endings)) == ["src/nowhere/"]


def test_comments_are_found():
    python = '"""One."""\nx = "# two"  # three/four\n'
    assert list(comments(Path("x.py"), python)) == [(1, "One."), (2, "# three/four")]
    assert list(comments(Path("x.h"), 'f("// one");\nint a;  // two\n')) == [(2, " two")]
