"""Each public module of torchvision can be imported under the alias and holds what it holds there:
functions and classes with the same arguments, names, order and defaults, and classes with the same
methods.
"""

import importlib
import json
import pkgutil
import subprocess
import sys
from typing import TypeVar

from tests.parity import torchvision as oracle
from tests.parity.signatures import described

torchvision = oracle.load()

# What others have no use for: branches of traced scripts, a loader of a package that is not offered
# any more, a cache that nothing reads, and the one that wants quantised arithmetic.
MISSING = {
    "datasets.celeba.CSV",
    "datasets.folder.accimage_loader",
    "models.detection.roi_heads.expand_masks_tracing_scale",
    "models.quantization.utils.quantize_model",
    "ops.roi_align.lazy_compile",
    "ops.roi_align.maybe_cast",
}
MISSING_MEMBERS = {"datasets.phototour.PhotoTour.cache"}
# Under its float form's name of the argument.
OTHERS = {"models.quantization.mobilenetv3.QuantizableInvertedResidual.forward"}


def modules():
    for info in pkgutil.walk_packages(torchvision.__path__, "torchvision.", lambda name: None):
        compiled = info.name == "torchvision.image"
        if not compiled and not any(part.startswith("_") for part in info.name.split(".")):
            yield info.name


def own_names(name):
    try:
        module = importlib.import_module(name)
    except ImportError:
        return []
    own = (n for n, value in vars(module).items() if getattr(value, "__module__", "") == name)
    return [n for n in own if not n.startswith("_") and not isinstance(vars(module)[n], TypeVar)]


def anything(arguments):
    """Whether they are `*args, **kwargs`, which say nothing."""
    return [kind for _, kind, _ in arguments] == ["VAR_POSITIONAL", "VAR_KEYWORD"]


def differ(theirs, ours):
    if not isinstance(theirs, list) or anything(theirs):
        return False
    return theirs != ours


PROGRAM = """
import rushlight.as_torch, json, sys, torchvision
from tests.parity.signatures import described
print(json.dumps(described(json.load(sys.stdin))))
import torchvision.ops.focal_loss as f
from torchvision.ops.roi_align import roi_align
assert callable(torchvision.ops.roi_align) and torchvision.ops.roi_align is roi_align
assert f.sigmoid_focal_loss is torchvision.ops.sigmoid_focal_loss
"""


def test_names_and_arguments():
    wanted = {name: own_names(name) for name in modules()}
    assert len(wanted) > 120 and sum(map(len, wanted.values())) > 650
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(wanted), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    ours = json.loads(done.stdout)
    missing, members, others = set(), set(), set()
    count = 0
    for name, theirs in described(wanted).items():
        own, short = ours[name], name.removeprefix("torchvision.")
        if own is None:
            missing.add(short)
            continue
        if differ(theirs["arguments"], own["arguments"]):
            others.add(short)
        for member, arguments in theirs.get("members", {}).items():
            count += 1
            if member not in own["members"]:
                members.add(f"{short}.{member}")
            elif differ(arguments, own["members"][member]):
                others.add(f"{short}.{member}")
    assert count > 1400
    assert (missing, members, others) == (MISSING, MISSING_MEMBERS, OTHERS)
