"""Bad input to every function and class of transforms, ops, utils and io: where torchvision raises, so do we, an error of its type
and in words of our own.

A call is made of a good value for each parameter, by its name; then each in turn is a bad one.
"""

import builtins
import importlib
import inspect
import re

import pytest

from tests.parity import torchvision as oracle
from tests.parity.outcomes import Worker
from tests.parity.test_error_texts import sentences

torch = pytest.importorskip("torch")
torchvision = oracle.load()
COMPILED = oracle.compiled("_C.so", "image.so")

CORNERS = "m.tensor([[1., 2, 5, 6], [0, 0, 3, 3]])"
# Good values by names of parameters, of whatever function; those of some functions stand apart.
GOOD = {
    **dict.fromkeys(("img", "inpt", "image", "tensor"), "image(3, 8, 9)"),
    **dict.fromkeys(("pic",), "picture('RGB')"),
    "video": "image(2, 3, 8, 9)",
    "mask": "image(8, 9)",
    **dict.fromkeys(("bounding_boxes", "bounding_box"), CORNERS),
    **dict.fromkeys(("keypoints", "key_points"), "m.tensor([[1., 2], [5, 6]])"),
    **dict.fromkeys(("format", "old_format"), "K.BoundingBoxFormat.XYXY"),
    "new_format": "K.BoundingBoxFormat.XYWH",
    "canvas_size": "(8, 9)",
    "clamping_mode": "'soft'",
    **dict.fromkeys(
        ("brightness_factor", "contrast_factor", "saturation_factor", "sharpness_factor"), "0.5"
    ),
    **dict.fromkeys(("hue_factor",), "0.1"),
    **dict.fromkeys(("gamma", "gain"), "1.5"),
    **dict.fromkeys(("angle",), "20.0"),
    **dict.fromkeys(("translate",), "[1, 2]"),
    **dict.fromkeys(("scale",), "1.2"),
    **dict.fromkeys(("shear",), "[5.0, 3.0]"),
    "interpolation": "I.BILINEAR",
    **dict.fromkeys(("fill", "center", "max_size", "coefficients"), "None"),
    **dict.fromkeys(("size", "output_size"), "[4, 5]"),
    **dict.fromkeys(("top", "left", "i", "j"), "1"),
    **dict.fromkeys(("height", "width", "h", "w"), "4"),
    "v": "m.tensor(1)",
    **dict.fromkeys(
        ("inplace", "expand", "vertical_flip", "clip", "normalize", "scale_each"), "False"
    ),
    "antialias": "True",
    "dtype": "m.float32",
    "displacement": "m.zeros(1, 8, 9, 2)",
    **dict.fromkeys(("kernel_size",), "3"),
    "sigma": "0.8",
    "mean": "[0.5]",
    "std": "[0.5]",
    "padding": "2",
    "padding_mode": "'constant'",
    "startpoints": "[[0, 0], [8, 0], [8, 7], [0, 7]]",
    "endpoints": "[[1, 0], [7, 1], [8, 6], [0, 7]]",
    "bits": "3",
    "num_output_channels": "3",
    "threshold": "100",
    "mode": "None",
    "permutation": "[2, 1, 0]",
    "quality": "50",
    "num_samples": "1",
    "min_size": "1.0",
    "min_area": "1.0",
    # ops
    **dict.fromkeys(("boxes", "boxes1", "boxes2"), CORNERS),
    "scores": "m.tensor([0.3, 0.6])",
    "idxs": "m.tensor([0, 1])",
    "iou_threshold": "0.5",
    **dict.fromkeys(("fmt", "in_fmt"), "'xyxy'"),
    "out_fmt": "'xywh'",
    "eps": "1e-7",
    "reduction": "'mean'",
    "input": "m.ones(2, 8, 6, 5)",
    "offset": "m.zeros(2, 8, 5, 4)",
    "weight": "m.ones(2, 8, 2, 2)",
    "bias": "m.ones(2)",
    "stride": "1",
    "dilation": "1",
    "p": "0.5",
    "block_size": "3",
    "training": "True",
    "masks": "m.ones(2, 8, 9) > 0",
    "spatial_scale": "1.0",
    "sampling_ratio": "2",
    "aligned": "True",
    **dict.fromkeys(("inputs", "targets"), "m.ones(2, 3)"),
    "alpha": "0.25",
    "policy": "T.AutoAugmentPolicy.IMAGENET",
    # utils
    "nrow": "2",
    "pad_value": "0.5",
    "value_range": "None",
    "labels": "['a', 'b']",
    **dict.fromkeys(
        ("colors", "font", "font_size", "label_colors", "label_background_colors"), "None"
    ),
    **dict.fromkeys(("fill_labels",), "False"),
    "connectivity": "[(0, 1)]",
    "radius": "2",
    "visibility": "None",
    "flow": "m.ones(2, 8, 9)",
    # io
    "compression_level": "6",
    "device": "'cpu'",
    "apply_exif_orientation": "False",
}
ROIS = "m.tensor([[0., 1, 2, 5, 6], [1, 0, 0, 3, 3]])"
OF_FUNCTION = {
    **{
        ("O", name): {"boxes": ROIS}
        for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool")
    },
    **{
        ("G", name): {"inpt": CORNERS}
        for name in ("clamp_bounding_boxes", "convert_bounding_box_format")
    },
    ("G", "clamp_keypoints"): {"inpt": "m.tensor([[1., 2], [5, 6]])"},
    ("G", "center_crop_keypoints"): {"inpt": "m.tensor([[1., 2], [5, 6]])"},
    ("O", "deform_conv2d"): {"padding": "0", "mask": "m.ones(2, 4, 5, 4)"},
    ("O", "stochastic_depth"): {"mode": "'row'"},
    ("O", "drop_block3d"): {"input": "m.ones(1, 2, 8, 6, 5)"},
    ("O", "clip_boxes_to_image"): {"size": "(4, 5)"},
    ("U", "make_grid"): {"tensor": "m.ones(3, 3, 8, 9)"},
    ("U", "draw_bounding_boxes"): {"width": "1", "fill": "False"},
    ("U", "draw_keypoints"): {"width": "3", "keypoints": "m.tensor([[[1., 2], [5, 6]]])"},
    **{
        ("X", f"decode_{kind}"): {"input": f"file('{kind}')", "mode": "X.ImageReadMode.UNCHANGED"}
        for kind in ("png", "jpeg", "gif", "webp")
    },
    **{
        (short, name): {"transforms": "[V.RandomGrayscale()]"}
        for short in "TV"
        for name in ("Compose", "RandomApply", "RandomChoice", "RandomOrder")
    },
    **{
        (short, "LinearTransformation"): {
            "transformation_matrix": "m.eye(216)",
            "mean_vector": "m.zeros(216)",
        }
        for short in "TV"
    },
    **{
        (short, "ElasticTransform"): {"alpha": "5.0", "sigma": "2.0", "fill": "0"} for short in "TV"
    },
    **{(short, "Lambda"): {"lambd": "abs"} for short in "TV"},
    **{(short, "RandomAffine"): {"degrees": "20", "translate": "(0.1, 0.2)"} for short in "TV"},
    **{(short, "RandomRotation"): {"degrees": "20"} for short in "TV"},
    ("V", "RandomResize"): {"min_size": "4", "max_size": "8"},
    ("V", "RandomShortestSize"): {"min_size": "4"},
    ("V", "ScaleJitter"): {"target_size": "(4, 5)"},
    ("X", "decode_image"): {"input": "file('png')", "mode": "X.ImageReadMode.UNCHANGED"},
    **{("X", f"encode_{kind}"): {"input": "image(3, 8, 9)"} for kind in ("png", "jpeg")},
}
BAD = [
    *(
        "None",
        "'a'",
        "b'a'",
        "2.5",
        "-1",
        "0",
        "1",
        "5",
        "99",
        "2**40",
        "-2**40",
        "2**62",
        "2**70",
        "nan",
        "inf",
    ),
    *(
        "True",
        "[]",
        "()",
        "{}",
        "[1]",
        "[0, 0]",
        "[-1, 3]",
        "[2**40, 2**40]",
        "[1, 2, 3]",
        "[nan, nan]",
    ),
    *(
        "['a', 'b']",
        "[None, None]",
        "object()",
        "m.tensor(2)",
        "m.ones(2)",
        "m.ones(0)",
        "m.float32",
        "I.LANCZOS",
    ),
    *("I.BICUBIC", "1j", "[[1, 2]] * 4", "(3, 2.5)"),
]
IMAGES = [
    *(
        "image(8, 9)",
        "image(9)",
        "image()",
        "image(0)",
        "image(1, 8, 9)",
        "image(2, 8, 9)",
        "image(5, 8, 9)",
    ),
    *("image(3, 0, 9)", "image(3, 8, 0)", "image(0, 8, 9)", "image(0, 3, 8, 9)", "image(3, 1, 1)"),
    *(
        "image(3, 8, 9, dtype='float32')",
        "image(3, 8, 9, dtype='int64')",
        "image(3, 8, 9, dtype='bool')",
    ),
    *(
        "image(3, 8, 9, dtype='complex64')",
        "image(3, 8, 9, dtype='float32') * nan",
        "image(2, 2, 3, 8, 9)",
    ),
    *(
        "np.zeros((8, 9, 3), 'uint8')",
        "np.zeros((8, 9, 3), 'float64')",
        "np.zeros(3)",
        "np.zeros((0, 0, 3), 'uint8')",
    ),
    *(
        f"picture('{mode}')"
        for mode in ("RGB", "L", "1", "P", "LA", "RGBA", "CMYK", "I", "F", "HSV", "I;16")
    ),
    *("picture('RGB', 0, 0)", "picture('L', 1, 1)", "picture('RGB', 0, 5)"),
    *("K.Image(image(3, 8, 9))", "K.Video(image(2, 3, 8, 9))", "K.Mask(image(8, 9))"),
    "K.BoundingBoxes([[1., 2, 5, 6]], format='XYXY', canvas_size=(8, 9))",
    "K.BoundingBoxes([[1., 2, 5, 6, 30]], format='XYWHR', canvas_size=(8, 9))",
    "K.KeyPoints([[1., 2]], canvas_size=(8, 9))",
]
BOXES = [
    *(
        "m.zeros(0, 4)",
        "m.zeros(0)",
        "m.ones(4)",
        "m.ones(2, 3)",
        "m.ones(2, 5)",
        "m.ones(2, 8)",
        "m.ones(1, 2, 4)",
        "m.ones(5, 4)",
    ),
    *(
        "m.tensor([[5., 6, 1, 2]])",
        "m.tensor([[nan, 2, 5, 6], [0, 0, 3, inf]])",
        "m.ones(2, 4).long()",
    ),
    *(
        "m.ones(2, 4).bool()",
        "m.ones(2, 4).half()",
        "m.ones(2, 4).double()",
        "m.ones(2, 4) * 1j",
        "m.ones(2, 4).to(m.uint8)",
    ),
    *(
        "m.tensor([[1e30, 1e30, 2e30, 2e30], [-1e30, 0, 1, 1]])",
        "[m.ones(2, 4)]",
        "[m.ones(2, 4), m.ones(1, 4)]",
        "[m.ones(2, 3)]",
    ),
]
TENSORS = [
    *(
        "m.ones(2, 8, 6, 5).double()",
        "m.ones(2, 8, 6, 5).long()",
        "m.ones(2, 8, 6, 5).half()",
        "m.ones(0, 8, 6, 5)",
    ),
    *(
        "m.ones(2, 0, 6, 5)",
        "m.ones(2, 8, 0, 5)",
        "m.ones(2, 8, 6, 5) * nan",
        "m.ones(2, 3, 6, 5)",
        "m.ones(8, 6, 5)",
    ),
    *(
        "m.ones(2, 3)",
        "m.ones(2, 3).long()",
        "m.ones(0, 3)",
        "m.ones(3, 2)",
        "m.ones(2, 8, 9) > 2",
        "m.ones(0, 8, 9) > 0",
    ),
    *(
        "m.ones(1, 8, 9, 2).long()",
        "m.full((1, 8, 9, 2), nan)",
        "m.ones(1, 8, 9, 3)",
        "m.ones(1, 4, 9, 2)",
    ),
]
FILES = [
    *(
        "m.ones(0, dtype=m.uint8)",
        "m.ones(9, dtype=m.uint8)",
        "m.ones(9)",
        "m.ones(3, 3, dtype=m.uint8)",
        "[]",
        "[1]",
    ),
    *(f"file('{kind}')" for kind in ("png", "jpeg", "gif", "webp")),
    *(
        f"file('{kind}')[:{n}]"
        for kind in ("png", "jpeg", "gif", "webp")
        for n in (4, 20, 60, 200, -20, -1)
    ),
    *(
        "file('png')[1:]",
        "file('jpeg', 'CMYK')",
        "file('png', '1')",
        "file('png', 'P')",
        "file('png', 'LA')",
        "file('png', 'RGBA')",
    ),
    *(
        "file('png', 'I;16')",
        "file('jpeg', 'L')",
        "file('png').flip(0)",
        "file('jpeg')[::2]",
        "[file('jpeg'), file('jpeg')]",
    ),
]
FIRST = {
    **dict.fromkeys(("img", "inpt", "image", "tensor", "pic", "video", "mask"), IMAGES),
    **dict.fromkeys(
        ("bounding_boxes", "keypoints", "key_points", "boxes", "boxes1", "boxes2"), BOXES
    ),
    **dict.fromkeys(
        ("input", "inputs", "targets", "offset", "weight", "masks", "displacement", "visibility"),
        TENSORS,
    ),
}
# Programs ask for these in other ways, or there is nothing to ask.
APART = {
    "F": {"functional"},
    "G": {"register_kernel", "is_pure_tensor"},
    "X": {
        "decode_avif",
        "decode_heic",
        "decode_jpeg_list",
        "read_video",
        "read_video_timestamps",
        "write_video",
    }
    | {"read_file", "read_image", "write_file", "write_jpeg", "write_png"},
    "U": {"save_image"},
    "O": set(),
    "T": {"AugMix", "AutoAugmentPolicy", "InterpolationMode", "RandomTransforms"},
    "V": {"AugMix", "AutoAugmentPolicy", "InterpolationMode", "Transform"},
}
MODULES = {
    "F": "transforms.functional",
    "G": "transforms.v2.functional",
    "O": "ops",
    "U": "utils",
    "X": "io",
    "T": "transforms",
    "V": "transforms.v2",
}
CLASSES = "TV"  # where classes are called, and what they make


