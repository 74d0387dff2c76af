"""What plugins of TensorBoard are given; the messages are read by their numbers of fields."""

import io
import struct
import wave

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils.tensorboard import SummaryWriter


def varint(data, i):
    value = shift = 0
    while True:
        value |= (data[i] & 127) << shift
        i, shift = i + 1, shift + 7
        if data[i - 1] < 128:
            return value, i


def fields(data):
    """Numbers and values of a message's fields, lists for those said several times."""
    found = {}
    i = 0
    while i < len(data):
        key, i = varint(data, i)
        if key & 7 == 0:
            value, i = varint(data, i)
        elif key & 7 == 2:
            n, i = varint(data, i)
            value, i = data[i : i + n], i + n
        else:
            n = {1: 8, 5: 4}[key & 7]
            value, i = struct.unpack("<d" if n == 8 else "<f", data[i : i + n])[0], i + n
        found.setdefault(key >> 3, []).append(value)
    return found


def events(folder):
    (path,) = (p for p in folder.iterdir() if p.is_file() and "tfevents" in p.name)
    data, i = path.read_bytes(), 0
    while i < len(data):
        (n,) = struct.unpack("<Q", data[i : i + 8])
        yield fields(data[i + 12 : i + 12 + n])
        i += 16 + n


def values(folder):
    """The values of all summaries, by tag."""
    found = {}
    for event in events(folder):
        if 5 in event:
            value = fields(fields(event[5][0])[1][0])
            found[value[1][0].decode()] = value
    return found


def plugin(value):
    said = fields(fields(value[9][0])[1][0])
    return said[1][0].decode(), said[2][0]


def floats(tensor, field=5):
    data = fields(tensor)[field][0]
    return struct.unpack(f"<{len(data) // 4}f", data)


def sizes(tensor):
    return [fields(d)[1][0] for d in fields(fields(tensor)[2][0])[2]]


def test_curves_of_precision(tmp_path):
    labels, said = torch.tensor([0, 1, 1, 0]), torch.tensor([0.1, 0.8, 0.6, 0.9])
    with SummaryWriter(tmp_path) as w:
        w.add_pr_curve("pr", labels, said, 3, num_thresholds=5)
        w.add_pr_curve("heavy", labels, said, 3, num_thresholds=5, weights=[1, 2, 1, 1])
        with pytest.raises(ValueError, match="expected 5 numbers"):
            w.add_pr_curve_raw("raw", *[[1.0]] * 6, num_thresholds=5)
    found = values(tmp_path)
    tensor = found["pr"][8][0]
    assert sizes(tensor) == [6, 5] and plugin(found["pr"]) == ("pr_curves", b"\x10\x05")
    rows = torch.tensor(floats(tensor)).reshape(6, 5)
    assert rows[:4].tolist() == [[2, 2, 2, 1, 0], [2, 1, 1, 1, 0], [0, 1, 1, 1, 2], [0, 0, 0, 1, 2]]
    assert rows[4].allclose(torch.tensor([0.5, 2 / 3, 2 / 3, 0.5, 0]))
    assert rows[5].tolist() == [1, 1, 1, 0.5, 0]
    assert floats(found["heavy"][8][0])[:5] == (3, 3, 3, 2, 0)


def test_meshes(tmp_path):
    points = torch.rand(1, 4, 3)
    with SummaryWriter(tmp_path) as w:
        w.add_mesh("m", points, torch.full((1, 4, 3), 9), torch.tensor([[[0, 1, 2]]]), {"a": 1})
        with pytest.raises(ValueError, match="batch, count, 3"):
            w.add_mesh("m", points[0])
    found = values(tmp_path)
    assert set(found) == {"m_VERTEX", "m_FACE", "m_COLOR"}
    for name, kind, shape in (("VERTEX", 1, [1, 4, 3]), ("FACE", 2, [1, 1, 3])):
        title, content = plugin(found[f"m_{name}"])
        about = fields(content)
        assert title == "mesh" and about[2] == [b"m"] and about[3] == [kind] and about[7] == [14]
        assert about[5] == [b'{"a": 1}'] and list(about[6][0]) == shape
        assert sizes(found[f"m_{name}"][8][0]) == shape
    assert torch.tensor(floats(found["m_VERTEX"][8][0])).equal(points.reshape(-1))


def test_layouts_of_scalars(tmp_path):
    with SummaryWriter(tmp_path) as w:
        layout = {"A": {"x": ["Multiline", ["a", "b"]], "y": ["Margin", ["c", "d", "e"]]}}
        w.add_custom_scalars(layout)
        with pytest.raises(ValueError, match="a margin has"):
            w.add_custom_scalars_marginchart(["a"])
    value = values(tmp_path)["custom_scalars__config__"]
    category = fields(fields(fields(value[8][0])[8][0])[2][0])
    lines, margin = (fields(chart) for chart in category[2])
    assert category[1] == [b"A"] and lines[1] == [b"x"] and fields(lines[2][0])[1] == [b"a", b"b"]
    series = fields(fields(margin[3][0])[1][0])
    assert (series[1], series[2], series[3]) == ([b"c"], [b"d"], [b"e"])


