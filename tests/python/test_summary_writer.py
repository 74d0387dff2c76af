"""`SummaryWriter`: the files that TensorBoard reads."""

import pytest

import rushlight as torch


def _fields(data):
    """The fields of a message: (number, value), values of length-delimited ones as bytes."""
    import struct

    def varint(i):
        shift = value = 0
        while True:
            value |= (data[i] & 127) << shift
            shift += 7
            i += 1
            if data[i - 1] < 128:
                return value, i

    i, out = 0, []
    while i < len(data):
        key, i = varint(i)
        if key & 7 == 0:
            value, i = varint(i)
        elif key & 7 == 2:
            n, i = varint(i)
            value, i = data[i : i + n], i + n
        else:
            size, form = (8, "<d") if key & 7 == 1 else (4, "<f")
            value, i = struct.unpack(form, data[i : i + size])[0], i + size
        out.append((key >> 3, value))
    return out


def _records(path):
    import struct

    from rushlight.utils.tensorboard._events import _masked_crc

    data = path.read_bytes()
    i = 0
    while i < len(data):
        (n,) = struct.unpack("<Q", data[i : i + 8])
        (crc,) = struct.unpack("<I", data[i + 8 : i + 12])
        assert crc == _masked_crc(data[i : i + 8])
        event = data[i + 12 : i + 12 + n]
        assert struct.unpack("<I", data[i + 12 + n : i + 16 + n])[0] == _masked_crc(event)
        i += 16 + n
        yield dict(_fields(event))


def test_summary_writer(tmp_path):
    from rushlight.utils.tensorboard import SummaryWriter, _events

    # The check value of CRC-32C for "123456789" is 0xE3069283.
    crc = 0xE3069283
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert _events._masked_crc(b"123456789") == masked
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(0.5), 300)
        writer.add_histogram("weights", torch.tensor([-1.0, 0.0, 2.0, 2.0]), 1)
        writer.add_image("picture", torch.rand(3, 4, 5))
        writer.add_text("note", "**hello**")
        writer.add_scalars("both", {"a": 1, "b": 2}, 7)
        writer.add_hparams({"lr": 0.1, "name": "x", "on": True}, {"accuracy": 0.9}, run_name="h")
        with pytest.raises(AssertionError):
            writer.add_image("picture", torch.rand(4, 5))
    (file,) = (p for p in tmp_path.iterdir() if p.is_file())
    events = list(_records(file))
    assert events[0][3] == b"brain.Event:2" and len(events) == 5
    loss = dict(_fields(dict(_fields(events[1][5]))[1]))
    assert events[1][2] == 300 and loss == {1: b"loss", 2: 0.5}
    import struct

    spread = dict(_fields(dict(_fields(dict(_fields(events[2][5]))[1]))[5]))
    assert (spread[1], spread[2], spread[3], spread[4], spread[5]) == (-1, 2, 4, 3, 9)
    limits = struct.unpack(f"<{len(spread[6]) // 8}d", spread[6])
    counts = struct.unpack(f"<{len(spread[7]) // 8}d", spread[7])
    assert sum(counts) == 4 and len(limits) == len(counts) and list(limits) == sorted(limits)
    picture = dict(_fields(dict(_fields(dict(_fields(events[3][5]))[1]))[4]))
    import io

    from PIL import Image

    assert Image.open(io.BytesIO(picture[4])).size == (5, 4)
    assert {p.name for p in tmp_path.iterdir() if p.is_dir()} == {"both_a", "both_b", "h"}
