"""PyTorch's own examples, unchanged, on made-up data in the form of the real."""
# packages: numpy PIL
# repositories: pytorch/examples
# cases: mnist mnist_rnn siamese_network vae dcgan gcn gat word_language_model-LSTM word_language_model-Transformer fx/custom_tracer fx/inline_function fx/invert fx/module_tracer fx/primitive_library fx/proxy_based_graph_creation fx/replace_op fx/subgraph_rewriter_basic_use fx/wrap_output_dynamically
# differs[siamese_network]: Adadelta's first step is a sign, which rounding turns where the gradient is near 0

import io
import os
import random
import runpy
import struct
import sys
import tarfile
import tempfile
import types
from pathlib import Path

import numpy as np
import torch

HERE = Path(os.environ["COMPAT_REPOSITORIES"]) / "examples"
OPTIONS = {
    "mnist": "--dry-run --no-accel",
    "mnist_rnn": "--dry-run",
    "siamese_network": "--dry-run",
    "vae": "--epochs 1 --log-interval 100",
    "dcgan": "--dataset fake --niter 1 --dry-run --manualSeed 1",
    "gcn": "--epochs 3 --no-accel --val-every 1",
    "gat": "--epochs 1 --no-accel --val-every 1",
    "word_language_model-LSTM": "--epochs 1 --dry-run --model LSTM",
    "word_language_model-Transformer": "--epochs 1 --dry-run --model Transformer",
}


def digits(folder):
    """MNIST's four files, with a pattern and noise for each class."""
    draw = np.random.default_rng(0)
    patterns = draw.random((10, 28, 28))
    folder.mkdir(parents=True)
    for part, n in (("train", 512), ("t10k", 256)):
        labels = draw.integers(0, 10, n).astype(np.uint8)
        noisy = 0.7 * patterns[labels] + 0.3 * draw.random((n, 28, 28))
        pixels = (noisy * 255).astype(np.uint8)
        head = struct.pack(">IIII", 2051, n, 28, 28)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(head + pixels.tobytes())
        head = struct.pack(">II", 2049, n)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(head + labels.tobytes())


def sentences(folder):
    draw = random.Random(0)
    folder.mkdir(parents=True)
    for part, n in (("train", 1500), ("valid", 100), ("test", 100)):
        lines = (" ".join(f"w{draw.randrange(300)}" for _ in range(12)) for _ in range(n))
        (folder / f"{part}.txt").write_text("\n".join(lines) + "\n")


def papers():
    """What is downloaded in the place of Cora: 2,708 papers of seven classes that cite others."""
    draw = random.Random(0)
    content, cites = "", ""
    for i in range(2708):
        words = "\t".join(
            str(int(draw.random() < (0.05, 0.1)[j % 7 == i % 7])) for j in range(1433)
        )
        content += f"{1000 + i}\t{words}\tclass{i % 7}\n"
    for _ in range(5400):
        a = draw.randrange(2708)
        cites += f"{1000 + a}\t{1000 + (a + 7 * draw.randrange(1, 300)) % 2708}\n"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, text in (("cora.content", content), ("cora.cites", cites)):
            info = tarfile.TarInfo(f"cora/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    archive.seek(0)

    class Response(types.SimpleNamespace):
        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

    requests = types.ModuleType("requests")
    requests.get = lambda url, **options: Response(status_code=200, raw=archive)
    sys.modules["requests"] = requests


case = sys.argv[1]
folder, _, script = case.partition("/")
folder = folder.partition("-")[0]
work = Path(tempfile.mkdtemp()) / "run"  # some look for data beside their own folder
work.mkdir()
os.chdir(work)
torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
for place in (work / "data", work.parent / "data"):
    if folder in (
        "mnist",
        "mnist_rnn",
        "vae",
        "siamese_network",
    ):
        digits(place / "MNIST" / "raw")
(work / "results").mkdir()
if folder == "word_language_model":
    sentences(work / "data" / "wikitext-2")
if folder in ("gcn", "gat"):
    papers()
path = HERE / folder / (script + ".py" if script else "main.py")
sys.path.insert(0, str(path.parent))
sys.argv = [str(path), *OPTIONS.get(case, "").split()]
printed = io.StringIO()
sys.stdout, terminal = printed, sys.stdout
try:
    runpy.run_path(str(path), run_name="__main__")
finally:
    sys.stdout = terminal
    for line in printed.getvalue().splitlines():  # times are not compared
        if "ms/batch" not in line and "end of epoch" not in line:
            print(line.partition("(")[0] + line.partition(")")[2] if "s) loss" in line else line)
