"""Writes the site of the documentation: `python docs/make.py OUT` (`./dev docs` builds first).

Its pages are those that people write, whose tutorial runs here (docs/execute.py); the reference,
from docstrings (docs/reference.py); pages of C++ headers, from their comments (docs/headers.py);
and the pages of ops, from the op table (docs/pages.py). What the table does not say is measured
with the samples of tests/ops: which dtypes an op takes, what shapes come out, what its errors say.
Sphinx makes HTML of them.
"""

import re
import shutil
import sys
import tempfile
import urllib.parse
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import rushlight
from docs import chart, execute, headers, notebooks, pages, pictures, reference
from gen import table
from tests.ops import harness

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = 3
LONGEST_MESSAGE = 200


def is_public(name):
    places = (rushlight, rushlight.Tensor, rushlight.nn.functional)
    return any(hasattr(place, name) for place in places)


def shape_text(results):
    """The shapes of results: (2, 3), or several."""
    shapes = [str(tuple(t.shape)) for t in harness.tensors_of(results)]
    return ", ".join(shapes) if shapes else repr(results)


def call(case, dtype, text):
    args, kwargs = harness.Makers(rushlight, dtype, case.key).arguments(text)
    return harness.function_of(rushlight, case.op)(*args, **kwargs)


def message_of(case, text, kind):
    """What an error says, on one line."""
    try:
        call(case, case.dtypes[0], text)
    except kind as error:
        message = " ".join(str(error).split())
        return message if len(message) < LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + "…"
    raise AssertionError(f"{case.key}({text}) was to raise {kind.__name__}")


def measure():
    """Facts of every op that has samples."""
    facts: dict[str, pages.Facts] = {}
    for case in harness.cases().values():
        if case.base:  # `foo_` has the samples of `foo`, which its results may not fit
            continue
        found = facts.setdefault(case.op.name, pages.Facts())
        if case.samples and not found.dtypes:
            found.dtypes = [d for d in harness.DTYPES["all"] if harness.accepts(rushlight, case, d)]
        for text in case.samples[:EXAMPLES]:
            found.shapes.append((text, shape_text(call(case, case.dtypes[0], text))))
        for text, kind, _ in case.errors:
            found.errors.append((text, kind.__name__, message_of(case, text, kind)))
    return facts


def op_pages(out):
    """Writes the pages of ops; how many."""
    warnings.simplefilter("ignore")  # of deprecated forms among the samples
    out.mkdir(parents=True, exist_ok=True)
    texts = pages.generate([op for op in table.load() if is_public(op.name)], measure())
    write(out, texts)
    return len(texts)


def write(folder, texts):
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:  # Sphinx reads again what is newer
            path.write_text(text)


# ---- the site ----

TOC = {
    "Learn": [
        "start",
        *(f"tutorial/{page.stem}" for page in sorted((ROOT / "docs" / "tutorial").glob("*.md"))),
        "guide",
    ],
    "Use": [
        "howto/index",
        "inference",
        "errors",
        "coming-from-pytorch",
        "compatibility",
        "accepted",
        "performance",
    ],
    "Reference": ["../reference/index", "../ops/README", "../cpp/index"],
    "The code": [
        "architecture",
        "python",
        "adding-an-op",
        "map",
        "measurements",
        "platforms",
        "releasing",
    ],
}


def hand_written():
    """The pages that people write, by their places in the checkout."""
    found = [
        ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "THIRD_PARTY.md")
    ]
    return [*found, *sorted((ROOT / "docs").rglob("*.md"))]


def with_links(page, text, out):
    """The text, whose links lead to pages of the site or to copies of files."""

    def one(match):
        target = (page.parent / match[2].partition("#")[0]).resolve()
        if target.is_dir():
            return match[1]
        if target.is_file() and target.suffix != ".md" and target.is_relative_to(ROOT):
            copy = out / target.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, copy)
        return match[0]

    return re.sub(r"\[([^\]]*)\]\(([^) :]+)\)", one, text)


def toctree():
    lines = []
    for caption, names in TOC.items():
        lines += [
            "",
            "```{toctree}",
            ":hidden:",
            ":maxdepth: 1",
            f":caption: {caption}",
            "",
            *names,
            "```",
        ]
    return "\n".join([*lines, ""])


def write_pages(out):
    """The pages that people write, with what the programs of the tutorial print."""
    for page in hand_written():
        place = page.relative_to(ROOT)
        text = with_links(page, page.read_text(), out)
        if place.parent.name in ("tutorial", "howto") or place.name == "start.md":
            (out / place.parent).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory() as folder, execute.inside(folder):
                text = execute.page(text, out / place.parent, place.stem)
        if place.parent.name == "tutorial":
            text = notebooks.with_link(text, f"{place.stem}.ipynb")
        write(
            out,
            {
                str(place): text
                + (toctree() if place.name == "index.md" and place.parent.name == "docs" else "")
            },
        )


def write_sources(out):
    """Everything that Sphinx reads."""
    write_pages(out)
    write(out, {"docs/performance.svg": chart.generate()})
    write(out / "reference", reference.generate(pictures.write(out / "reference")))
    write(out / "cpp", headers.generate())
    op_pages(out / "ops")
    write(out, {"conf.py": (ROOT / "docs" / "conf.py").read_text()})
    write(out / "_static", {"site.css": (ROOT / "docs" / "site.css").read_text()})


def html(sources, site):
    """The site, by Sphinx."""
    from sphinx.application import Sphinx

    app = Sphinx(sources, sources, site, site.parent / "doctrees", "html", parallel=2, status=None)
    app.build()
    notebooks.write(site / "docs" / "tutorial")
    (site / "index.html").write_text(
        '<meta http-equiv="refresh" content="0; url=docs/index.html">\n'
    )
    return app.statuscode


def dead_links(site):
    """Links and pictures of the site that lead to no file, or to no place in one: (page, link)."""
    found, known, judged = [], {}, {}

    def names(path):
        if path not in known:
            known[path] = set(re.findall(r'\bid="([^"]+)"', path.read_text()))
        return known[path]

    def is_dead(page, link):
        path, _, anchor = urllib.parse.unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            return True
        return bool(anchor) and target.suffix == ".html" and anchor not in names(target)

    for page in sorted(site.rglob("*.html")):
        for link in re.findall(r'<(?:a [^>]*href|img [^>]*src)="([^":]*)"', page.read_text()):
            place = (page if link[:1] in ("", "#") else page.parent, link)  # the bars repeat links
            if place not in judged:
                judged[place] = is_dead(page, link)
            if judged[place]:
                found.append((str(page.relative_to(site)), link))
    return found


def main(out):
    write_sources(out / "source")
    status = html(out / "source", out / "site")
    print(f"the site is in {out / 'site'}: open index.html")
    return status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
