"""`import torch` as rushlight: the alias, programs and tests under it, and what is missing."""

import os
import subprocess
import sys
import textwrap
import zipfile

import pytest

import rushlight
from rushlight import _C
from rushlight.foreign import check


def python(*arguments, status=0, **environment):
    """What a Python process writes, run without PyTorch's alias of ours around it."""
    clean = {k: v for k, v in os.environ.items() if k != "RUSHLIGHT_AS_TORCH"}
    command = [sys.executable, *map(str, arguments)]
    run = subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True)
    assert run.returncode == status, run.stderr
    return run.stdout


def under_alias(code):
    return python("-c", "import rushlight.as_torch\n" + textwrap.dedent(code))


def test_modules_are_the_same_under_both_names():
    under_alias("""
        import torch, torch.nn as nn, rushlight
        from torch.utils.data import DataLoader
        import torch.nn.functional as F
        assert torch is rushlight and nn is rushlight.nn and F.relu is rushlight.nn.functional.relu
        assert nn.__spec__.name == "rushlight.nn" and torch.__name__ == "torch"
        assert nn.__name__ == "torch.nn" and nn.modules.__name__ == "torch.nn.modules"
        import torchvision.transforms as transforms
        assert transforms.__name__ == "torchvision.transforms"  # loaded only now
        import torch.nn.modules.linear as linear, sys
        assert linear is sys.modules["rushlight.nn.modules.linear"]
        del sys.modules["torch"]
        import torch.nn
        assert torch is rushlight
    """)


def test_functorch_is_found():
    under_alias("""
        import functorch, torch, importlib.util
        from functorch import FunctionalModule, make_functional_with_buffers, make_fx, vmap
        assert importlib.util.find_spec("functorch") is not None and vmap is torch.func.vmap
        x, layer = torch.randn(3, 2), torch.nn.Linear(2, 2)
        call, params = functorch.make_functional(layer)
        assert isinstance(call, FunctionalModule) and not list(call.parameters())
        assert torch.equal(call(params, x), layer(x)) and params[0] is not layer.weight
        norm = torch.nn.BatchNorm1d(2).eval()
        call, params, buffers = make_functional_with_buffers(norm)
        assert torch.equal(call(params, buffers, x), norm(x))
        assert torch.equal(functorch.functionalize(lambda t: t.clone().add_(1))(x), x + 1)
        assert torch.equal(functorch.vmap(functorch.grad(lambda t: (t * t).sum()))(x), 2 * x)
        try:
            import functorch.dim
        except ModuleNotFoundError as error:
            assert "rushlight has no functorch.dim yet" in str(error)
        else:
            raise AssertionError
        from functorch.compile import aot_function, nop
        assert torch.equal(aot_function(lambda t: t.sin(), nop)(x), x.sin())
    """)


def test_what_asks_for_torch_finds_it():
    under_alias("""
        import importlib.metadata, importlib.util
        found = importlib.util.find_spec("torch")
        import torch
        assert found is not None and torch.__spec__ is not None and torch.__path__
        assert importlib.util.find_spec("torch.nn.utils") is not None
        assert importlib.util.find_spec("torch.optim.lr_scheduler").origin.endswith("lr_scheduler")
        assert importlib.util.find_spec("torch.no_such_module") is None
        assert torch.__version__ == torch.version.__version__ == "2.8.0+rushlight"
        assert importlib.metadata.version("torch") == torch.__version__
        assert importlib.metadata.version("torchvision") == "0.28.0"
        assert importlib.metadata.distribution("torch").metadata["Name"] == "torch"
        assert importlib.metadata.version("pytest")
    """)


def test_classes_and_functions_are_torchs():
    under_alias("""
        import io, pickle, torch
        import torch.optim
        for value, module in [
            (torch.Tensor, "torch"),
            (torch.nn.Linear, "torch.nn.modules.linear"),
            (torch.nn.functional.relu, "torch.nn.functional"),
            (torch.optim.SGD, "torch.optim.sgd"),
            (torch.relu, "torch"),
        ]:
            assert value.__module__ == module, (value, value.__module__)
        layer = torch.nn.Linear(2, 3)
        text = pickle.dumps(layer)
        assert b"torch.nn.modules.linear" in text and b"rushlight.nn" not in text
        assert torch.equal(pickle.loads(text).weight, layer.weight)
        file = io.BytesIO()
        torch.save(layer, file)
        file.seek(0)
        assert torch.equal(torch.load(file, weights_only=False).weight, layer.weight)
    """)


