"""The rules of the house that a machine can check.

Which way includes point, what headers pull in, how files open, and that facts written twice agree.
"""

import ast
import functools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import skips

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).resolve().parent.parent

# Floor of each folder of src/: a file may include from its own floor and from those below it.
FLOORS = {
    "core": 0,
    "autograd": 2,
    "kernels": 2,
    "cpu": 3,
    "cuda": 3,
    "ops": 3,
    "graph": 4,
    "library": 4,
    "nn": 5,
    "optim": 5,
    "data": 5,
    "vision": 5,
    "serialize": 5,
    "language": 5,
    "exported": 5,
    "script": 5,
    "distributed": 5,
    "jit": 5,
    "python": 6,
}
# Public headers belong to the core but for these; ops.h is generated from the op table.
PUBLIC_FLOORS = {
    "ops": 1,
    "operators": 1,
    "factories": 1,
    "compat": 1,
    "accumulate_type": 1,
    "data_ptr": 1,
    "cpu_blas": 1,
    "custom_node": 1,
    "flatten": 1,
    "kernel_tools": 1,
    "vectorized": 1,
    "context": 1,
    "functions": 1,
    "libtorch": 1,
    "checks": 1,
    "other_tensors": 1,
    "tensor_iterator": 1,
    "absent_functions": 1,
    "internal_backward": 1,
    "internal_functions": 1,
    "out_functions": 1,
    "tracer": 5,
    "jit_settings": 5,
    "class_type": 4,
    "graph": 4,
    "graph_function": 4,
    "graph_kind": 4,
    "graph_passes": 4,
    "executor": 4,
    "archive": 5,
    "exported": 5,
    "script": 5,
    "jit": 5,
    "rushlight": 6,
    "nn": 5,
    "optim": 5,
    "optimizer": 5,
    "data": 5,
    "chunks": 5,
    "aoti_package": 5,
    "samplers": 5,
    "vision": 5,
    "serialize": 5,
    "gguf": 5,
    "language": 5,
}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
HEAVY = {"iostream", "regex", "functional"}


def sources(*suffixes):
    """Files of the project with one of these suffixes, as paths relative to its root."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = (Path(name) for name in listed.stdout.split("\0") if name)
    # What others wrote keeps their style.
    paths = (path for path in paths if path.parts[0] != "third_party")
    return [path for path in paths if path.suffix in suffixes and (ROOT / path).exists()]


def floor_of_file(path):
    """Floor of a source file, or None where it has none (tests, examples)."""
    if path.parts[0] == "src" and len(path.parts) > 2:
        return FLOORS[path.parts[1]]
    if path.parts[:2] == ("include", "rushlight"):
        return PUBLIC_FLOORS.get(path.relative_to("include/rushlight").parts[0].split(".")[0], 0)
    return None


def floor_of_include(path, name):
    """Floor of what `path` includes by this name, or None where it is not ours."""
    if name.startswith("rushlight/"):
        return floor_of_file(Path("include") / name)
    if (ROOT / "src" / name).exists():
        return floor_of_file(Path("src") / name)
    beside = (ROOT / path.parent / name).resolve()
    if beside.exists() and beside.is_relative_to(ROOT):
        return floor_of_file(beside.relative_to(ROOT))
    return None


def test_includes_point_one_way():
    wrong = []
    for path in sources(".h", ".cpp", ".cu", ".cuh"):
        floor = floor_of_file(path)
        if floor is None:
            continue
        for name in INCLUDE.findall((ROOT / path).read_text()):
            included = floor_of_include(path, name)
            if included is not None and included > floor:
                wrong.append(f"{path} includes {name}, which lies above it")
    assert not wrong, "\n".join(wrong)


# Beside src/cuda and the generator's files of formulas, these spell the device's name, since users write it.
SPELL_THE_DEVICE = {
    "include/ATen/autocast_mode.h",
    "include/rushlight/compat.h",
    "include/rushlight/accumulate_type.h",
    "include/rushlight/checks.h",
    "include/rushlight/dlpack.h",
    "src/core/dlpack.cpp",
    "include/rushlight/context.h",
    "include/rushlight/device.h",
    "include/rushlight/dispatch_key.h",
    "include/rushlight/jit_settings.h",
    "include/rushlight/libtorch.h",
    "include/rushlight/nn/utils.h",
    "include/rushlight/schema.h",
    "include/rushlight/stable/abi.h",
    "include/rushlight/stable/headeronly.h",
    "include/rushlight/stable/tensor.h",
    "include/rushlight/tensor.h",
    "gen/_C.pyi.in",
    "gen/__main__.py",
    "ops/headers.py",
    "gen/registry.py",
    "src/autograd/saved.cpp",
    "src/core/backend.h",
    "src/core/error.cpp",
    "src/library/library.cpp",
    "src/core/op_support.h",
    "src/core/functions.cpp",
    "src/graph/builtins_tensor.cpp",
    "src/nn/parallel.cpp",
    "src/ops/internal_functions.cpp",
    "src/ops/lapack.cpp",
    "src/python/autocast.cpp",
    "src/python/dlpack.cpp",
    "src/python/methods.cpp",
    "src/python/properties.cpp",
    "src/python/storage.cpp",
    "src/python/types.cpp",
    "src/script/expressions.cpp",
    "src/script/jit_settings.cpp",
}


# What programs written for libtorch find under its names.
LIBTORCH_NAMES = {
    "include/rushlight/accelerator.h",
    "include/rushlight/cuda_guard.h",
    "src/script/jit_settings.cpp",
}


def test_one_device_is_known_to_its_folder_alone():
    wrong = []
    for path in sources(".h", ".cpp", ".py", ".in"):
        if path.parts[0] not in ("include", "src", "gen", "ops"):
            continue
        if path.is_relative_to("src/cuda") or path.is_relative_to("src/distributed/nccl"):
            continue
        if str(path) in LIBTORCH_NAMES:
            continue
        text = (ROOT / path).read_text()
        calls = re.search(r"cuda::|\bcuda[A-Z]|# *include.*cuda", text)
        names = re.search("cuda|nvidia|cublas", text, re.IGNORECASE)
        if path != Path("gen/kernels.py") and (
            calls or (names and str(path) not in SPELL_THE_DEVICE)
        ):
            wrong.append(f"{path} names CUDA")
    assert not wrong, "\n".join(wrong)


def test_headers_are_light():
    wrong = [
        f"{path} includes <{name}>"
        for path in sources(".h", ".cuh")
        # torch.h gives what programs expect of PyTorch's header; modules and loaders take any function.
        # A test is compiled once.
        if path.parts[:2] != ("include", "torch") and floor_of_file(path) != FLOORS["nn"]
        if path.parts[0] != "tests"
        for name in INCLUDE.findall((ROOT / path).read_text())
        if name in HEAVY
    ]
    assert not wrong, "\n".join(wrong)


def opens_well(path):
    """A comment stands first, or the include of the file's own header, where the comment stands."""
    text = (ROOT / path).read_text().lstrip()
    if path.suffix == ".py":
        return not text or text.startswith(('"""', 'r"""', "#"))
    if path.suffix == ".cmake":
        return text.startswith("#")
    first = text.partition("\n")[0]
    return first.startswith("//") or first.endswith(f'{path.stem}.h"')


