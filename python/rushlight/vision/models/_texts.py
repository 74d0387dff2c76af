"""Docstrings of the functions that make models, and of the enumerations of their weights.

All of them are one description with the facts of weights.json put in.
"""

from typing import Any

# What goes in and what comes out, by the transform that the weights of a model ask for.
_TASKS = {
    "ImageClassification": "Takes images (N, 3, H, W) and returns scores of classes "
    "(N, num_classes).",
    "SemanticSegmentation": 'Takes images (N, 3, H, W) and returns a dict whose "out" has scores '
    "of classes for each pixel, (N, num_classes, H, W).",
    "ObjectDetection": "Takes a list of images (3, H, W) and returns for each a dict of what was "
    "found; in training it takes a list of targets as well and returns losses.",
    "OpticalFlow": "Takes two frames (N, 3, H, W) and returns a list of ever better flows "
    "(N, 2, H, W), in pixels.",
    "VideoClassification": "Takes clips (N, 3, T, H, W) and returns scores of classes "
    "(N, num_classes).",
}
_ARGUMENTS = {
    "weights": "trained weights to load: a member of {enum} or its name; None leaves the drawn "
    "ones. They are downloaded once and then kept (`hub.get_dir`).",
    "progress": "whether a download shows how far it is.",
    "num_classes": "the number of classes; that of the weights where some are loaded.",
    "weights_backbone": "trained weights of the network below, where `weights` is None; None "
    "draws them, and then nothing is downloaded.",
    "trainable_backbone_layers": "how many of the last stages of the network below are trained; "
    "those before keep their weights. None is the usual number.",
    "num_keypoints": "the number of points of a thing; that of the weights where some are loaded.",
    "norm_layer": "makes a normalisation; None: the usual one.",
    "aux_loss": "whether a second head is trained on an earlier stage; its scores are called "
    '"aux". None decides by the weights.',
    "kwargs": "what {model} takes beside what this function gives it.",
}


def _entry(name: str, facts: dict[str, Any]) -> str:
    """The line of one member: its size, its work and how good it is."""
    meta = facts["meta"]
    parameters = meta.get("num_params")
    said = [f"{parameters:,} parameters"] if parameters is not None else []
    if "_file_size" in meta:
        said.append(f"a file of {meta['_file_size']} MB")
    if meta.get("_ops"):
        said.append(f"{meta['_ops']} billion operations for an input")
    metrics = [
        f"{data}: " + ", ".join(f"{metric} {value}" for metric, value in of.items())
        for data, of in meta.get("_metrics", {}).items()
    ]
    return f"    {name}: " + "; ".join([", ".join(said), *metrics]) + "."


def of_weights(name: str, module: str, entries: dict[str, Any]) -> str:
    """The docstring of an enumeration, by its part of weights.json."""
    lines = [
        f"    {member}: another name of {facts}."
        if isinstance(facts, str)
        else _entry(member, facts)
        for member, facts in entries.items()
    ]
    package = module.rpartition(".")[0].removeprefix("rushlight.")
    best = entries["DEFAULT"]
    return "\n".join(
        [
            f"The trained weights that there are for {name.removesuffix('_Weights')}.",
            "",
            "A member has `url`, `transforms()`, which makes the input of an image, `meta`, a dict",
            "of what is known, and `get_state_dict()`, which downloads.",
            "",
            "Members:",
            *lines,
            "",
            "Example:",
            f"    >>> weights = torch.{package}.{name}.DEFAULT",
            "    >>> weights",
            f"    {name}.{best}",
            '    >>> weights.meta["num_params"]',
            f"    {entries[best]['meta']['num_params']}",
        ]
    )


def of_builder(
    name: str,
    module: str,
    weights: Any,
    model: str,
    arguments: list[str],
    shown: str,
) -> str:
    """The docstring of a function that makes a model.

    shown: arguments of the example, whose model is that of the weights for the smallest images.
    """
    best = weights.DEFAULT
    least = min(weights, key=lambda member: member.meta.get("min_size", (0, 0)))
    texts = {"enum": weights.__name__, "model": model}
    package = module.rpartition(".")[0].removeprefix("rushlight.")
    has_backbone = "weights_backbone" in arguments  # its norms and heads depend on the weights
    shown = shown or ("weights_backbone=None" if has_backbone else "")
    return "\n".join(
        [
            f"Makes {name}, a network of the class {model}.",
            "",
            _TASKS[best.transforms.args[0]],
            "",
            "Args:",
            *(f"    {a}: {_ARGUMENTS[a].format(**texts)}" for a in arguments),
            "",
            "Raises:",
            "    ValueError: `weights` has no such member, or an argument contradicts them.",
            "",
            "Example:",
            '    >>> with torch.device("meta"):  # shapes alone: no memory, no numbers',
            f"    ...     model = torch.{package}.{name}({shown})",
            *(
                ("    >>> type(model).__name__", f"    {model!r}")
                if has_backbone
                else (
                    "    >>> sum(p.numel() for p in model.parameters())",
                    f"    {least.meta['num_params']}",
                )
            ),
        ]
    )