def test_submodules_do_not_replace_functions_of_their_name():
    under_alias("""
        import torch.autograd.gradcheck
        import torch.nn.utils.weight_norm
        from torch.autograd.gradcheck import GradcheckError
        assert callable(torch.autograd.gradcheck) and callable(torch.nn.utils.weight_norm)
    """)


def test_what_is_missing_is_named_as_the_program_does():
    under_alias("""
        import torch, torch.nn
        def message(code, kind):
            try:
                exec(code, {"torch": torch})
            except kind as error:
                return str(error)
        missing = "rushlight has no torch.%s yet"
        assert message("torch.nothing", AttributeError) == missing % "nothing"
        assert message("torch.nn.Nothing", AttributeError) == missing % "nn.Nothing"
        assert message("from torch import nothing", ImportError) == missing % "nothing"
        assert message("from torch.nn import Nothing", ImportError) == missing % "nn.Nothing"
        assert message("import torch.nothing.at_all", ImportError) == missing % "nothing"
        assert message("import torch.nothing", ModuleNotFoundError) == missing % "nothing"
        assert not hasattr(torch, "nothing") and not hasattr(torch.nn, "__nothing__")
        import importlib
        try:
            importlib.import_module("torch.nothing")
        except ModuleNotFoundError as error:
            assert error.name == "torch.nothing"
    """)


def test_what_others_put_under_a_name_of_pytorchs_is_found(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "__init__.py").write_text("")
    (tmp_path / "deep" / "est.py").write_text("value = 3\nclass Kind: pass\n")
    under_alias(f"""
        import sys, types, torch
        sys.modules["torch.added"] = module = types.ModuleType("torch.added")
        module.__path__ = [{str(tmp_path)!r}]
        from torch.added.deep import est
        assert est.value == 3 and est.__name__ == "torch.added.deep.est"
        import io
        torch.save(est.Kind(), stream := io.BytesIO())
        stream.seek(0)
        assert isinstance(torch.load(stream, weights_only=False), est.Kind)
        try:
            import torch.added.other
        except ModuleNotFoundError as error:
            assert "rushlight has no torch.added.other" in str(error)
        else:
            raise AssertionError
    """)


def test_pytorch_itself_must_not_be_there():
    python(
        "-c",
        "import sys, types\n"
        "sys.modules['torch'] = types.ModuleType('torch')\n"
        "try:\n    import rushlight.as_torch\n"
        "except ImportError as error:\n    assert 'before torch' in str(error)\n"
        "else:\n    raise AssertionError",
    )


PROGRAM = """
import multiprocessing, os, subprocess, sys
import torch

def work(queue):
    import torch
    queue.put((torch.__version__, torch.ones(2).tolist()))

if __name__ == "__main__":
    print(torch.__version__, sys.argv[1:], __name__, sys.path[0])
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        print(*queue.get())
        process.join()
    code = "import importlib.metadata as m; print(m.version('torch')); import torch; print(torch)"
    subprocess.run([sys.executable, "-c", code], check=True)
"""