def test_files_open_with_what_they_hold():
    paths = sources(".h", ".cpp", ".cu", ".cuh", ".cmake", ".py")
    wrong = [str(path) for path in paths if not opens_well(path)]
    assert not wrong, "files that do not open with a comment: " + ", ".join(wrong)


def test_build_requirements_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    required = set(project["build-system"]["requires"])
    group = set(project["dependency-groups"]["build"])
    assert required <= group


def test_version_is_that_of_the_project():
    import rushlight

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert rushlight.version.rushlight == project["project"]["version"]


# ---- imports of Python files ---------------------------------------------------------------------

PACKAGE = ROOT / "python"


def test_the_console_script_replaces_none_of_pytorchs():
    """A script named torchrun would overwrite PyTorch's where both are installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"rushrun": "rushlight.distributed.run:main"}


# The levels of the package and how high each lies: a module imports from its own height and from
# below, wherever the import stands. It belongs to the level that has the longest beginning of its
# name, else to the core.
LEVELS = {
    "core": (0, ""),
    "nn": (1, "nn utils.flop_counter utils.module_tracker"),
    "optim": (1, "optim"),
    "func": (1, "func _higher_order_ops"),
    "data": (2, "utils.data distributions"),
    "trace": (
        2,
        "compiler export _export fx jit onnx _dynamo _prims_common _subclasses utils.tensorboard",
    ),
    "quantised": (2, "ao gguf language serve"),
    "parallel": (3, "distributed nn.parallel"),
    "vision": (4, "vision"),
    "foreign": (5, "foreign as_torch __main__ mps mtia xpu"),
}


def level_of(module):
    """The level that a module of the package belongs to."""
    path = module.removeprefix("rushlight").removeprefix(".")
    owners = [
        (len(start), level)
        for level, (_, starts) in LEVELS.items()
        for start in starts.split()
        if f"{path}.".startswith(f"{start}.")
    ]
    return max(owners, default=(0, "core"))[1]


def points_up(module, other):
    """Whether an import leads to a higher level."""
    return LEVELS[level_of(other)][0] > LEVELS[level_of(module)][0]


def python_modules():
    """Name → path of the modules of the package, the generated ones included."""
    modules = {}
    for path in PACKAGE.glob("rushlight/**/*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def import_statements(node, inside=False):
    """The imports below a node of a syntax tree, and whether each stands in a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for other in child.orelse:
                yield from import_statements(other, inside)
        elif isinstance(child, ast.With) and re.match(r"_?lazy\(", ast.unparse(child.items[0])):
            continue  # run when somebody uses the names
        elif isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        else:
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from import_statements(child, inside or function)