def functions(short):
    """Names of the functions of a module, ours, or of its classes."""
    module = importlib.import_module(f"rushlight.vision.{MODULES[short]}")
    names = getattr(module, "__all__", None) or dir(module)
    is_kind = inspect.isclass if short in CLASSES else inspect.isfunction
    return [
        name
        for name in sorted(names)
        if is_kind(getattr(module, name)) and name[0] != "_" and name not in APART[short]
    ]


def parameters(short, name):
    """Good values of a function's parameters."""
    module = importlib.import_module(f"rushlight.vision.{MODULES[short]}")
    own = OF_FUNCTION.get((short, name), {})
    found = inspect.signature(getattr(module, name)).parameters
    if short in CLASSES:
        defaults = {
            p: GOOD.get(p, repr(v.default)) for p, v in found.items() if v.kind != v.VAR_POSITIONAL
        }
        return defaults | own
    return {p: own.get(p) or GOOD[p] for p in found}


def call(short, name, values):
    text = f"{short}.{name}({', '.join(f'{k}={v}' for k, v in values.items())})"
    return f"{text}(image(3, 8, 9))" if short in CLASSES else text


def calls(short, name):
    """Calls, each with the value that is bad."""
    good = parameters(short, name)
    yield call(short, name, good), ""
    first = next(iter(good), None)
    subjects = ["picture('RGB')"] if short == "F" and first == "img" else []
    for parameter in good:
        more = FIRST.get(parameter, [])
        if short == "X" and parameter == "input":
            more = FILES
        for bad in (*BAD, *more):
            if short in CLASSES and "**" in bad:
                continue  # memory for huge pictures, which the functions are asked for
            yield call(short, name, good | {parameter: bad}), bad
            if parameter != first:
                for subject in subjects:
                    yield call(short, name, good | {first: subject, parameter: bad}), bad


