"""The documentation is true: programs run, links and names exist, every op has its section."""

import ast
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from docs import chart, docstrings, execute, make, mistakes, notebooks, pages, pictures, reference
from docs import map as code_map
from gen import declarations, table
from rushlight.utils import cpp_extension
from tests import api
from tests.compat import page as packages

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FRAGMENTS = ROOT / "docs" / "adding-an-op.md"  # its blocks are pieces of the op table
WIDTH = 110


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(path, language):
    """The code blocks of a page in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def without_blocks(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


# Pages whose blocks are not one program: mistakes end with an error each.
APART = (FRAGMENTS, mistakes.PAGE)
PROGRAMS = [page for page in PAGES if blocks(page, "python") and page not in APART]


@pytest.mark.parametrize("page", PROGRAMS, ids=name_of)
def test_python_on_the_page_runs(page, tmp_path):
    """All blocks of a page are one program, which has a process of its own."""
    program = "\n".join(blocks(page, "python"))
    if 'init_process_group("gloo")' in program and not rushlight.distributed.is_gloo_available():
        pytest.skip("built without Gloo")
    if "torch.onnx" in program:
        pytest.importorskip("onnxruntime")
    if "matplotlib" in program:
        pytest.importorskip("matplotlib")
    (tmp_path / "page.py").write_text(program)
    package = str(Path(rushlight.__file__).parent.parent)
    store = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    run = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env={**os.environ, **store, "PYTHONPATH": package},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(("title", "program", "said"), mistakes.mistakes(), ids=lambda x: None)
def test_mistakes_end_with_the_message_on_the_page(title, program, said):
    """`python docs/mistakes.py` writes the messages anew."""
    message = mistakes.message_of(program)
    assert mistakes.shows(said, message), message


def test_there_are_enough_mistakes():
    assert len(mistakes.mistakes()) >= 100


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
def test_the_guide_in_cpp_builds_and_learns(tmp_path):
    page = ROOT / "docs" / "guide.md"
    (program,), (project,) = blocks(page, "cpp"), blocks(page, "cmake")
    (reader,) = blocks(page, "py")
    commands = "\n".join(blocks(page, "sh")[-2:])
    (tmp_path / "read.py").write_text(reader)
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
    assert run.stdout.splitlines()[-1] == "[0, 1]"


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
def test_the_program_for_libtorch_builds_and_learns(tmp_path):
    page = ROOT / "docs" / "from-libtorch.md"
    program, extension = blocks(page, "cpp")
    (commands,) = blocks(page, "sh")
    (tmp_path / "net.cpp").write_text(program)
    package = str(Path(rushlight.__file__).parent.parent)
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run = subprocess.run(
        ["sh", "-ec", f"{commands}\n./net"],
        cwd=tmp_path,
        env={**os.environ, "PATH": tools, "PYTHONPATH": package},
        check=True,
        capture_output=True,
        text=True,
    )
    losses = [float(line.split()[1]) for line in run.stdout.splitlines()]
    assert len(losses) == 3 and losses[0] > losses[1] > losses[2]
    assert "conv.weight" in rushlight.load(tmp_path / "net.pt")
    (tmp_path / "demo.cpp").write_text(extension)
    source = str(tmp_path / "demo.cpp")
    cpp_extension.load("demo", source, build_directory=str(tmp_path), is_python_module=False)
    assert rushlight.ops.demo.doubled(rushlight.ones(2)).tolist() == [2, 2]


# ---- the form of pages ----


def anchors(page):
    """The names under which links reach the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", without_blocks(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^) :]+)\)", without_blocks(page.read_text())):
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_begins_with_what_it_is_for(page):
    """A heading, and a paragraph of one sentence."""
    heading, first, *_ = page.read_text().split("\n\n")
    assert re.fullmatch(r"# [^\n]+", heading)
    assert re.fullmatch(r"[A-Za-z`][^|#]*[.]", first), first
    assert not re.search(r"[.!?]\s", first), first


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_of_pages_end_in_time(page):
    """Rows of tables, lines with an address and what programs print cannot be broken."""
    text = re.sub(r"(?ms)^```text\n.*?^```$", lambda m: "\n" * m[0].count("\n"), page.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        assert line == line.rstrip(), f"{page.name}:{number} ends with a space"
        long = len(line) > WIDTH and not line.startswith("|") and "](" not in line
        assert not long, f"{page.name}:{number} has {len(line)} columns"


def test_the_page_of_packages_begins_as_it_is_written():
    assert (ROOT / "docs" / "compatibility.md").read_text().startswith(packages.HEAD)


@pytest.mark.parametrize("page", code_map.PAGES)
def test_maps_of_the_code_are_complete(page):
    assert (ROOT / page).read_text() == code_map.PAGES[page](), "python docs/map.py writes it anew"


def test_the_glossary_has_few_terms():
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.split("\n## Glossary\n")[1].split("\n## ")[0]
    terms = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)[1:]
    assert 10 <= len(terms) <= 20
    assert len(set(terms)) == len(terms)