def packages_of(name):
    parts = name.split(".")
    return {".".join(parts[:i]) for i in range(1, len(parts))}


def imported(name, path, statement, modules):
    """The modules of ours that a statement runs: those it names, and the packages they lie in."""
    if isinstance(statement, ast.Import):
        named = {alias.name for alias in statement.names}
    else:
        base = statement.module or ""
        if statement.level:
            package = name.split(".")[: None if path.name == "__init__.py" else -1]
            package = package[: len(package) - statement.level + 1]
            base = ".".join([*package, base]) if base else ".".join(package)
        # `_C` is the extension, which imports nothing of ours.
        full = {alias.name: f"{base}.{alias.name}" for alias in statement.names}
        named = {f if f in modules or n == "_C" else base for n, f in full.items()}
    # The packages that a module lies in itself run before it anyway.
    around = set().union(*(packages_of(n) for n in named)) - packages_of(name)
    return {n for n in named | around if n in modules and n != name}


def imports_of(name, path, text, modules):
    """The modules of ours that a module imports, at the top of the file and inside functions."""
    statements = import_statements(ast.parse(text))
    return set().union(*(imported(name, path, s, modules) for s, _ in statements))


@functools.cache
def import_graph():
    """Module → the modules that it imports."""
    modules = python_modules()
    return {name: imports_of(name, p, p.read_text(), modules) for name, p in modules.items()}


@functools.cache
def postponed():
    """Module → the modules that it names by `later`, which loads them when they are first used."""
    return {
        name: re.findall(r'(?m)^\w+ = _?later\("(rushlight\b[\w.]*)"\)$', path.read_text())
        for name, path in python_modules().items()
    }


def cycle_in(graph):
    """One cycle of a graph, as a list of nodes, or None."""
    done = set()

    def search(node, path):
        if node in path:
            return path[path.index(node) :]
        if node in done:
            return None
        for other in sorted(graph[node]):
            cycle = search(other, [*path, node])
            if cycle:
                return cycle
        done.add(node)
        return None

    return next(filter(None, (search(node, []) for node in sorted(graph))), None)


def test_imports_of_the_package_have_no_cycle():
    cycle = cycle_in(import_graph())
    assert cycle is None, " imports ".join([*cycle, cycle[0]])


def test_imports_point_down_the_levels():
    wrong = [
        f"{name} ({level_of(name)}) imports {other} ({level_of(other)})"
        for name, others in import_graph().items()
        for other in others
        if points_up(name, other)
    ]
    assert not wrong, "\n".join(sorted(wrong))


def test_levels_name_what_is_there():
    modules = python_modules()
    for _, starts in LEVELS.values():
        assert all(f"rushlight.{start}" in modules for start in starts.split())
    assert {level_of(name) for name in modules} == LEVELS.keys()


# Level → a module of it, and an import that it must not have; nothing lies above `foreign`.
PLANTED = {
    "core": ("rushlight.storage", "from rushlight.nn import functional"),
    "nn": ("rushlight.nn.modules.linear", "import rushlight.distributed"),
    "optim": ("rushlight.optim.sgd", "from rushlight import fx"),
    "func": ("rushlight.func", "from ._subclasses import fake_tensor"),
    "data": ("rushlight.utils.data.dataloader", "from ...distributed import nn"),
    "trace": ("rushlight.fx.graph", "from rushlight.nn.parallel import distributed"),
    "quantised": ("rushlight.ao.quantization.quantize", "import rushlight.vision.models.resnet"),
    "parallel": ("rushlight.distributed.fsdp", "from rushlight import vision"),
    "vision": ("rushlight.vision.io", "from rushlight.foreign import absent"),
}


@pytest.mark.parametrize("level", PLANTED)
@pytest.mark.parametrize(
    "place", ["{}\n", "def f():\n    {}\n"], ids=["at the top", "in a function"]
)
def test_a_planted_import_is_caught(level, place):
    modules = python_modules()
    name, statement = PLANTED[level]
    assert level_of(name) == level
    found = imports_of(name, modules[name], place.format(statement), modules)
    assert any(points_up(name, other) for other in found)


