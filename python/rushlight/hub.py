"""Downloads of files and models: a cache, and repositories with a hubconf.py."""

from __future__ import annotations

import builtins
import errno
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import uuid
import zipfile
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import rushlight
from rushlight._warnings import warn

if TYPE_CHECKING:
    from typing import Any


__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

# In file names, before the extension: the beginning of the file's SHA-256.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
_hub_dir: str | None = None


def _get_torch_home() -> str:
    """TORCH_HOME, or `torch` in the user's cache folder."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir():
    """The folder of downloads: `hub` in TORCH_HOME, unless `set_dir` has set another.

    Example:
        >>> isinstance(torch.hub.get_dir(), str)
        True
    """
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: Any) -> None:
    """Set the folder of downloads.

    Args:
        d: the folder.

    Example:
        >>> before = torch.hub.get_dir()
        >>> torch.hub.set_dir("models")
        >>> torch.hub.get_dir()
        'models'
        >>> torch.hub.set_dir(before)
    """
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download a file; it appears under its name only when it is complete.

    Raises:
        RuntimeError: the SHA-256 of the content does not begin with `hash_prefix`.

    Args:
        url: the address.
        dst: the path of the file.
        hash_prefix: how the SHA-256 of the content begins.
        progress: whether to show how far it is.

    `torch.hub.download_url_to_file("https://host/weights.pt", "weights.pt")` writes one file.

    Example:
        >>> callable(torch.hub.download_url_to_file)
        True
    """
    dst = os.path.expanduser(dst)
    part = f"{dst}.{uuid.uuid4().hex}.partial"
    digest = hashlib.sha256()
    try:
        with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as response:
            size = response.headers.get("Content-Length")
            done = 0
            with open(part, "xb") as file:
                while chunk := response.read(READ_DATA_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    if progress:
                        _show_progress(done, int(size) if size else None)
        if progress:
            sys.stderr.write("\n")
        if hash_prefix is not None and digest.hexdigest()[: len(hash_prefix)] != hash_prefix:
            raise RuntimeError(
                f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")'
            )
        shutil.move(part, dst)
    finally:
        if os.path.exists(part):
            os.remove(part)


def _download_error(error, url, path):
    """The error of a download, with the address and the place where the file is looked for."""
    reason = getattr(error, "reason", None) or error
    text = (
        f"{url} could not be downloaded ({reason}). Where there is no network, download it "
        f"elsewhere and put it here: {path}"
    )
    if isinstance(error, HTTPError):
        return HTTPError(url, error.code, text, error.headers, error.fp)
    return URLError(text)


def _show_progress(done, size):
    share = f" {100 * done / size:.0f}%" if size else ""
    sys.stderr.write(f"\r{done / 2**20:.1f} MB{share}")
    sys.stderr.flush()


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Load a file of weights, downloaded once into `hub/checkpoints`.

    With `check_hash` the name must hold the beginning of the content's SHA-256. Only data is ever
    loaded, whatever `weights_only` says.

    Args:
        url: the address.
        model_dir: where the file is kept.
        map_location: see `load`.
        progress: whether to show how far it is.
        check_hash: whether the name holds the beginning of the content's SHA-256.
        file_name: the name of the file; that of the address if None.
        weights_only: accepted; only data is loaded.

    Example:
        >>> callable(torch.hub.load_state_dict_from_url)
        True
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    _make_folder(folder)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        try:
            download_url_to_file(url, path, found.group(1) if found else None, progress)
        except (URLError, ConnectionError, TimeoutError) as error:
            raise _download_error(error, url, path) from error
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        # A file of `save` is a zip archive too; one that only wraps a file holds that alone.
        if len(names) == 1 and "/" not in names[0]:
            with zipfile.ZipFile(path) as archive:
                path = archive.extract(names[0], folder)
    return rushlight.load(path, map_location=map_location, weights_only=True)


# ---- repositories ----


def _parse_repo(github: str) -> tuple[str, str, str]:
    """Owner, name and reference of "owner/name[:ref]"."""
    repository, _, ref = github.partition(":")
    owner, _, name = repository.partition("/")
    if not owner or not name or "/" in name:
        raise ValueError(f"expected 'owner/name' or 'owner/name:ref', but got {github!r}")
    return owner, name, ref or "main"


def _repository(github: str, force_reload: bool, verbose: bool) -> str:
    """The folder of a repository of GitHub, downloaded once."""
    owner, name, ref = _parse_repo(github)
    _make_folder(get_dir())
    folder = os.path.join(get_dir(), "_".join((owner, name, ref.replace("/", "_"))))
    if os.path.isdir(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    with tempfile.TemporaryDirectory(dir=get_dir()) as work:
        archive = os.path.join(work, "archive.zip")
        download_url_to_file(
            f"https://github.com/{owner}/{name}/zipball/{ref}", archive, progress=verbose
        )
        unpacked = os.path.join(work, "files")
        with zipfile.ZipFile(archive) as content:
            content.extractall(unpacked)
        (root,) = os.listdir(unpacked)
        if os.path.isdir(folder):
            shutil.rmtree(folder)
        shutil.move(os.path.join(unpacked, root), folder)
    return folder


def _hubconf(repo_or_dir, source, force_reload, verbose, trust_repo=None):
    """The module hubconf.py of a repository, and its folder, which is on sys.path meanwhile."""
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        _check_trust(repo_or_dir, trust_repo)
        repo_or_dir = _repository(repo_or_dir, force_reload, verbose)
    path = os.path.join(repo_or_dir, "hubconf.py")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no hubconf.py in {repo_or_dir}")
    sys.path.insert(0, repo_or_dir)
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(repo_or_dir)
    missing = [
        name
        for name in getattr(module, "dependencies", [])
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _check_trust(repository, trust_repo):
    if trust_repo in (True, None):
        if trust_repo is None:
            warn(
                f"Code of {repository} is about to be downloaded and run. Pass trust_repo=True if "
                "it is trusted.",
            )
        return
    answer = ""
    if trust_repo in (False, "check"):
        answer = input(f"Run code of the repository {repository}? (y/N) ").strip().lower()
    if answer not in ("y", "yes"):
        raise Exception("Untrusted repository.")


def _entry(module, name):
    function = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    verbose: bool = True,
) -> builtins.list[str]:
    """The names of the models of a repository.

    For an example see `hub.load`, which works without a network.

    Args:
        github: "owner/name[:ref]" of GitHub.
        force_reload: whether the repository is downloaded anew.
        skip_validation: whether it is not asked if the ref belongs to the repository.
        trust_repo: True runs its code, "check" asks first, False asks each time; None warns.
        verbose: whether it is said that a copy is used.
    """
    module = _hubconf(github, "github", force_reload, verbose, trust_repo)
    return [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
) -> str | None:
    """The docstring of a model of a repository.

    For an example see `hub.load`, which works without a network.

    Args:
        github: "owner/name[:ref]" of GitHub.
        model: the name of a function of hubconf.py.
        force_reload: whether the repository is downloaded anew.
        skip_validation: whether it is not asked if the ref belongs to the repository.
        trust_repo: True runs its code, "check" asks first, False asks each time; None warns.
    """
    return _entry(_hubconf(github, "github", force_reload, True, trust_repo), model).__doc__


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call the function `model` of a repository's hubconf.py with these arguments and return its
    result.

    Args:
        repo_or_dir: "owner/name[:ref]" of GitHub, or with source="local" a folder.
        model: the name of a function of hubconf.py.
        *args, **kwargs: its arguments.
        source: "github" or "local".
        trust_repo: True runs its code, "check" asks first, False asks each time; None warns.
        force_reload: whether the repository is downloaded anew.
        verbose: whether it is said that a copy is used.
        skip_validation: whether it is not asked if the ref belongs to the repository.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "hubconf.py").write_text("greeting = 'hello {}'.format")
        >>> torch.hub.load(str(folder), "greeting", "you", source="local")
        'hello you'
    """
    module = _hubconf(repo_or_dir, source, force_reload, verbose, trust_repo)
    return _entry(module, model)(*args, **kwargs)