def test_a_script_and_its_children_run_under_the_alias(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    lines = python("-u", "-m", "rushlight", "run", script, "a", "-b").splitlines()
    assert lines[0] == f"2.8.0+rushlight ['a', '-b'] __main__ {tmp_path}"
    assert lines[1:3] == ["2.8.0+rushlight [1.0, 1.0]"] * 2
    assert lines[3] == "2.8.0+rushlight" and "rushlight" in lines[4]


def test_modules_strings_and_commands_run(tmp_path):
    (tmp_path / "there.py").write_text("import torch, sys; print(torch.__version__, sys.argv[1:])")
    command = tmp_path / "tool"
    command.write_text(
        "#!/usr/bin/python\nimport torch, sys; print(torch.__version__, sys.argv[1:])"
    )
    command.chmod(0o755)
    paths = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    modules = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    run = ["-m", "rushlight", "run"]
    expected = "2.8.0+rushlight ['x']\n"
    assert python(*run, "-m", "there", "x", PYTHONPATH=modules) == expected
    assert python(*run, "tool", "x", PATH=paths) == expected
    code = "import torch, sys; print(torch.__version__, sys.argv[1:])"
    assert python(*run, "-c", code, "x") == expected
    python(*run, "-c", "import sys; sys.exit(3)", status=3)
    python(*run, tmp_path / "nothing.py", status=2)
    python(*run, status=2)
    assert "run script.py" in python("-m", "rushlight", "help")


SHOWN = """
from __future__ import annotations
import pickle, sys
class Here: ...
def f(x: undefined): return 1 / 0
print(__file__, sys.argv, sys.path[0], __name__, __package__, __builtins__, __cached__)
print(type(__loader__).__name__, pickle.loads(pickle.dumps(Here())).__class__ is Here)
if "hook" in sys.argv:
    sys.excepthook = lambda *error: print("hook", len(error), error[2].tb_frame.f_code.co_name)
if "exit" in sys.argv:
    sys.exit("ended")
if "interrupt" in sys.argv:
    raise KeyboardInterrupt
if len(sys.argv) > 1:
    f(1)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["sub/program.py"],
        ["./sub/../sub/link.py", "x"],
        ["sub/program.py", "hook"],
        ["sub/program.py", "exit"],
        ["sub/program.py", "interrupt"],
        ["sub/wrong.py"],
        ["sub/none.py"],
        ["sub"],
        ["sub", "x"],
        ["archive.zip", "x"],
        ["-m", "module"],
        ["-m", "module", "x"],
        ["-m", "none"],
        ["-c", "import sys; print(sys.argv, sys.path[0], __name__); 1 / 0", "x"],
        ["-c", "def f(x: int): ...\nprint(f.__annotations__)"],
    ],
    ids=" ".join,
)
def test_programs_see_what_python_shows_them(tmp_path, arguments):
    """The same names, paths, tracebacks and exit codes, with no line of the runner."""
    sub = tmp_path / "sub"
    sub.mkdir()
    for name in ("program.py", "__main__.py", "../module.py"):
        (sub / name).write_text(SHOWN)
    (sub / "link.py").symlink_to(sub / "program.py")
    (sub / "wrong.py").write_text("import sys; def")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", SHOWN.replace(", __cached__", ""))
    outcomes = []
    for run in ([], ["-m", "rushlight", "run"]):
        ended = subprocess.run(
            [sys.executable, "-B", *run, *arguments], cwd=tmp_path, capture_output=True, text=True
        )
        lines = [line for line in ended.stderr.splitlines() if "runpy" not in line]
        outcomes.append((ended.returncode, ended.stdout, lines))
    assert outcomes[0] == outcomes[1]


def test_help_and_version():
    assert "run script.py" in python("-m", "rushlight", "run", "--help")
    said = f"rushlight {_C._version}\n"
    assert python("-m", "rushlight", "--version") == python("-m", "rushlight", "run", "-V") == said


def test_children_keep_a_sitecustomize_of_their_own(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    paths = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    code = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import torch; print(torch.__version__)'])"
    )
    lines = python("-m", "rushlight", "run", "-c", code, PYTHONPATH=paths).split()
    assert lines == ["mine", "mine", "2.8.0+rushlight"]


def test_pytest_runs_tests_under_the_alias(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import torch, os\n"
        "def test_torch():\n"
        "    import rushlight\n"
        "    assert torch is rushlight and os.environ['RUSHLIGHT_AS_TORCH'] == '1'\n"
    )
    options = ["-q", "-p", "rushlight.as_torch", "-W", "error", "--rootdir", tmp_path]
    assert "1 passed" in python("-m", "pytest", *options, tmp_path)


USES = """
import torch
import torch.nn as nn
from torch.nn import functional as F, nothing_here
from torch.utils.data import DataLoader
try:
    from torch import guarded
except ImportError:
    guarded = None
if hasattr(torch, "asked"):
    torch.asked.more()

class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        x = F.relu(x).torch.anything
        nn.NoSuchLayer(3)
        return torch.no_such_function(torch.version.cuda.whatever, torch.float32.itemsize)
"""


def test_missing_names_are_listed_without_running(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("raise SystemExit('it ran')\n" + USES)
    found = {use.name: use for use in check.missing_in([script])}
    needed = {"torch.nn.nothing_here", "torch.nn.NoSuchLayer", "torch.no_such_function"}
    assert found.keys() == needed | {"torch.guarded", "torch.asked"}
    assert {name for name, use in found.items() if not use.optional} == needed
    output = python("-m", "rushlight", "check", script, status=1)
    assert f"torch.no_such_function: 1 place(s), {script}:18" in output
    assert "torch.guarded: 1 place(s)" in output and "where it is there" in output
    (tmp_path / "fine.py").write_text("import torch\ntorch.ones(2)\nimport os.path")
    assert "has every name" in python("-m", "rushlight", "check", tmp_path / "fine.py")
    (tmp_path / "broken.py").write_text("def (")
    python("-m", "rushlight", "check", tmp_path, status=1)


def test_what_is_not_read_is_said(tmp_path, capsys, monkeypatch):
    """A file that nobody could look at has not "every name"."""
    (tmp_path / "fine.py").write_text("import torch")
    (tmp_path / "loop.py").symlink_to("other.py")
    (tmp_path / "other.py").symlink_to("loop.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "deep.py").write_text("-" * 100_000 + "1")
    assert check.check(str(tmp_path)) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.count(": not read: ") == 3
    assert check.check(str(tmp_path / "loop.py")) == 1
    said = capsys.readouterr()
    assert said.out == "" and f"{tmp_path / 'loop.py'}: not read: " in said.err

    def unreadable(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", unreadable)  # as `os.walk` asks; root may read all
    assert check.check(str(tmp_path)) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err == f"{tmp_path}: not read: Permission denied\n"
    monkeypatch.undo()
    assert check.check("textwrap.no_such_module") == 2
    python("-m", "rushlight", "check", "", status=2)


def test_names_that_refuse_count_as_missing(tmp_path):
    """A class that refuses only where it is called: programs ask `isinstance` with it."""
    script = tmp_path / "program.py"
    script.write_text(
        "import torch\nfrom torch.distributed.rpc import RRef, init_rpc as start\n"
        "isinstance(3, RRef)\nstart('me')\n"
    )
    output = python("-m", "rushlight", "check", script, status=1)
    assert f"torch.distributed.rpc.init_rpc: 2 place(s), {script}:2; refused: docs/" in output
    assert "RRef" not in output
    script.write_text("from torch.distributed.rpc import RRef\nRRef(3)\n")
    assert f"rpc.RRef: 1 place(s), {script}:2; refused" in python(
        "-m", "rushlight", "check", script, status=1
    )


def test_what_is_checked_is_found(tmp_path):
    assert [path.name for path in check.files_of("pytest")]
    assert [path.name for path in check.files_of("textwrap")] == ["textwrap.py"]
    with pytest.raises(FileNotFoundError, match="no script, folder or package"):
        check.files_of("no_such_package_at_all")
    assert check.check("no_such_package_at_all") == 2
    assert check.missing_part("torch.nn.functional.relu") is None
    assert check.missing_part("torch.classes.some_library.Thing") is None
    assert check.missing_part("torch.ops.some_library.op.default") is None
    assert check.missing_part("torch.ops.aten.no_such_op") == (
        "torch.ops.aten.no_such_op",
        None,
    )
    assert "check TARGET" in python("-m", "rushlight", "check", "--help")
    assert check.missing_part("torch.nn.Linear.gone") == ("torch.nn.Linear.gone", None)


@pytest.mark.parametrize("name", ["import rushlight as torch", "import rushlight.as_torch, torch"])
def test_programs_that_ask_for_a_version(name):
    """By strings, tuples and numbers, in both names; the package's own stands beside it."""
    program = """
    import importlib.metadata, re
    v = torch.__version__
    assert type(v).__name__ == "TorchVersion" and isinstance(v, str)
    assert v >= "2.0" and v > "1.13.1" and "2.0" <= v and not v < "2.0.0" and v != "2.0"
    assert v >= (2, 0) and v >= (2,) and (2, 0) <= v and v >= [2, 0] and not v < (2, 0)
    assert str(v) >= "2.0" and str(torch.version.__version__) == str(v)
    assert tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 0)
    assert [int(n) for n in v.split("+")[0].split(".")] >= [2, 0, 0] and float(v[:3]) >= 2.0
    assert int(v[0]) >= 2 and re.match(r"(\\d+)\\.(\\d+)", v) and v.startswith("2.")
    from packaging import version
    assert version.parse(v) >= version.parse("2.0") and version.Version(v) > version.Version("2.0")
    assert v >= version.parse("2.0") and version.parse(v).release[:1] == (2,)
    assert version.parse(version.parse(v).base_version) >= version.parse("2.0.0")
    from rushlight import _C
    assert torch.version.rushlight == _C._version
    """
    python("-c", name + textwrap.dedent(program))


def test_modules_that_are_none_here():
    program = (
        "import rushlight.as_torch, importlib.util, torchvision\n"
        "import torchvision.ops.focal_loss as losses\n"
        "from torchvision.ops.roi_align import RoIAlign, roi_align\n"
        "from torchvision.datasets.samplers.clip_sampler import UniformClipSampler\n"
        "from torchvision.version import __version__\n"
        "assert losses.sigmoid_focal_loss is torchvision.ops.sigmoid_focal_loss\n"
        "assert roi_align is torchvision.ops.roi_align and callable(roi_align)\n"
        "assert importlib.util.find_spec('torchvision.datasets.voc')\n"
        "try:\n    import torchvision.ops.nothing\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "rushlight has no torchvision.ops.nothing yet\n", done.stderr


def test_modules_run_as_programs(tmp_path):
    """`python -m torch.distributed.run` starts a program, with the alias in its processes."""
    program = tmp_path / "program.py"
    program.write_text("import os, torch; print(torch.__name__, os.environ['RANK'])\n")
    launch = ["torch.distributed.run", "--standalone", "--nproc-per-node", "1", program]
    assert python("-m", "rushlight", "run", "-m", *launch) == "torch 0\n"
    under_alias("""
        import importlib.util
        assert importlib.util.find_spec("torch.distributed.run").submodule_search_locations is None
        assert importlib.util.find_spec("torch.distributed").submodule_search_locations is not None
    """)


def test_files_are_the_same_under_both_names(tmp_path):
    """Each kind of object that files know has PyTorch's name in a pickle, alias or not."""
    code = """
        import rushlight as torch
        torch.save({
            "layout": torch.strided,
            "dtype": torch.bfloat16,
            "device": torch.device("cpu"),
            "size": torch.Size([2]),
            "tensor": torch.ones(2),
            "parameter": torch.nn.Parameter(torch.ones(2)),
            "sparse": torch.ones(2, 2).to_sparse(),
            "storage": torch.zeros(2).untyped_storage(),
            "typed": torch.zeros(2).storage(),
            "state": torch.nn.Linear(1, 1, bias=False).state_dict(),
        }, path)
    """
    paths = [tmp_path / "alias.pt", tmp_path / "plain.pt"]
    seed = "import rushlight as torch; torch.manual_seed(0)\n"
    under_alias(f"path = {str(paths[0])!r}\n{seed}" + textwrap.dedent(code))
    python("-c", f"path = {str(paths[1])!r}\n{seed}" + textwrap.dedent(code))
    data = [zipfile.ZipFile(path).read(f"{path.stem}/data.pkl") for path in paths]
    assert data[0] == data[1]
    assert rushlight.load(paths[0])["layout"] is rushlight.strided
