"""Transforms and tensors that know what they are: what must hold whatever they are compared with."""

import copy
import math
import pickle

import numpy as np
import pytest

PIL = pytest.importorskip("PIL.Image")

import rushlight as torch  # noqa: E402
from rushlight.vision import transforms, tv_tensors  # noqa: E402
from rushlight.vision.transforms import _pictures, v2  # noqa: E402
from rushlight.vision.transforms.v2 import functional as F  # noqa: E402


def pixels(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


def boxes(*rows, format="XYXY", size=(20, 30), **kwargs):
    data = torch.tensor(rows, dtype=torch.float32)
    return tv_tensors.BoundingBoxes(data, format=format, canvas_size=size, **kwargs)


def numbers(x):
    return x.as_subclass(torch.Tensor).tolist()


# ---- kinds ----


def test_ops_give_plain_tensors_as_a_rule():
    image = tv_tensors.Image(torch.rand(3, 4, 5))
    assert type(image + 1) is torch.Tensor and type(image.mean((1, 2))) is torch.Tensor
    for kept in (image.clone(), image.to(torch.float64), image.detach(), copy.deepcopy(image)):
        assert type(kept) is tv_tensors.Image
    assert type(torch.rand(3, 4, 5).to(image)) is torch.Tensor
    with tv_tensors.set_return_type("TVTensor"):
        assert type(image + 1) is tv_tensors.Image
        assert [type(part) for part in image.unbind()] == [tv_tensors.Image] * 3
    assert type(image + 1) is torch.Tensor
    with pytest.raises(ValueError, match="return_type must be"):
        tv_tensors.set_return_type("Image")


def test_fields_are_kept():
    given = boxes([1, 2, 3, 4], format="xywh", clamping_mode="hard")
    assert given.format is tv_tensors.BoundingBoxFormat.XYWH
    for kept in (given.clone(), copy.deepcopy(given), pickle.loads(pickle.dumps(given))):
        assert (kept.format, kept.canvas_size, kept.clamping_mode) == (
            given.format,
            (20, 30),
            "hard",
        )
    other = tv_tensors.wrap(torch.ones(2, 4), like=given, canvas_size=(7, 8))
    assert other.canvas_size == (7, 8) and other.format is given.format
    assert "format=BoundingBoxFormat.XYWH, canvas_size=(20, 30)" in repr(given)
    points = tv_tensors.KeyPoints([[1, 2]], canvas_size=(4, 4))
    with tv_tensors.set_return_type("TVTensor"):
        assert (points * 2).canvas_size == (4, 4)


@pytest.mark.parametrize("call", [
    lambda: tv_tensors.Image(torch.zeros(3)),
    lambda: tv_tensors.Video(torch.zeros(3, 4, 4)),
    lambda: boxes([[[1.0, 2, 3, 4]]]),
    lambda: boxes([1, 2, 3, 4], clamping_mode="loose"),
    lambda: tv_tensors.BoundingBoxes([[1, 2, 3, 4, 5]], format="XYWHR", canvas_size=(4, 4)),
    lambda: tv_tensors.KeyPoints(torch.zeros(2, 3), canvas_size=(4, 4)),
])  # fmt: skip
def test_kinds_refuse_other_shapes(call):
    with pytest.raises(ValueError):
        call()


def test_notebooks_show_images():
    import io

    image = tv_tensors.Image(pixels(3, 6, 5))
    shown = PIL.open(io.BytesIO(image._repr_png_()))
    np.testing.assert_array_equal(np.asarray(shown), image.permute(1, 2, 0).numpy())
    assert image._repr_html_() is None
    batch = tv_tensors.Image(torch.rand(4, 3, 6, 5))
    assert batch._repr_png_() is None and "data:image/png;base64," in batch._repr_html_()
    video = tv_tensors.Video(pixels(3, 3, 6, 5))
    assert "Video, (3, 3, 6, 5)" in video._repr_html_()
    assert tv_tensors.Mask(torch.ones(6, 5, dtype=torch.bool))._repr_png_() is not None
    for other in (
        torch.rand(7, 6, 5),
        torch.zeros(3, 0, 5),
        torch.zeros(3, 4, 5, dtype=torch.int32),
    ):
        assert tv_tensors.Image(other)._repr_png_() is None


# ---- samples ----


def test_one_drawing_for_all_of_a_sample():
    """A box stays around what it was around."""
    for seed in range(20):
        torch.manual_seed(seed)
        image = torch.zeros(1, 40, 50)
        image[:, 10:20, 15:35] = 1.0
        sample = {
            "image": tv_tensors.Image(image),
            "mask": tv_tensors.Mask(image[0].to(torch.uint8)),
            "boxes": boxes([15, 10, 35, 20], size=(40, 50)),
            "label": 7,
        }
        steps = v2.Compose([
            v2.RandomResizedCrop((32, 32), scale=(0.6, 1.0), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.RandomVerticalFlip(),
            v2.RandomZoomOut(p=0.5),
        ])  # fmt: skip
        out = steps(sample)
        assert out["label"] == 7 and out["image"].shape[-2:] == out["mask"].shape
        assert out["boxes"].canvas_size == tuple(out["mask"].shape)
        rows, columns = out["mask"].nonzero(as_tuple=True)
        around = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        for found, expected in zip(numbers(out["boxes"])[0], around, strict=True):
            assert abs(found - float(expected)) <= 1.5


def test_plain_tensors_pass_beside_an_image():
    image, extra = tv_tensors.Image(torch.rand(3, 8, 8)), torch.rand(3, 8, 8)
    resized, same = v2.Resize(4)(image, extra)
    assert resized.shape == (3, 4, 4) and same is extra
    first, second = v2.Resize(4)(extra, extra.clone())
    assert first.shape == (3, 4, 4) and second.shape == (3, 8, 8)


def test_own_kinds_and_transforms():
    class Spectrum(tv_tensors.TVTensor):
        pass

    @F.register_kernel("horizontal_flip", Spectrum)
    def flip(spectrum, *args, **kwargs):
        return tv_tensors.wrap(spectrum.flip(0), like=spectrum)

    spectrum = torch.arange(3.0).as_subclass(Spectrum)
    assert numbers(v2.RandomHorizontalFlip(1.0)(spectrum)) == [2, 1, 0]
    assert type(F.horizontal_flip(spectrum)) is Spectrum
    assert v2.Resize(3)(spectrum) is spectrum  # without a kernel it passes
    with pytest.raises(TypeError, match="supports inputs of type"):
        F.resize(spectrum, 3)
    for bad in (
        ("no_such", Spectrum),
        (len, Spectrum),
        ("resize", tv_tensors.Image),
        ("resize", int),
    ):
        with pytest.raises(ValueError):
            F.register_kernel(*bad)

    class Brighter(v2.Transform):
        def make_params(self, flat_inputs):
            return {"by": float(torch.rand(()))}

        def transform(self, inpt, params):
            return self._call_kernel(F.adjust_brightness, inpt, 1 + params["by"])

    image = tv_tensors.Image(torch.full((3, 4, 4), 0.25))
    box = boxes([1, 1, 3, 3], size=(4, 4))
    out, same = Brighter()(image, box)
    assert float(out.mean()) > 0.25 and numbers(same) == numbers(box)


# ---- boxes ----


def corners(given):
    """The corners of boxes, in any format."""
    turned = tv_tensors.is_rotated_bounding_format(given.format)
    points = F.convert_bounding_box_format(given, new_format="XYXYXYXY" if turned else "XYXY")
    return torch.tensor(numbers(points)).reshape(len(given), -1, 2)


TURNED = [[4.0, 3.0, 6.0, 4.0, 25.0], [12.0, 8.0, 5.0, 7.0, -70.0], [10.0, 6.0, 8.0, 2.0, 130.0]]
STRAIGHT = [[2.0, 3.0, 9.0, 8.0], [10.0, 1.0, 16.0, 12.0]]
PLACED = [("XYXY", STRAIGHT)] + [
    (format, numbers(F.convert_bounding_box_format(torch.tensor(rows), begin, format)))
    for format, begin, rows in (
        ("XYWH", "XYXY", STRAIGHT), ("CXCYWH", "XYXY", STRAIGHT), ("CXCYWHR", "CXCYWHR", TURNED),
        ("XYWHR", "CXCYWHR", TURNED), ("XYXYXYXY", "CXCYWHR", TURNED),
    )
]  # fmt: skip


@pytest.mark.parametrize("format, rows", PLACED)
def test_formats_there_and_back(format, rows):
    given = boxes(*rows, format=format)
    others = ("XYWHR", "CXCYWHR", "XYXYXYXY") if len(rows) == 3 else ("XYXY", "XYWH", "CXCYWH")
    for other in others:
        there = F.convert_bounding_box_format(given, new_format=other)
        assert there.format.value == other
        back = F.convert_bounding_box_format(there, new_format=format)
        np.testing.assert_allclose(numbers(back), rows, atol=1e-4)


@pytest.mark.parametrize("format, rows", PLACED)
@pytest.mark.parametrize("name, move", [
    ("horizontal_flip", lambda p: (30 - p[..., 0], p[..., 1])),
    ("vertical_flip", lambda p: (p[..., 0], 20 - p[..., 1])),
])  # fmt: skip
def test_flips_of_boxes(format, rows, name, move):
    given = boxes(*rows, format=format)
    expected = torch.stack(move(corners(given)), -1).sort(1).values
    found = corners(getattr(F, name)(given)).sort(1).values
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-4)
    twice = getattr(F, name)(getattr(F, name)(given))
    np.testing.assert_allclose(
        corners(twice).sort(1).values.numpy(), corners(given).sort(1).values.numpy(), atol=1e-4
    )


@pytest.mark.parametrize("format, rows", PLACED[3:])
def test_turned_boxes_turn(format, rows):
    given = boxes(*rows, format=format, size=(40, 40), clamping_mode=None)
    turned = corners(F.rotate(given, 30.0)) - 20
    angle = math.radians(-30.0)
    x, y = (corners(given) - 20).unbind(-1)
    expected = torch.stack(
        (x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)), -1
    )
    np.testing.assert_allclose(
        turned.sort(1).values.numpy(), expected.sort(1).values.numpy(), atol=1e-3
    )


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_clamped_boxes(mode):
    straight = F.clamp_bounding_boxes(boxes([-3, 4, 40, 25]), clamping_mode=mode)
    assert numbers(straight) == [[0, 4, 30, 20]]
    turned = boxes([15.0, 10.0, 40.0, 3.0, 20.0], format="CXCYWHR", clamping_mode=mode)
    out = corners(F.clamp_bounding_boxes(turned))
    assert out[..., 0].max() < 40 and (mode == "soft" or float(out.min()) > -1e-3)
    inside = boxes([15.0, 10.0, 4.0, 3.0, 20.0], format="CXCYWHR", clamping_mode=mode)
    np.testing.assert_allclose(
        corners(F.clamp_bounding_boxes(inside)).sort(1).values.numpy(),
        corners(inside).sort(1).values.numpy(),
        atol=1e-4,
    )
    none = F.clamp_bounding_boxes(turned, clamping_mode=None)
    assert numbers(none) == numbers(turned)