def test_sounds_films_and_boxes(tmp_path):
    image = pytest.importorskip("PIL.Image")
    with SummaryWriter(tmp_path) as w:
        w.add_audio("sound", torch.sin(torch.arange(100.0))[None], sample_rate=8000)
        w.add_video("film", torch.rand(3, 4, 3, 6, 5), fps=10)
        w.add_image_with_boxes("boxes", torch.ones(3, 9, 9), [[1, 1, 6, 6]])
        with pytest.raises(ValueError, match="1 dimensional"):
            w.add_audio("sound", torch.ones(2, 2))
        with pytest.raises(ValueError, match="films"):
            w.add_video("film", torch.ones(2, 2))
    found = values(tmp_path)
    sound = fields(found["sound"][6][0])
    assert (sound[1], sound[2], sound[3], sound[5]) == ([8000], [1], [100], [b"audio/wav"])
    with wave.open(io.BytesIO(sound[4][0])) as file:
        samples = struct.unpack("<100h", file.readframes(100))
    assert samples[1] == int(torch.sin(torch.tensor(1.0)).double() * 32767)
    film = fields(found["film"][4][0])
    picture = image.open(io.BytesIO(film[4][0]))
    assert (picture.n_frames, picture.size) == (4, (10, 12)) and film[1] == [12] and film[2] == [10]
    boxes = image.open(io.BytesIO(fields(found["boxes"][4][0])[4][0]))
    assert boxes.getpixel((1, 3)) == (255, 0, 0) and boxes.getpixel((8, 8)) == (255, 255, 255)


def test_points_for_the_projector(tmp_path):
    points = torch.tensor([[1.0, 2.0], [3.0, 4.5]])
    with SummaryWriter(tmp_path) as w:
        labels = [("a", 1), ("b", 2)]
        pictures = torch.ones(2, 1, 3, 3)
        w.add_embedding(points, labels, pictures, 3, "x/y", metadata_header=["n", "v"])
        w.add_embedding(points)
        with pytest.raises(ValueError, match="#labels should equal"):
            w.add_embedding(points, ["a"])
    folder = tmp_path / "00003" / "x%2fy"
    assert (folder / "tensors.tsv").read_text() == "1.0\t2.0\n3.0\t4.5\n"
    assert (folder / "metadata.tsv").read_text() == "n\tv\na\t1\nb\t2\n"
    assert (folder / "sprite.png").read_bytes().startswith(b"\x89PNG")
    listed = (tmp_path / "projector_config.pbtxt").read_text()
    assert listed.count("embeddings {") == 2 and 'tensor_name: "x/y:00003"' in listed
    assert "sprite {" in listed and "single_image_dim: 3" in listed


def test_graphs_of_models(tmp_path):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x):
            return self.layer(x).relu() + self.layer(x * 2)

    with SummaryWriter(tmp_path) as w:
        w.add_graph(Net(), torch.ones(1, 3))
    (graph,) = (fields(e[4][0]) for e in events(tmp_path) if 4 in e)
    nodes = {}
    for node in map(fields, graph[1]):
        nodes[node[1][0].decode()] = (node[2][0].decode(), [i.decode() for i in node.get(3, [])])
    weight, bias = "Net/Linear[layer]/weight", "Net/Linear[layer]/bias"
    assert nodes["input/input.1"] == ("IO Node", []) and nodes[weight] == ("Parameter", [])
    assert nodes["Net/Linear[layer]/linear"] == ("aten::linear", ["input/input.1", weight, bias])
    assert nodes["Net/relu"] == ("aten::relu", ["Net/Linear[layer]/linear"])
    again = nodes["Net/Linear[layer]/linear_1"][1]
    assert again == ["Net/mul", weight, bias]
    assert nodes["Net/add"][1] == ["Net/relu", "Net/Linear[layer]/linear_1"]
    assert nodes["output/output.1"] == ("IO Node", ["Net/add"])


def test_tensors_and_files(tmp_path):
    from rushlight.utils.tensorboard.summary import hparams

    w = SummaryWriter(tmp_path)
    w.add_tensor("t", torch.arange(6.0).reshape(2, 3))
    w.add_tensor("n", torch.tensor([1, -1]))
    for part in hparams({"lr": 0.1}, {"score": 1.0}):
        w.file_writer.add_summary(part)
    assert w._get_file_writer().get_logdir() == str(tmp_path)
    assert list(w.all_writers) == [str(tmp_path)] and len(w.default_bins) > 1000
    w.close()
    assert w.file_writer is None
    found = values(tmp_path)
    assert sizes(found["t"][8][0]) == [2, 3] and floats(found["t"][8][0]) == (0, 1, 2, 3, 4, 5)
    assert fields(found["n"][8][0])[10] == [b"\x01" + b"\xff" * 9 + b"\x01"]
    assert "_hparams_/session_end_info" in found
