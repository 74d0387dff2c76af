"""The documentation is true: its programs run, its links lead somewhere, every op has its section."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from docs import make, pages
from gen import declarations, table

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = ["README.md", "docs/guide.md", "docs/coming-from-pytorch.md", "docs/mixed-precision.md"]


def blocks(path, language):
    """The code blocks of a page in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", RUN)
def test_python_on_the_page_runs(page, tmp_path):
    """All blocks of a page are one program, which has a process of its own."""
    program = blocks(ROOT / page, "python")
    assert program
    (tmp_path / "page.py").write_text("\n".join(program))
    package = str(Path(rushlight.__file__).parent.parent)
    run = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": package},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
def test_the_guide_in_cpp_builds_and_learns(tmp_path):
    page = ROOT / "docs" / "guide.md"
    (program,), (project,) = blocks(page, "cpp"), blocks(page, "cmake")
    commands = blocks(page, "sh")[-1]
    (tmp_path / "spirals.cpp").write_text(program)
    (tmp_path / "CMakeLists.txt").write_text(project)
    package = str(Path(rushlight.__file__).parent.parent)
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run = subprocess.run(
        ["sh", "-ec", commands],
        cwd=tmp_path,
        env={**os.environ, "PATH": tools, "PYTHONPATH": package},
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(re.findall(r"(\d+) of 1000", run.stdout)[-1]) > 950
    state = rushlight.load(tmp_path / "spirals.pt")
    assert list(state) == ["0.weight", "0.bias", "2.weight", "2.bias"]


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
def test_the_program_for_libtorch_builds_and_learns(tmp_path):
    page = ROOT / "docs" / "from-libtorch.md"
    (program,) = blocks(page, "cpp")
    (command,) = re.findall(r"`(g\+\+ .*?)`", page.read_text())
    (tmp_path / "net.cpp").write_text(program)
    package = Path(rushlight.__file__).parent
    run = subprocess.run(
        ["sh", "-ec", f"P={package}; {command} -o net; ./net"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    losses = [float(line.split()[1]) for line in run.stdout.splitlines()]
    assert len(losses) == 3 and losses[0] > losses[1] > losses[2]
    assert "conv.weight" in rushlight.load(tmp_path / "net.pt")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_public_op_has_a_section():
    ops = table.load()
    texts = pages.generate(ops, {})
    found = {
        name for text in texts.values() for name in re.findall(r"^## (\w+)$", text, re.MULTILINE)
    }
    assert found == set(pages.by_name(ops))
    for family, anchor in re.findall(r"\]\((\w+)\.md#(\w+)\)", texts["README.md"]):
        assert f"\n## {anchor}\n" in texts[f"{family}.md"]


def test_the_documentation_is_written_whole(tmp_path, capsys):
    """`./dev docs`: every sample of every op runs, every error that is said comes."""
    make.main(tmp_path)
    assert f"{len(list(tmp_path.iterdir()))} pages" in capsys.readouterr().out
    reduce = (tmp_path / "reduce.md").read_text()
    assert "- **Dtypes:**" in reduce and "- **Example:**" in reduce and "Error:**" in reduce


def test_sections_and_docstrings_say_the_same():
    text = rushlight.cumsum.__doc__
    assert text.startswith("cumsum(input: Tensor, dim: int, *")
    assert "Gradient: by self." in text
    page = pages.generate(table.load(), {"cumsum": pages.Facts(["float32"], [("x(3), 0", "(3,)")])})
    assert text.splitlines()[0] in page["scan.md"]
    assert "- **Example:** `cumsum(x(3), 0)` → `(3,)`" in page["scan.md"]


def test_cpp_on_the_pages_is_what_the_headers_declare():
    ops = table.load()
    functions, methods = declarations.ops_header(ops), declarations.methods_header(ops)
    for overloads in pages.by_name(ops).values():
        lines = declarations.calls(overloads)
        assert lines
        for line in lines:
            head = line.removesuffix(";")
            if " Tensor::" in head:
                assert head.replace(" Tensor::", " ") in methods, line
            else:
                assert re.sub(r" (linalg|fft|special)::", " ", head) in functions, line


def test_modules_are_shown_in_both_languages():
    page = pages.generate([], {})["modules.md"]
    assert "nn.LeakyReLU(negative_slope: float = 0.01, inplace: bool = False)" in page
    assert (
        "Tensor nn::functional::leaky_relu(const Tensor& input, const LeakyReLUFuncOptions&);"
        in page
    )
    for module in re.findall(r"^## nn::(\w+)$", page, re.MULTILINE):
        assert hasattr(rushlight.nn, module)


def test_every_docstring_of_an_op_is_there():
    for name in pages.by_name(table.load()):
        function = getattr(rushlight._C.ops, name, None) or getattr(rushlight._C._nn, name, None)
        if function is not None:
            assert function.__doc__, name