def test_sanitized_samples():
    sample = {
        "boxes": boxes([1, 1, 9, 9], [3, 3, 3.5, 9], [2, 2, 40, 9]),
        "labels": torch.tensor([5, 6, 7]),
        "masks": tv_tensors.Mask(torch.zeros(3, 20, 30, dtype=torch.uint8)),
        "scene": tv_tensors.Mask(torch.zeros(20, 30, dtype=torch.uint8)),
    }
    out = v2.SanitizeBoundingBoxes()(sample)
    assert numbers(out["boxes"]) == [[1, 1, 9, 9]] and out["labels"].tolist() == [5]
    assert len(out["masks"]) == 1 and out["scene"].shape == (20, 30)
    points = tv_tensors.KeyPoints([[1.0, 1], [31, 2]], canvas_size=(20, 30))
    labels = torch.tensor([1, 2])
    kept, left = v2.SanitizeKeyPoints(lambda sample: sample[1])(points, labels)
    assert len(kept) == 1 and left.tolist() == [1]
    assert numbers(F.clamp_keypoints(points)) == [[1, 1], [29, 2]]


# ---- one implementation ----


def test_conversions_agree():
    """ToImage and ToDtype give what ToTensor gives, and v2 on plain tensors what v1 gives."""
    picture = PIL.fromarray(pixels(7, 9, 3).numpy())
    new = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()])
    assert type(new(picture)) is torch.Tensor
    assert torch.equal(new(picture), transforms.ToTensor()(picture))
    for name, arguments in (("RandomAffine", (30, (0.1, 0.1), (0.5, 1.5), 10)), ("RandomErasing", (1.0,)), ("ElasticTransform", (50.0, 2.0))):  # fmt: skip
        image = torch.rand(3, 20, 24)
        results = []
        for package in (transforms, v2):
            torch.manual_seed(0)
            results.append(getattr(package, name)(*arguments)(image))
        assert torch.equal(*results)


