"""The examples run on little work, learn, and leave a picture to look at."""

import importlib.util
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(autouse=True)
def beside(monkeypatch):
    """Examples import what lies beside them (drawing)."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    sys.modules.pop("drawing", None)


def size_of(path):
    with Image.open(path) as image:
        return image.size


def load(name):
    found = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_detector(tmp_path):
    precision = load("detector").main(6, 32, 8, tmp_path / "made" / "detector.png")
    assert 0.02 < precision <= 1
    assert Image.open(tmp_path / "made" / "detector.png").size == (4 * 292 + 4, 3 * 292 + 4)


def test_dcgan(tmp_path):
    pytest.importorskip("sklearn")
    away = load("dcgan").main(6, 16, 64, tmp_path / "dcgan.png")
    assert 0 < away < 12
    assert Image.open(tmp_path / "dcgan.png").size == (12 * 50 + 2, 7 * 50 + 2)


def test_style(tmp_path):
    pytest.importorskip("sklearn")
    out = tmp_path / "style.png"
    module = load("style")
    painted = module.main("flower.jpg", "china.jpg", 64, 3, 8.0, 8, out)
    first = module.load("flower.jpg", 64)
    moved = (painted - first).abs().mean().item()
    assert painted.shape == (1, 3, 64, 64) and 0.01 < moved < 0.3
    assert Image.open(out).size == (3 * 68 + 4, 72)
    assert module.load(str(out), 32).shape == (1, 3, 32, 32)


def test_private_gradients(capsys):
    assert load("per_sample_gradients").train(2, 1.0, 0.5, 1.0, 100) > 0.8
    assert "of fresh points are right" in capsys.readouterr().out


def test_meta_learning():
    losses = load("maml").train(300, 25, 0.01, 5, 10)
    assert losses[1] < 0.9 * losses[0] and losses[5] < losses[1]


def test_ensemble(capsys):
    known, between = load("ensemble").train(5, 300, 100)
    assert between > 2 * known
    assert "loss" in capsys.readouterr().out


def test_tangent_kernel():
    assert load("tangent_kernel").main(4096, 200, 0.05) < 0.05


def test_text(tmp_path):
    loss = load("text").main(25, 8, 32, 40, tmp_path / "text.txt")
    assert loss < 4.0  # log of the number of letters is above 4.5
    page = (tmp_path / "text.txt").read_text()
    assert page.startswith("# How to ") and len(page) == 49


def test_translation(tmp_path):
    module = load("translate")
    assert module.german(472) == "vierhundertzweiundsiebzig"
    assert module.german(1001) == "eintausendeins" and module.german(21) == "einundzwanzig"
    assert module.english(9031) == "nine thousand thirty-one"
    assert 0 <= module.main(8, 16, 4, tmp_path / "translate.png") <= 1
    assert size_of(tmp_path / "translate.png")[0] > 100


def test_diffusion(tmp_path):
    pytest.importorskip("sklearn")
    error = load("diffusion").main(1, 128, 16, tmp_path / "diffusion.png")
    assert 0.05 < error < 1.3
    assert size_of(tmp_path / "diffusion.png") == (8 * 54 + 6, 10 * 54 + 6)


def test_vae(tmp_path):
    pytest.importorskip("sklearn")
    loss = load("vae").main(4, 100, tmp_path / "vae.png")
    assert 20 < loss < 40  # pixels without a network: 44
    assert size_of(tmp_path / "vae.png")[0] > 700


def test_cartpole(tmp_path):
    module = load("cartpole")
    carts = module.Carts(3)
    ever = module.torch.zeros(3, dtype=module.torch.bool)
    for _ in range(200):  # pushed to one side alone, poles fall within 200 ticks
        fell = carts.push(module.torch.ones(3))
        carts.begin(fell)
        ever = ever | fell
    assert ever.all()
    assert module.main(30, 32, 16, tmp_path / "cartpole.png") > 15
    assert size_of(tmp_path / "cartpole.png")[0] > 400


def test_graph(tmp_path):
    assert load("graph").main(120, 3, 80, tmp_path / "graph.png") > 0.5  # by chance 0.33
    assert size_of(tmp_path / "graph.png") == (560, 560)


def test_speech(tmp_path):
    module = load("speech")
    assert module.speak("stop").shape == (4800,)
    assert module.main(30, 10, 16, tmp_path / "speech.png") > 0.25  # by chance one of eight
    assert size_of(tmp_path / "speech.png")[0] > 300


def test_tabular(tmp_path, capsys):
    network, line = load("tabular").main(120, 4, 128, tmp_path / "tabular.png")
    assert network < line
    assert "hour" in capsys.readouterr().out and size_of(tmp_path / "tabular.png") == (720, 260)


def test_pinn(tmp_path):
    away = load("pinn").main(150, 64, tmp_path / "pinn.png")
    assert away < 0.4
    assert size_of(tmp_path / "pinn.png")[0] > 500