BROKEN = ("crash", "hang", "end")  # of the process
# Errors of torchvision's that are no word about the input, but whatever failed in the middle.
ACCIDENTS = ("AttributeError", "KeyError", "IndexError", "ZeroDivisionError", "UnboundLocalError")
SAID = ("TypeError", "ValueError", "RuntimeError", "IndexError", "KeyError", "OverflowError")
SAID += ("NotImplementedError", "AssertionError", "OSError")
# No number, size or name at all: whether that is a TypeError or a ValueError hangs on what sees it first.
STRANGE = (
    "'a'",
    "b'a'",
    "{}",
    "[]",
    "()",
    "object()",
    "['a', 'b']",
    "[None, None]",
    "[[1, 2]] * 4",
)
STRANGE += ("1j", "m.float32", "I.LANCZOS", "I.BICUBIC", "m.ones(2)", "m.ones(0)")
# Images without channels or pixels, and with more or fewer dimensions.
SHAPES = (*IMAGES[:11], *(f"image({shape})" for shape in ("3, 1, 1", "2, 2, 3, 8, 9")))
SHAPES += ("picture('RGB', 0, 0)", "picture('RGB', 0, 5)")
SHAPES += ("m.tensor(2)", "m.ones(2)", "m.ones(0)", "image(3, 8, 9, dtype='complex64')")
SHAPES += tuple(image for image in IMAGES if image.startswith("K."))
# Where ours is another answer on purpose: calls in which these are found, and why.
OTHERWISE = {
    r"^G\.\w+_(image|video|mask)\(\w+=(picture|np)": "kernels of images take pictures, too",
    r"^G\.(clamp|convert)_.*inpt=(image|m\.ones\(4)": "images are no boxes",
    r"fill=": "fills of other types and counts are refused alike by all transforms",
    r"interpolation=[15],|size=\[1, 2, 3\]": "modes for pictures and three sizes are refused",
    r"2\*\*70": "what is beyond 64 bits",
    r"canvas_size=(\[1|m\.|\[\[|None)": "canvases of one or three numbers",
    r"apply_exif_orientation=": "flags are what Python takes them for",
    r"nms.*half|_loss.*double|focal.*long|(half|1j|bool).*(format|canvas_size)=": "more dtypes",
    r"gif'\)\[:-1\]": "a GIF may lack its last byte",
    r"draw_keypoints.*colors=|draw_segmentation_masks.*colors=\[(2|nan)": "a colour for each thing",
    r"sigma=nan": "a spread that is no number is a wrong value",
    r"adjust_gamma.*gain=1j|to_dtype.*dtype=m.tensor|convert_image_dtype.*dtype=": "no dtype, no number",
    r"png', 'P'|device=": "colours of palettes, and devices by number or name",
}