# ---- what pages name ----


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_the_page_exist(page):
    text = page.read_text()
    known = re.findall(r"^  (\w+)", subprocess.getoutput(f"{ROOT}/dev help"), re.MULTILINE)
    for command in re.findall(r"\./dev (\w+)", text):
        assert command in known, command
    for module in re.findall(r"python3? -m ((?:rushlight|gen|tests|bench)(?:\.\w+)*)", text):
        assert importlib.util.find_spec(module) is not None, module


CODE = ["src", "include", "python", "gen", "ops", "bench", "tests", "cmake", "docs"]


@pytest.fixture(scope="module")
def words():
    """All words of the sources, and the names of files and folders."""
    found = set()
    for folder in CODE:
        for path in (ROOT / folder).rglob("*"):
            found.update(re.findall(r"\w+", path.name))
            if path.suffix in {".py", ".h", ".cpp", ".cu", ".cuh", ".inc", ".in", ".cmake", ".pyi"}:
                found.update(re.findall(r"\w+", path.read_text()))
    for name in ("dev", "CMakeLists.txt", "CMakePresets.json", "pyproject.toml"):
        found.update(re.findall(r"\w+", (ROOT / name).read_text()))
    return found


HOUSE = [
    "adding-an-op",
    "architecture",
    "cuda",
    "forward-mode",
    "mixed-precision",
    "python",
    "sparse",
]
# What the pages about the code name of others.
OTHERS = ["LD_LIBRARY_PATH", "NameBackward0", "name_overload"]


