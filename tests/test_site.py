"""The site in a browser: pages load without errors, search finds what people look for, and pages are made for phones, too.

Needs Debian's chromium (`apt-get install chromium`); a browser without a window shows pages to itself. With
RUSHLIGHT_SITE=build/docs/site it looks at what `./dev docs` has built.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import threading

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


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def browse(address, profile, *options):
    """(The page as the browser has it in the end, what its console says)."""
    run = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
            *("--virtual-time-budget=20000", f"--user-data-dir={profile}", *options),
            *("--dump-dom", address),
        ],
        capture_output=True,
        text=True,
        timeout=180,
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
def test_pages_fit_a_phone(site, tmp_path):
    """Pages are laid out for the width of the device, and the bars on both sides fold."""
    for page in PAGES:
        text, _ = browse(f"{site}/{page}", tmp_path, "--window-size=390,800")
        assert re.search(r'name="viewport"[^>]*width=device-width', text), page
        assert 'for="__navigation"' in text, page
