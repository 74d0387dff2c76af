"""The site in a browser: pages load without errors, search finds what people look for, and pages are made for phones, too.

Needs Debian's chromium (`apt-get install chromium`); a browser without a window shows pages to itself. With
RUSHLIGHT_SITE=build/docs/site it looks at what `./dev docs` has built.
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
def site(tmp_path_factory):
    """The address of the site, which a server of this process shows."""
    folder = os.environ.get("RUSHLIGHT_SITE")
    if folder is None:
        pytest.importorskip("sphinx")
        pytest.importorskip("matplotlib")
        made = tmp_path_factory.mktemp("site")
        assert make.main(made) == 0
        folder = made / "site"
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


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path == "/every-page":
            self.send_every_page()
        else:
            super().do_GET()

    def send_every_page(self):
        root = Path(self.directory)
        skipped = ("search.html", "genindex.html", "index.html")  # they load others, or are lists
        pages = [p.relative_to(root).as_posix() for p in root.rglob("*.html")]
        pages = [p for p in pages if p not in skipped and not p.startswith("_static")]
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
def test_the_site_in_a_browser(site, tmp_path):
    for page in PAGES:
        text, said = browse(f"{site}/{page}", tmp_path)
        assert "<h1>" in text, page
        assert not [line for line in said if "ERROR" in line or "Uncaught" in line], (page, said)
    for query, wanted in (
        ("CrossEntropyLoss", "nn.CrossEntropyLoss.html"),
        ("cross entropy", "nn.CrossEntropyLoss.html"),
        ("resnet18", "vision.models.resnet18.html"),
        ("OneCycleLR", "OneCycleLR.html"),
    ):
        text, _ = browse(f"{site}/search.html?q={query.replace(' ', '+')}", tmp_path)
        results = re.findall(r'<li[^>]*><a href="([^"]+)"', text)
        assert any(wanted in link for link in results[:20]), (query, results[:20])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_every_page_loads(site, tmp_path):
    """All of them: a heading, pictures that are there, and no error in the console."""
    text, said = browse(f"{site}/every-page", tmp_path, seconds=3600)
    found = json.loads(re.search("found({.*})end", text)[1])
    assert found["bad"] == []
    assert found["loaded"] > 2000
    assert not [line for line in said if "ERROR" in line or "Uncaught" in line], said[:9]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_pages_fit_a_phone(site, tmp_path):
    """Pages are laid out for the width of the device, and the bars on both sides fold."""
    for page in PAGES:
        text, _ = browse(f"{site}/{page}", tmp_path, "--window-size=390,800")
        assert re.search(r'name="viewport"[^>]*width=device-width', text), page
        assert 'for="__navigation"' in text, page
