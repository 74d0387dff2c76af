"""Archives with code, written by one and read by the other."""

import io
import warnings

import pytest

import rushlight
import rushlight.package

torch = pytest.importorskip("torch")

SOURCE = """
from torch import nn
import torch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x).relu()
"""


def write(writer):
    """An archive with tensors, a text and a module of code."""
    stream = io.BytesIO()
    weights = {"w": writer.arange(6.0).view(2, 3).t(), "n": [1, writer.float16]}
    with writer.package.PackageExporter(stream) as exporter:
        exporter.save_pickle("model", "weights.pkl", weights)
        exporter.save_text("model", "words.txt", "words")
        exporter.save_source_string("nets", SOURCE)
    stream.seek(0)
    return stream


@pytest.mark.parametrize("writer, reader", [(torch, rushlight), (rushlight, torch)])
def test_archives_are_exchanged(writer, reader):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importer = reader.package.PackageImporter(write(writer))
        weights = importer.load_pickle("model", "weights.pkl")
    assert weights["w"].tolist() == [[0, 3], [1, 4], [2, 5]] and weights["w"].stride() == (1, 3)
    assert weights["n"] == [1, reader.float16]
    assert importer.load_text("model", "words.txt") == "words"
    net = importer.import_module("nets").Net()
    assert isinstance(net, reader.nn.Module)
    assert net(reader.ones(1, 2)).shape == (1, 2)
