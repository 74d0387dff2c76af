"""Images as bytes and files: formats, modes, orientation, lists on threads, damage; videos by PyAV where it is installed."""

import io
import zlib

import numpy as np
import pytest
from PIL import Image, features

import rushlight as torch
from rushlight.vision import io as vision_io


def pixels(height=6, width=9, channels=3):
    noise = np.random.default_rng(0).integers(0, 256, (height, width, channels), np.uint8)
    return noise[:, :, 0] if channels == 1 else noise


def as_bytes(image, format, **how):
    out = io.BytesIO()
    image.save(out, format, **how)
    return torch.frombuffer(bytearray(out.getvalue()), dtype=torch.uint8)


def as_image(array):
    return torch.from_numpy(np.atleast_3d(array).transpose(2, 0, 1).copy())


@pytest.mark.parametrize("channels, mode", [(1, "L"), (3, "RGB"), (4, "RGBA")])
def test_lossless_files(channels, mode):
    array = pixels(channels=channels)
    picture = Image.fromarray(array)
    for format, decode in (("PNG", vision_io.decode_png), ("WEBP", vision_io.decode_webp)):
        if format == "WEBP" and mode == "L":
            continue
        data = as_bytes(
            picture, format, **({"lossless": True, "exact": True} if format == "WEBP" else {})
        )
        assert decode(data).equal(as_image(array))
        assert vision_io.decode_image(data).equal(as_image(array))
        grey = as_image(np.asarray(picture.convert("L")))
        assert decode(data, vision_io.ImageReadMode.GRAY).equal(grey)
        assert decode(data, "rgba").shape == (4, 6, 9)
    assert vision_io.ImageReadMode.RGBA is vision_io.ImageReadMode.RGB_ALPHA


def test_palettes_sums_and_alpha():
    """A mask's numbers are places in a palette; as colours they are asked for."""
    array = pixels(channels=1) % 4
    mask = Image.fromarray(array, "P")
    mask.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
    for bits in (2, 8):
        data = as_bytes(mask, "PNG", bits=bits)
        assert vision_io.decode_image(data).equal(as_image(array))
        assert vision_io.decode_image(data, "rgb").equal(as_image(np.asarray(mask.convert("RGB"))))
    deep = torch.arange(60).view(6, 10).to(torch.uint16) * 999
    data = as_bytes(Image.fromarray(deep.numpy()), "PNG")
    for mode, channels in (("gray", 1), ("gray_alpha", 2), ("rgb", 3), ("rgb_alpha", 4)):
        found = vision_io.decode_image(data, mode)
        assert found.dtype == torch.uint16 and found.shape == (channels, 6, 10)
        assert found[0].equal(deep) and (found[-1].equal(deep) or channels in (2, 4))
    picture = Image.fromarray(pixels(channels=3))
    with pytest.raises(RuntimeError, match="a JPEG file has no alpha"):
        vision_io.decode_jpeg(as_bytes(picture, "JPEG"), "rgba")