def test_what_is_postponed_could_not_be_imported():
    """Each `later` leads to a higher level, or an import in its place would close a circle."""
    graph = import_graph()
    for name, others in postponed().items():
        for other in others:
            assert other in graph, f"{name} names {other}, which is no module"
            closes = name in reachable(graph, other)
            assert points_up(name, other) or closes, f"{name} can import {other}"


def reachable(graph, node):
    """What a module imports, and what that imports."""
    found, todo = set(), [node]
    while todo:
        new = graph[todo.pop()] - found
        found |= new
        todo += new
    return found


def test_the_tensor_imports_nothing_inside_functions():
    tree = ast.parse((PACKAGE / "rushlight/_tensor.py").read_text())
    assert not [s.lineno for s, inside in import_statements(tree) if inside]


def test_private_modules_of_the_top_level_are_few():
    names = {path.stem for path in (PACKAGE / "rushlight").glob("_[!_]*.py")}
    assert len(names - {"_functions"}) <= 12, sorted(names)


def bodies_of(path):
    """The functions of a file: their names, and how many lines their statements take."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            statements = node.body[1:] if ast.get_docstring(node) else node.body
            if statements:
                yield node.name, statements[-1].end_lineno - statements[0].lineno + 1


def test_functions_of_the_package_fit_a_screen():
    long = [
        f"{name}: {function} has {count} lines"
        for name, path in python_modules().items()
        for function, count in bodies_of(path)
        if count > 60
    ]
    assert not long, "\n".join(long)


def lines_of(path):
    """How many lines a file has beside its docstrings, which are the reference."""
    text, said = path.read_text(), 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            said += node.body[0].end_lineno - node.body[0].lineno + 1
    return text.count("\n") - said


def test_files_of_the_package_are_short():
    """Docstrings, which are the reference, do not count."""
    lengths = {
        name: lines_of(path)
        for name, path in python_modules().items()
        if "_stateless" not in name  # generated
    }
    assert not {name: length for name, length in lengths.items() if length > 500}


def test_the_search_for_cycles_finds_one():
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c"]
    assert cycle_in({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


def test_parity_tests_are_skipped_without_pytorch():
    """What a parity test imports from PyTorch's world comes below the line that skips the file."""
    for path in sorted((ROOT / "tests" / "parity").glob("test_*.py")):
        skips = False
        for statement in ast.parse(path.read_text()).body:
            text = ast.unparse(statement)
            skips = skips or "importorskip(" in text or "oracle.load()" in text
            theirs = re.match(r"(import|from) (torch|torchvision)\b", text)
            assert skips or not theirs, f"{path.name}:{statement.lineno}: {text}"


def test_what_is_skipped_has_a_reason_that_is_allowed():
    lines = [
        "SKIPPED [1] tests/parity/test_ops.py:11: could not import 'torch': No module named 'torch'",
        "SKIPPED [2] tests/ops/test_table.py:30: reads the values",
    ]
    summary = "================= 812 passed, {} skipped, 4 deselected in 61.20s (0:01:01) =================="
    assert skips.judged("\n".join([*lines, summary.format(3)])) == (3, [])
    other = "SKIPPED [84] tests/python/test_distributed_ddp.py: built without Gloo"
    total, wrong = skips.judged("\n".join([*lines, other, summary.format(87)]))
    assert total == 87 and wrong == [
        "skipped 84 of tests/python/test_distributed_ddp.py: built without Gloo"
    ]
    assert skips.judged("\n".join([*lines, summary.format(5)]))[1] == [
        "5 tests were skipped, and 3 have a reason"
    ]
    assert skips.judged("\n".join(lines))[1] == ["there is no summary of pytest's"]
    assert skips.judged("========== 3 passed in 1.00s ==========") == (0, [])
    for pattern, why in skips.allowed().items():
        assert why, pattern


def untyped(path):
    """The private functions of a file, and those of private modules, that leave types out."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    private = any(part.startswith("_") and part != "__init__" for part in parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if private or (node.name.startswith("_") and not node.name.startswith("__")):
            every = node.args
            taken = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
            named = [a for a in taken if a is not None and a.arg not in ("self", "cls")]
            if node.returns is None or any(a.annotation is None for a in named):
                yield node.name


# How many there are still; the numbers only fall.
UNTYPED = {"core": 809, "nn": 192, "optim": 0, "data": 190}


@pytest.mark.parametrize("level", UNTYPED)
def test_private_functions_have_types(level):
    found = [
        f"{name}: {function}"
        for name, path in python_modules().items()
        if level_of(name) == level and "_stateless" not in name and "_functions" not in name
        for function in untyped(path)
    ]
    assert len(found) <= UNTYPED[level], "\n".join(found)
