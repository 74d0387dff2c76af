"""The examples run on little work, learn, and leave a picture to look at."""

import importlib.util
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


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