def kind(answer):
    """The type of an error, or None; there is too little memory for both."""
    return {"OutOfMemoryError": "RuntimeError"}.get(answer.get("error"), answer.get("error"))


def is_a(name, base):
    """Whether a built-in error is one of another's kind."""
    one, other = (getattr(builtins, n, None) for n in (name, base))
    return name == base or (one is not None and other is not None and issubclass(one, other))


def verdict(call, bad, theirs, ours):
    """What is wrong, in words, or None."""
    expected, found = kind(theirs), kind(ours)
    said = f"{call}: {theirs} but {ours}"
    free = bad in SHAPES or any(re.search(pattern, call) for pattern in OTHERWISE)
    if found == expected is not None and not found.startswith(BROKEN):
        return None
    if found is not None and found not in SAID and not (free and found == "AttributeError"):
        return said
    if free or (expected is not None and expected.startswith(BROKEN)):
        return None
    if expected is None and found is None:
        same = theirs == ours or call.startswith("X.encode")  # files of other lengths
        return None if same else said
    if expected is None:  # torchvision makes something of it, we say that it is wrong
        return None
    if "INTERNAL ASSERT" in theirs["said"]:
        return None
    if found is None:
        return said
    strange = bad in STRANGE or expected in ACCIDENTS
    return None if strange or is_a(found, expected) else said