def test_gif():
    frames = [Image.fromarray(pixels() // 64 * 64).convert("P") for _ in range(3)]
    one = as_bytes(frames[0], "GIF")
    expected = as_image(np.asarray(Image.open(io.BytesIO(one.numpy().tobytes())).convert("RGB")))
    assert vision_io.decode_gif(one).equal(expected)
    frames[1].putpixel((0, 0), 7)
    several = as_bytes(frames[0], "GIF", save_all=True, append_images=frames[1:2])
    assert vision_io.decode_gif(several).shape == (2, 3, 6, 9)
    assert vision_io.decode_image(several).equal(vision_io.decode_gif(several))


def test_avif_and_heic():
    from PIL import features

    if features.check("avif"):
        data = as_bytes(Image.fromarray(pixels()), "AVIF", quality=100)
        assert vision_io.decode_avif(data).shape == (3, 6, 9)
        assert vision_io.decode_image(data).equal(vision_io.decode_avif(data))
    with pytest.raises(RuntimeError, match="pillow-heif is not installed|no HEIF file"):
        vision_io.decode_heic(torch.zeros(20, dtype=torch.uint8))


@pytest.mark.parametrize("format", ["JPEG", "PNG"])
def test_orientation(format):
    picture = Image.fromarray(pixels())
    decode = vision_io.decode_jpeg if format == "JPEG" else vision_io.decode_png
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        data = as_bytes(picture, format, exif=exif)
        plain = decode(data)
        x = {2: plain.flip(2), 3: plain.flip(1, 2), 4: plain.flip(1), 5: plain.mT}.get(orientation)
        x = {6: plain.mT.flip(2), 7: plain.mT.flip(1, 2), 8: plain.mT.flip(1)}.get(orientation, x)
        assert decode(data, apply_exif_orientation=True).equal(plain if x is None else x)


def test_damaged_orientation_counts_for_nothing():
    exif = Image.Exif()
    exif[0x0112] = 6
    data = as_bytes(Image.fromarray(pixels()), "JPEG", exif=exif).numpy().tobytes()
    broken = data.replace(b"Exif\0\0MM", b"Exif\0\0QQ").replace(b"Exif\0\0II", b"Exif\0\0QQ")
    assert broken != data
    data = torch.frombuffer(bytearray(broken), dtype=torch.uint8)
    assert vision_io.decode_jpeg(data, apply_exif_orientation=True).shape == (3, 6, 9)


def test_lists():
    pictures = [as_image(pixels(6, 9 + i)) for i in range(5)]
    files = vision_io.encode_jpeg(pictures, quality=90)
    for file, picture in zip(files, pictures, strict=True):
        assert file.equal(vision_io.encode_jpeg(picture, quality=90))
    for one, file in zip(vision_io.decode_jpeg(files, mode="RGB"), files, strict=True):
        assert one.equal(vision_io.decode_jpeg(file))
    for call, given in (
        (vision_io.decode_jpeg, []),
        (vision_io.encode_jpeg, []),
        (vision_io.decode_jpeg, [1]),
    ):
        with pytest.raises(ValueError, match="at least one|must be tensors"):
            call(given)


def test_what_is_no_image(tmp_path):
    decoders = ("decode_image", "decode_jpeg", "decode_png", "decode_gif", "decode_webp")
    postscript = torch.frombuffer(
        bytearray(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"), dtype=torch.uint8
    )
    for name in decoders:
        decode = getattr(vision_io, name)
        for data in (
            torch.zeros(9, dtype=torch.uint8),
            postscript,
        ):  # which Pillow hands to a program
            with pytest.raises(RuntimeError, match="Unsupported image file"):
                decode(data)
        for data in (
            torch.zeros(0, dtype=torch.uint8),
            torch.zeros(9),
            torch.zeros(3, 3, dtype=torch.uint8),
        ):
            with pytest.raises(RuntimeError, match="Expected a non empty 1-dimensional tensor"):
                decode(data)
    whole = as_bytes(Image.fromarray(pixels(60, 90)), "PNG")
    with pytest.raises(RuntimeError, match="damaged"):
        vision_io.decode_image(whole[:200])
    huge = bytearray(whole.numpy().tobytes())
    huge[16:24] = bytes([0, 1, 0, 0] * 2)
    huge[29:33] = zlib.crc32(huge[12:29]).to_bytes(4, "big")
    with pytest.raises(RuntimeError, match="damaged: DecompressionBombError"):
        vision_io.decode_png(torch.frombuffer(huge, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="damaged: the sum of a chunk"):
        vision_io.decode_image(whole[:-13])  # where all pixels are
    assert vision_io.decode_image(whole[:-12]).equal(vision_io.decode_image(whole))
    for path in (tmp_path / "none.png", tmp_path, 0, None):  # no number of an open file either
        with pytest.raises(RuntimeError, match="cannot be read"):
            vision_io.read_image(path)
    for mode in (None, 0, b"rgb"):
        with pytest.raises(TypeError, match="should be an ImageReadMode"):
            vision_io.decode_image(whole, mode)
    with pytest.raises(KeyError):
        vision_io.decode_image(whole, "none")


def test_many_large_frames_are_refused(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 60)
    frames = [Image.fromarray(pixels()).convert("P").rotate(90 * i) for i in range(4)]
    data = as_bytes(frames[0], "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(RuntimeError, match="frames of 9 x 6 are too many"):
        vision_io.decode_gif(data)


@pytest.mark.skipif(not features.check("webp"), reason="this Pillow reads no WebP")
def test_a_row_longer_than_a_block():
    """Minutes, were the row put together from Pillow's blocks."""
    frames = [Image.new("RGBA", (4, 1), colour) for colour in ("red", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    content = bytearray(file.getvalue())
    place = content.index(b"VP8X") + 12  # width and height less one, of 24 bits each
    width = (1 << 24) - 16
    content[place : place + 6] = (width - 1).to_bytes(3, "little") + bytes(3)
    image = vision_io.decode_webp(torch.frombuffer(content, dtype=torch.uint8), "RGB")
    assert image.shape == (3, 1, width) and image[:, 0, 0].tolist() == [255, 0, 0]


def test_writing(tmp_path):
    image = as_image(pixels())
    vision_io.write_png(image, tmp_path / "a.png")
    assert vision_io.read_image(tmp_path / "a.png").equal(image)
    vision_io.write_jpeg(image[:1], tmp_path / "a.jpg", 80)
    assert vision_io.decode_image(str(tmp_path / "a.jpg")).shape == (1, 6, 9)
    assert vision_io.read_file(tmp_path / "a.jpg").dtype == torch.uint8
    for bad in (image.float(), image[:2], image[None]):
        with pytest.raises(RuntimeError):
            vision_io.encode_png(bad)
    for level in (10, -1, 2.5, None):
        with pytest.raises(RuntimeError, match="from 0 to 9"):
            vision_io.encode_png(image, level)
    with pytest.raises(RuntimeError, match="quality is an int"):
        vision_io.encode_jpeg(image, 2.5)
    with pytest.raises(RuntimeError, match="cannot be written"):
        vision_io.write_png(image, tmp_path / "none" / "a.png")
    with pytest.raises(ValueError, match="between 1 and 100"):
        vision_io.encode_jpeg(image, 0)


def test_video_without_pyav():
    try:
        import av  # noqa: F401
    except ImportError:
        with pytest.raises(RuntimeError, match="PyAV is not installed"):
            vision_io.VideoReader("none.mp4")


def test_videos(tmp_path):
    pytest.importorskip("av")
    path = tmp_path / "a.mp4"
    levels = torch.arange(20, dtype=torch.uint8)[:, None, None, None] * 10
    frames = levels.expand(20, 48, 64, 3)
    sound = torch.sin(torch.arange(16000) / 8)[None]
    vision_io.write_video(path, frames, 10, "mpeg4", None, sound, 8000, "aac")
    times, rate = vision_io.read_video_timestamps(path, "sec")
    assert rate == 10 and [float(t) for t in times] == pytest.approx([i / 10 for i in range(20)])
    video, audio, info = vision_io.read_video(path, pts_unit="sec")
    assert video.shape == frames.shape and info == {"video_fps": 10.0, "audio_fps": 8000}
    means = video.float().mean((1, 2, 3))
    assert (means - levels.flatten()).abs().max() < 5
    assert audio.shape[0] == 1 and abs(audio.shape[1] - 16000) < 2100
    part, sound, _ = vision_io.read_video(path, 0.5, 0.9, "sec", "TCHW")
    assert part.shape == (5, 3, 48, 64) and abs(part[0].float().mean() - 50) < 5
    assert abs(sound.shape[1] - 3200) <= 2
    units, _ = vision_io.read_video_timestamps(path)
    assert len(vision_io.read_video(path, units[3], units[4])[0]) == 2
    for given, error in (
        ((2, 1), "larger than start_pts"),
        ((0, None, "hours"), "pts_unit"),
        ((0, None, "sec", "CT"), "output_format"),
    ):
        with pytest.raises(ValueError, match=error):
            vision_io.read_video(path, *given)
    with pytest.raises(FileNotFoundError):
        vision_io.read_video(tmp_path / "none.mp4")

    reader = vision_io.VideoReader(str(path), "video")
    assert reader.get_metadata()["video"]["fps"] == [10.0]
    read = list(reader)
    assert (
        len(read) == 20
        and read[3]["data"].shape == (3, 48, 64)
        and read[3]["pts"] == pytest.approx(0.3)
    )
    assert next(reader.seek(1.05))["pts"] == pytest.approx(1.1)
    assert next(reader.seek(1.05, keyframes_only=True))["pts"] <= 1.05
    assert reader.set_current_stream("audio:0") and not reader.set_current_stream("video:1")
    assert next(vision_io.VideoReader(vision_io.read_file(path), "audio"))["data"].shape[1] == 1
    with pytest.raises(ValueError, match="is no stream"):
        vision_io.VideoReader(str(path), "video:3")
    with pytest.raises(ValueError, match="'video' or 'audio'"):
        vision_io.VideoReader(str(path), "text")
    path.write_bytes(b"no video")
    with pytest.raises(RuntimeError, match="damaged or no video"):
        vision_io.read_video(path)