def test_patches_are_as_high_as_their_ratio_says():
    torch.manual_seed(0)
    for package in (transforms, v2):
        out = package.RandomErasing(1.0, ratio=(8.0, 9.0), value=1.0)(torch.zeros(1, 60, 60))
        rows, columns = out[0].nonzero(as_tuple=True)
        assert int(rows.max() - rows.min()) > 3 * int(columns.max() - columns.min())


def test_dtypes_by_kind():
    sample = (tv_tensors.Image(pixels(3, 4, 4)), tv_tensors.Mask(pixels(4, 4)), boxes([1, 1, 2, 2]))
    kinds = {tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}
    image, mask, same = v2.ToDtype(kinds, scale=True)(*sample)
    assert image.dtype is torch.float32 and float(image.max()) <= 1.0
    assert mask.dtype is torch.int64 and same is sample[2]
    with pytest.raises(ValueError, match="No dtype was specified"):
        v2.ToDtype({tv_tensors.Image: torch.float32})(*sample)
    deep = tv_tensors.Image(torch.tensor([[[0, 65535]]]).to(torch.uint16))
    assert numbers(F.to_dtype(deep, torch.float32, scale=True)) == [[[0.0, 1.0]]]


def test_mixed_batches_keep_their_weight():
    images, labels = torch.rand(4, 3, 8, 10), torch.tensor([0, 1, 2, 1])
    for transform in (v2.MixUp(num_classes=3), v2.CutMix(num_classes=3)):
        mixed, shares = transform(images, labels)
        assert mixed.shape == images.shape and shares.shape == (4, 3)
        np.testing.assert_allclose(shares.sum(1).numpy(), 1.0, rtol=1e-6)
        whole = transform((images, {"label": torch.eye(3)[labels]}))[1]["label"]
        np.testing.assert_allclose(whole.sum(1).numpy(), 1.0, rtol=1e-6)
    for bad in ((images, [0, 1]), (images, labels[:, None, None]), (images[0], labels)):
        with pytest.raises(ValueError):
            v2.MixUp(num_classes=3)(*bad)