@pytest.mark.parametrize("page", HOUSE)
def test_names_in_code_are_names_of_the_sources(page, words):
    """`NAME_*` stands for all names that begin so."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    for span in re.findall(r"`([^`\n]+)`", without_blocks(text)):
        for name, star in re.findall(r"([A-Za-z_]\w{3,})(\*?)", span):
            begins = star and any(word.startswith(name) for word in words)
            assert begins or name in words or name in OTHERS, f"{name} of `{span}`"


@pytest.mark.parametrize(
    ("page", "folder", "suffix"), [("architecture", "gen", ".py"), ("python", "src/python", ".cpp")]
)
def test_tables_of_files_are_complete(page, folder, suffix):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    section = text.split(f"| file of `{folder}")[1].split("\n\n")[0]
    cells = " ".join(re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE))
    files = {p.stem for p in (ROOT / folder).glob(f"*{suffix}") if not p.stem.startswith("__")}
    assert set(re.findall(r"`(\w+)`", cells)) == files


def table_calls():
    """Every call in the op table: of ops, views and composites."""
    for path in (ROOT / "ops").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield node


def test_entries_on_the_page_stand_in_the_table():
    """A block is an entry, or keys of one."""
    entries = {ast.dump(call) for call in table_calls()}
    keys = {ast.dump(k) for call in table_calls() for k in call.keywords}
    for block in blocks(FRAGMENTS, "python"):
        if block.startswith("op("):
            assert ast.dump(ast.parse(block.strip(), mode="eval").body) in entries, block
        else:
            call = ast.parse(f"op({block})", mode="eval").body
            assert call.keywords and all(ast.dump(k) in keys for k in call.keywords), block


def test_the_keys_of_the_table_are_explained():
    text = FRAGMENTS.read_text()
    declare = {
        "op",
        "view",
        "composite",
        "pointwise",
        "formula",
        "reduction",
        "rows",
        "custom",
        "update",
        "dynamic",
    }
    for call in table_calls():
        if ast.unparse(call.func) in declare:
            for keyword in call.keywords:
                assert keyword.arg is None or f"{keyword.arg}=" in text, keyword.arg


def test_cpp_functions_on_the_page_stand_in_the_sources():
    sources = [p for p in (ROOT / "src").rglob("*") if p.suffix in (".cpp", ".cu", ".h")]
    everything = " ".join(" ".join(path.read_text().split()) for path in sources)
    for page in (FRAGMENTS, ROOT / "docs" / "cuda.md"):
        for block in blocks(page, "cpp"):
            for head in re.findall(r"^\w[^/\n]*\)(?=;| \{)", block, re.MULTILINE):
                assert head in everything, head


# ---- ops ----


def test_every_public_op_has_a_section():
    ops = table.load()
    texts = pages.generate(ops, {})
    found = {
        name for text in texts.values() for name in re.findall(r"^## (\w+)$", text, re.MULTILINE)
    }
    assert found == set(pages.by_name(ops))
    for family, anchor in re.findall(r"\]\((\w+)\.md#(\w+)\)", texts["README.md"]):
        assert f"\n## {anchor}\n" in texts[f"{family}.md"]


def test_the_pages_of_ops_are_written_whole(tmp_path):
    """`./dev docs`: every sample of every op runs, every error that is said comes."""
    assert make.op_pages(tmp_path) == len(list(tmp_path.iterdir()))
    reduce = (tmp_path / "reduce.md").read_text()
    assert "- **Dtypes:**" in reduce and "- **Shapes:**" in reduce and "Error:**" in reduce
    assert ">>> torch.sum(" in reduce


def test_sections_and_docstrings_say_the_same():
    text = rushlight.cumsum.__doc__
    assert text.startswith("cumsum(input: Tensor, dim: int, *")
    assert "Gradient: by self." in text and "Args:\n    input: " in text and ">>> " in text
    page = pages.generate(table.load(), {"cumsum": pages.Facts(["float32"], [("x(3), 0", "(3,)")])})
    assert text.splitlines()[0] in page["scan.md"]
    assert "- **Shapes:** `cumsum(x(3), 0)` gives `(3,)`" in page["scan.md"]


def test_cpp_on_the_pages_is_what_the_headers_declare():
    ops = table.load()
    made = declarations.generate(ops)
    functions = made["include/rushlight/ops.h"]
    methods = made["include/rushlight/tensor_methods.inc"]
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


# ---- the site ----


def test_every_public_name_has_a_page():
    texts = reference.generate()
    assert "### " not in texts["nn.CrossEntropyLoss.md"]
    page = texts["nn.CrossEntropyLoss.md"]
    assert "{py:class} rushlight.nn.CrossEntropyLoss(weight=None" in page
    assert "**label\\_smoothing** (`float`, `0.0` by default)" in page and ">>> " in page
    links = {m for text in texts.values() for m in re.findall(r"\]\(([^)]+\.md)\)", text)}
    assert links <= set(texts), sorted(links - set(texts))[:9]
    assert len(texts) > 3400
    assert (
        "ao.quantization.QConfig.md" in texts
        and "(`QConfig`)" in texts["module-ao.quantization.md"]
    )
    assert "index(value" not in texts["ao.quantization.QConfig.md"]  # of tuples


def test_the_public_api_has_pages():
    """Each function and class of tests/api.txt under one of its names, but for what says why not."""
    names, lacking = reference.Names(), set()
    for name, value, module in api.names():
        is_listed = not module.startswith(tuple(docstrings.WITHOUT_PAGE))
        if is_listed and docstrings.is_documented(value) and not names.page_of(value):
            lacking.add(name)
    assert lacking == set()
    assert all(len(why.split()) > 3 for why in docstrings.WITHOUT_PAGE.values())


def test_programs_of_the_tutorial_show_what_they_print(tmp_path):
    text = execute.page("```python\nx = 1\nx + 1\nprint(x)\n```\n", tmp_path, "page")
    assert "```text\n1\n```" in text
    text = execute.page("```python\n'a' * 2\n```\n", tmp_path, "page")
    assert "'aa'" in text


def test_the_program_of_the_first_page_prints_what_it_says():
    page = ROOT / "README.md"
    (program,), (printed,) = blocks(page, "python"), blocks(page, "text")
    assert execute.run(program, {}) + "\n" == printed


def test_the_picture_of_performance_is_that_of_the_table():
    assert (ROOT / "docs" / "performance.svg").read_text() == chart.generate()


def test_pages_of_the_site_are_in_its_table():
    """Each page that people write is in the table of contents, or a page there links to it."""
    listed = {
        (ROOT / "docs" / f"{name}.md").resolve() for names in make.TOC.values() for name in names
    }
    links = set(listed)
    for page in [*listed, ROOT / "docs" / "index.md"]:
        if page.exists():
            for target in re.findall(r"\]\(([^) :#]+\.md)", page.read_text()):
                links.add((page.parent / target).resolve())
    assert set((ROOT / "docs").rglob("*.md")) - links == {ROOT / "docs" / "index.md"}


# What has no picture of its own: bases, what is made of others, and what gives more than one number.
WITHOUT_PICTURE = {
    *("LRScheduler", "ChainedScheduler", "SequentialLR"),
    *("Distribution", "ExponentialFamily", "Independent", "MixtureSameFamily"),
    *("TransformedDistribution", "Dirichlet", "LKJCholesky", "LogisticNormal", "Wishart"),
    *("MultivariateNormal", "LowRankMultivariateNormal", "Multinomial", "OneHotCategorical"),
    *("OneHotCategoricalStraightThrough", "RelaxedOneHotCategorical"),
    *("Compose", "Lambda", "RandomApply", "RandomChoice", "RandomOrder", "RandomTransforms"),
    *("ConvertImageDtype", "LinearTransformation", "Normalize"),  # numbers that are no colours
    *("PILToTensor", "ToPILImage", "ToTensor"),
}


def test_what_can_be_shown_has_a_picture(tmp_path):
    """Rates of schedules, densities of distributions, pictures before and after transforms."""
    pytest.importorskip("matplotlib")
    found = pictures.write(tmp_path)
    names = docstrings.public_names()
    assert set(found) <= set(names)
    assert all((tmp_path / file).stat().st_size > 1000 for file, _ in found.values())
    bases = (rushlight.optim.lr_scheduler.LRScheduler, rushlight.distributions.Distribution)
    shown = {
        name
        for name, thing in names.items()
        if isinstance(thing, type)
        and (issubclass(thing, bases) or name.startswith("vision.transforms."))
        and not name.startswith("vision.transforms.v2.")  # these link those of the first version
        and not hasattr(thing, "__members__")
    }
    lacking = {name.rpartition(".")[2] for name in shown - set(found)}
    assert lacking == WITHOUT_PICTURE
    page = reference.generate(found)["optim.lr_scheduler.StepLR.md"]
    assert "](optim.lr_scheduler.StepLR.svg)" in page


def test_a_chapter_becomes_a_notebook(tmp_path):
    """Text, code with what it prints, and the picture that it draws."""
    pytest.importorskip("matplotlib")
    page = "# A page\n\n```python\nprint(1)\n```\n\nThen:\n\n```python\n2\n```\n"
    with execute.inside(tmp_path):
        made = notebooks.notebook(page)
    kinds = [cell["cell_type"] for cell in made["cells"]]
    assert kinds == ["markdown", "code", "markdown", "code"]
    assert made["cells"][1]["outputs"][0]["text"] == ["1\n"]
    files = notebooks.write(tmp_path)
    assert len(files) == 6
    assert "image/svg+xml" in files[4].read_text()


@pytest.mark.skipif(shutil.which("awk") is None, reason="needs awk")
def test_what_a_reader_types_leads_to_an_answer(tmp_path):
    """The last chapter as commands: it trains, saves, and a server of its own answers."""
    typed = subprocess.run(
        ["sh", ROOT / "docs/typed.sh", ROOT / "docs/tutorial/6-saving.md"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "typed").write_text(typed.replace("8000", str(port)))
    package = str(Path(rushlight.__file__).parent.parent)
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run = subprocess.run(
        ["sh", "-e", "typed"],
        cwd=tmp_path,
        env={**os.environ, "PATH": tools, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "b'[0, 1]'" in run.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_site_builds_without_dead_links(tmp_path):
    built = os.environ.get("RUSHLIGHT_SITE")  # what `./dev docs` has built
    site = Path(built) if built else tmp_path / "site"
    if not built:
        pytest.importorskip("sphinx")
        pytest.importorskip("matplotlib")
        assert make.main(tmp_path) == 0
    assert "CrossEntropyLoss" in (site / "searchindex.js").read_text()
    dead = make.dead_links(site)
    assert not dead, dead[:20]
