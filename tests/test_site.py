"""The site in a browser: pages load without errors, search finds what people look for, and pages are made for phones, too.

Needs Debian's chromium (`apt-get install chromium`); a browser without a window shows pages to itself. With
RUSHLIGHT_SITE=build/docs/site it looks at what `./dev docs` has built. Of pages that are made, which are alike, the
browser loads one of EACH; RUSHLIGHT_EVERY_PAGE=1 lets it load all.
"""

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from docs import make

CHROMIUM = shutil.which("chromium")
EACH = 8
MADE = ("reference/", "ops/", "cpp/")
PAGES = [
    "docs/index.html",
    "docs/start.html",
    "docs/tutorial/5-training.html",
    "docs/errors.html",
    "reference/nn.CrossEntropyLoss.html",
    "reference/vision.models.resnet18.html",
    "reference/module-nn.html",
    "ops/reduce.html",
    "cpp/nn-module.html",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the site."""
    built = os.environ.get("RUSHLIGHT_SITE")
    if built is not None:
        return Path(built)
    pytest.importorskip("sphinx")
    pytest.importorskip("matplotlib")
    made = tmp_path_factory.mktemp("site")
    assert make.main(made) == 0
    return made / "site"


@pytest.fixture(scope="module")
def site(folder):
    """The address of the site, which a server of this process shows."""
    quiet = functools.partial(QuietHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


# Loads page after page in eight frames; its text in the end is what it has found.
EVERY_PAGE = """<body><script>
const pages = PAGES, found = {loaded: 0, bad: []};
async function look() {
  while (pages.length) {
    const page = pages.pop(), frame = document.createElement("iframe");
    const loaded = new Promise(done => { frame.onload = done; });
    frame.src = page;
    document.body.append(frame);
    await loaded;
    const inside = frame.contentDocument;
    if (!inside || !inside.querySelector("h1")) found.bad.push(page);
    else for (const image of inside.images)
      if (image.complete && !image.naturalWidth) found.bad.push(page + ": " + image.src);
    found.loaded++;
    frame.remove();
  }
}
Promise.all([...Array(8)].map(look)).then(() => {
  document.body.textContent = "found" + JSON.stringify(found) + "end";
});
</script></body>"""


def pages_of(folder):
    """The pages of the site, but for those that load others."""
    pages = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.html"))
    return [p for p in pages if p not in ("search.html", "index.html") and p[:8] != "_static/"]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path == "/every-page":
            self.send_every_page()
        else:
            super().do_GET()

    def send_every_page(self):
        pages = pages_of(Path(self.directory))
        if "RUSHLIGHT_EVERY_PAGE" not in os.environ:
            made = [p for p in pages if p.startswith(MADE)]
            alike = set(made) - set(made[::EACH]) - set(PAGES)
            pages = [p for p in pages if p not in alike]
        text = EVERY_PAGE.replace("PAGES", json.dumps(pages)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text)


def browse(address, profile, *options, seconds=20):
    """(The page as the browser has it in the end, what its console says)."""
    run = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
            *(f"--virtual-time-budget={1000 * seconds}", f"--user-data-dir={profile}", *options),
            *("--dump-dom", address),
        ],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout, re.findall(r"CONSOLE.*", run.stderr)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("CrossEntropyLoss", "nn.CrossEntropyLoss.html"),
        ("cross entropy", "nn.CrossEntropyLoss.html"),
        ("resnet18", "vision.models.resnet18.html"),
        ("OneCycleLR", "OneCycleLR.html"),
    ],
)
def test_search_finds(query, wanted, site, tmp_path):
    text, _ = browse(f"{site}/search.html?q={query.replace(' ', '+')}", tmp_path)
    results = re.findall(r'<li[^>]*><a href="([^"]+)"', text)
    assert any(wanted in link for link in results[:20]), (query, results[:20])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_pages_load(site, folder, tmp_path):
    """In a browser: a heading, pictures that are there, and no error in the console."""
    text, said = browse(f"{site}/every-page", tmp_path, seconds=3600)
    found = json.loads(re.search("found({.*})end", text)[1])
    assert found["bad"] == []
    assert found["loaded"] > 400
    assert not [line for line in said if "ERROR" in line or "Uncaught" in line], said[:9]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_page_has_a_heading_and_fits_a_phone(folder):
    """A page is laid out for the width of the device, and the bars on both sides fold."""
    pages = pages_of(folder)
    assert len(pages) > 3400
    for page in pages:
        text = (folder / page).read_text()
        assert "<h1>" in text, page
        assert re.search(r'name="viewport"[^>]*width=device-width', text), page
        assert 'for="__navigation"' in text, page