def test_jpeg_of_tensors_and_pictures():
    image = torch.nn.functional.interpolate(
        torch.rand(1, 3, 4, 4) * 255, size=(32, 32), mode="bilinear"
    )
    image = image[0].to(torch.uint8)
    rough, fine = (v2.JPEG(quality)(tv_tensors.Image(image)) for quality in (1, 100))
    errors = [(out.float() - image.float()).abs().mean() for out in (rough, fine)]
    assert errors[0] > errors[1] and float(errors[1]) < 8
    picture = v2.JPEG((20, 30))(PIL.fromarray(image.permute(1, 2, 0).numpy()))
    assert picture.size == (32, 32)
    video = v2.JPEG(50)(tv_tensors.Video(image.expand(2, 3, 32, 32).contiguous()))
    assert type(video) is tv_tensors.Video and video.shape == (2, 3, 32, 32)


def test_quarters_of_a_turn_mix_no_pixels():
    image = pixels(3, 5, 8)
    for quarters in range(4):
        turned = F.rotate(image, 90.0 * quarters, expand=True)
        assert torch.equal(turned, image.rot90(quarters, (-2, -1)))


def test_vector_fills():
    image = tv_tensors.Image(torch.zeros(3, 4, 4))
    out = v2.Pad([1, 0, 2, 1], fill={tv_tensors.Image: [0.1, 0.2, 0.3]})(image)
    assert out.shape == (3, 5, 7)
    np.testing.assert_allclose(out[:, -1, 0].numpy(), [0.1, 0.2, 0.3])
    assert float(out[:, :4, 1:5].abs().sum()) == 0.0


# ---- contact sheets ----


def test_contact_sheets(tmp_path, capsys, monkeypatch):
    from rushlight.__main__ import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "in" / "deep").mkdir(parents=True)
    PIL.new("RGB", (40, 20), (255, 0, 0)).save(tmp_path / "in" / "a.png")
    PIL.new("L", (10, 30), 0).save(tmp_path / "in" / "deep" / ("b" * 80 + ".jpg"))
    (tmp_path / "in" / "broken.png").write_bytes(b"no image")
    (tmp_path / "in" / "notes.txt").write_text("no image either")
    assert main(["vision", "show", "in", "--width", "32", "--columns", "3"]) == 0
    assert "3 images on sheet.png" in capsys.readouterr().out
    with PIL.open("sheet.png") as sheet:
        assert sheet.size == (3 * 40 + 8, 32 + 2 * 14 + 2 * 8)
        assert sheet.getpixel((24, 24)) == (255, 0, 0)
    assert main(["vision", "show", "in/a.png", "in/a.png", "--out", "one.png", "--most", "1"]) == 0
    assert "1 more" in capsys.readouterr().out
    for bad in (["nowhere"], ["in", "--width", "2"], []):
        assert main(["vision", "show", *bad]) != 0
    (tmp_path / "empty").mkdir()
    assert main(["vision", "show", "empty"]) == 1
    assert "no images" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_pictures_are_resized_to_pillows_pixels(mode):
    random = np.random.default_rng(0)
    resize = transforms.functional.resize
    how = transforms.InterpolationMode(mode)
    taken = 0
    for i in range(120):
        height, width, *size = random.integers(1, (300, 12)[i % 2], 4).tolist()
        array = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
        array = array if i % 3 else array[..., 0] // 128 * 255
        picture = PIL.fromarray(array)
        picture.info["dpi"] = (1, 2)
        found = resize(picture, size, how)
        expected = picture.resize(size[::-1], PIL.Resampling[mode.upper()])
        assert (found.mode, found.size, found.info) == (expected.mode, expected.size, picture.info)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
        taken += _pictures.pixels_of(picture) is not None
    assert taken in (0, 120)  # none where Pillow cannot tell where its pixels lie
    assert _pictures.pixels_of(PIL.new("RGBA", (3, 2))) is None
    several = PIL.new("RGB", (5000, 4000))  # blocks
    assert resize(several, [4, 5], how).size == (5, 4)
    with pytest.raises(ValueError):
        picture.resize((0, 3))