@pytest.fixture(scope="module")
def workers():
    both = Worker("torch"), Worker("rushlight")
    yield both
    for worker in both:
        worker.close()


@pytest.mark.parametrize("short", MODULES)
def test_bad_input(short, workers):
    if short in "OX" and not COMPILED:
        pytest.skip("torchvision's compiled part does not load")
    wrong, refusals = [], []
    for name in functions(short):
        if "jpeg" in name.lower() and not COMPILED:
            continue
        texts, bad = zip(*calls(short, name), strict=True)
        answers = [worker(texts) for worker in workers]
        cases = list(zip(texts, bad, *answers, strict=True))
        wrong += [w for case in cases if (w := verdict(*case))]
        refusals += [
            (name, text, ours["said"], theirs["said"])
            for text, _, theirs, ours in cases
            if "said" in theirs and "said" in ours
        ]
    assert not wrong, f"{len(wrong)} of them:\n" + "\n".join(wrong[:50])
    assert refusals
    assert not sentences(refusals)


PATHS = ["None", "0", "-1", "2.5", "[]", "'/none/a'", "'/'", "''", "'a\\0b'", "object()"]
FILE_CALLS = [
    *(f"X.{function}({path})" for function in ("read_file", "read_image") for path in PATHS),
    *(f"X.write_file({path}, m.ones(3, dtype=m.uint8))" for path in ("'/none/a'", "'/'", "''")),
    *(f"X.write_file('/none/a', {data})" for data in ("None", "m.ones(3)", "m.ones(2, 2).byte()")),
    *(f"X.write_{kind}(image(3, 8, 9), '/none/a')" for kind in ("png", "jpeg")),
    *(f"X.write_{kind}({image}, '/tmp/none')" for kind in ("png", "jpeg") for image in TENSORS[:8]),
]


@pytest.mark.skipif(not COMPILED, reason="torchvision's compiled part does not load")
def test_files(workers):
    wrong = []
    for text, theirs, ours in zip(FILE_CALLS, *(w(FILE_CALLS) for w in workers), strict=True):
        if not kind(theirs) or kind(ours) != "RuntimeError":
            wrong.append(f"{text}: {theirs} but {ours}")
    assert not wrong, "\n".join(wrong)