def test_pixels_stay_while_they_are_seen():
    picture = PIL.new("RGB", (3, 2), (1, 2, 3))
    pixels = _pictures.pixels_of(picture)
    if pixels is None:
        pytest.skip("this Pillow cannot tell where its pixels lie")
    assert pixels.shape == (2, 3, 4)
    schema, array = picture.__arrow_c_array__()
    again = torch._C._pixels(schema, array, 2, 3)
    with pytest.raises(ValueError, match="taken before"):
        torch._C._pixels(schema, array, 2, 3)
    for height, width in ((3, 3), (0, 3), (2, -3), (6, 4)):
        with pytest.raises(ValueError, match="not the bytes of a picture"):
            torch._C._pixels(*picture.__arrow_c_array__(), height, width)
    with pytest.raises(ValueError, match="format 'i'"):
        torch._C._pixels(*PIL.new("I", (3, 2)).__arrow_c_array__(), 2, 3)
    with pytest.raises((ValueError, TypeError)):
        torch._C._pixels(1, 2, 2, 3)
    del picture, schema, array
    assert pixels[..., :3].tolist() == again[..., :3].tolist() == [[[1, 2, 3]] * 3] * 2


CORNERS = [[0, 0], [15, 0], [15, 15], [0, 15]], [[1, 1], [14, 0], [15, 15], [0, 13]]
BOTH_VERSIONS = {
    "adjust_brightness": (1.3,),
    "adjust_contrast": (0.7,),
    "adjust_gamma": (1.4,),
    "adjust_hue": (0.2,),
    "adjust_saturation": (1.5,),
    "adjust_sharpness": (2.0,),
    "affine": (10.0, [1, 2], 1.1, [3.0, 0.0]),
    "autocontrast": (),
    "center_crop": ([8, 8],),
    "crop": (1, 2, 8, 9),
    "equalize": (),
    "five_crop": ([8, 8],),
    "gaussian_blur": ([3, 3],),
    "get_dimensions": (),
    "get_image_size": (),
    "get_image_num_channels": (),
    "hflip": (),
    "invert": (),
    "pad": ([1, 2],),
    "perspective": CORNERS,
    "posterize": (3,),
    "resize": ([8, 9],),
    "resized_crop": (1, 2, 8, 9, [5, 6]),
    "rgb_to_grayscale": (),
    "rotate": (30.0,),
    "solarize": (100,),
    "ten_crop": ([8, 8],),
    "vflip": (),
}


@pytest.mark.parametrize("name", BOTH_VERSIONS)
@pytest.mark.parametrize("kind", ["tensor", "picture"])
def test_both_versions_do_the_same(name, kind):
    """Functions on images of `transforms.functional` and of `v2.functional`, which rounds once in `resize`."""
    image = torch.randint(0, 256, (3, 16, 16), dtype=torch.uint8)
    if kind == "picture":
        image = transforms.functional.to_pil_image(image)
    first = getattr(transforms.functional, name)(image, *BOTH_VERSIONS[name])
    second = getattr(v2.functional, name)(image, *BOTH_VERSIONS[name])

    def plain(result):
        if isinstance(result, (list, tuple)):
            return [plain(one) for one in result]
        return (
            result
            if isinstance(result, (int, torch.Tensor))
            else v2.functional.pil_to_tensor(result)
        )

    torch.testing.assert_close(plain(second), plain(first), rtol=0, atol=1)
