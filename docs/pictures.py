"""Pictures for pages of the reference, drawn by what the pages are about.

A schedule has its learning rate by step, a distribution its density, an activation its curve, a
window its values, a transform of pictures what it makes of one. What cannot be called without
arguments is called with those of the tables here.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rushlight
from rushlight import distributions, nn, optim
from rushlight.vision import transforms

STEPS = 100
BLUE, ORANGE, GREY = "#2f7ed8", "#e08214", "#808080"

# Arguments of calls, as one writes them; a schedule has an optimiser before them.
SCHEDULES = {
    "ConstantLR": "factor=0.5, total_iters=30",
    "CosineAnnealingLR": "T_max=100",
    "CosineAnnealingWarmRestarts": "T_0=20, T_mult=2",
    "CyclicLR": "base_lr=0.1, max_lr=1.0, step_size_up=20",
    "ExponentialLR": "gamma=0.97",
    "LambdaLR": "lr_lambda=lambda step: 1 / (1 + step / 10)",
    "LinearLR": "start_factor=0.1, total_iters=40",
    "MultiStepLR": "milestones=[30, 80], gamma=0.3",
    "MultiplicativeLR": "lr_lambda=lambda step: 0.95",
    "OneCycleLR": "max_lr=1.0, total_steps=101",
    "PolynomialLR": "total_iters=80, power=2.0",
    "ReduceLROnPlateau": "factor=0.5, patience=10",
    "SWALR": "swa_lr=0.1, anneal_epochs=30",
    "StepLR": "step_size=30, gamma=0.3",
}
# From where to where a density is drawn, and for which parameters.
DISTRIBUTIONS = {
    "Bernoulli": (0, 1, "probs=0.3"),
    "Beta": (
        0,
        1,
        "concentration1=2.0, concentration0=5.0",
        "concentration1=0.5, concentration0=0.5",
    ),
    "Binomial": (0, 20, "total_count=20, probs=0.3", "total_count=20, probs=0.7"),
    "Categorical": (0, 3, "probs=[0.1, 0.2, 0.3, 0.4]"),
    "Cauchy": (-5, 5, "loc=0.0, scale=1.0", "loc=1.0, scale=0.5"),
    "Chi2": (0, 12, "df=2.0", "df=5.0"),
    "ContinuousBernoulli": (0, 1, "probs=0.2", "probs=0.6"),
    "Exponential": (0, 5, "rate=1.0", "rate=2.0"),
    "FisherSnedecor": (0, 5, "df1=5.0, df2=2.0", "df1=10.0, df2=20.0"),
    "Gamma": (0, 8, "concentration=1.0, rate=1.0", "concentration=3.0, rate=1.0"),
    "GeneralizedPareto": (
        *(0, 5),
        *("loc=0.0, scale=1.0, concentration=0.5", "loc=0.0, scale=1.0, concentration=-0.3"),
    ),
    "Geometric": (0, 15, "probs=0.2", "probs=0.5"),
    "Gumbel": (-3, 7, "loc=0.0, scale=1.0", "loc=1.0, scale=2.0"),
    "HalfCauchy": (0, 5, "scale=1.0", "scale=2.0"),
    "HalfNormal": (0, 5, "scale=1.0", "scale=2.0"),
    "InverseGamma": (0, 4, "concentration=2.0, rate=1.0", "concentration=3.0, rate=2.0"),
    "Kumaraswamy": (
        *(0, 1),
        *("concentration1=2.0, concentration0=5.0", "concentration1=0.5, concentration0=0.5"),
    ),
    "Laplace": (-5, 5, "loc=0.0, scale=1.0", "loc=1.0, scale=0.5"),
    "LogNormal": (0, 5, "loc=0.0, scale=1.0", "loc=0.5, scale=0.3"),
    "NegativeBinomial": (0, 20, "total_count=5, probs=0.5", "total_count=3, probs=0.7"),
    "Normal": (-5, 5, "loc=0.0, scale=1.0", "loc=1.0, scale=2.0"),
    "Pareto": (1, 5, "scale=1.0, alpha=1.0", "scale=1.0, alpha=3.0"),
    "Poisson": (0, 20, "rate=2.0", "rate=9.0"),
    "RelaxedBernoulli": (0, 1, "temperature=0.5, probs=0.3", "temperature=2.0, probs=0.3"),
    "StudentT": (-5, 5, "df=1.0", "df=10.0"),
    "Uniform": (-1, 3, "low=0.0, high=2.0"),
    "VonMises": (-3.14, 3.14, "loc=0.0, concentration=1.0", "loc=1.0, concentration=5.0"),
    "Weibull": (0, 4, "scale=1.0, concentration=1.0", "scale=1.0, concentration=3.0"),
}
TRANSFORMS = {
    "AugMix": "",
    "AutoAugment": "",
    "CenterCrop": "size=64",
    "ColorJitter": "brightness=0.5, contrast=0.5, saturation=0.5, hue=0.3",
    "ElasticTransform": "alpha=60.0",
    "FiveCrop": "size=48",
    "GaussianBlur": "kernel_size=9, sigma=3.0",
    "Grayscale": "",
    "Pad": "padding=16",
    "RandAugment": "",
    "RandomAdjustSharpness": "sharpness_factor=5.0, p=1.0",
    "RandomAffine": "degrees=30, translate=(0.1, 0.2), scale=(0.7, 1.1)",
    "RandomAutocontrast": "p=1.0",
    "RandomCrop": "size=64",
    "RandomEqualize": "p=1.0",
    "RandomErasing": "p=1.0",
    "RandomGrayscale": "p=0.5",
    "RandomHorizontalFlip": "p=0.5",
    "RandomInvert": "p=0.5",
    "RandomPerspective": "p=1.0",
    "RandomPosterize": "bits=2, p=1.0",
    "RandomResizedCrop": "size=64",
    "RandomRotation": "degrees=45",
    "RandomSolarize": "threshold=128, p=1.0",
    "RandomVerticalFlip": "p=0.5",
    "Resize": "size=48",
    "TenCrop": "size=48",
    "TrivialAugmentWide": "",
}
WINDOWS = {"general_cosine": "a=[0.46, 0.23, 0.31]"}


def values_of(arguments: str) -> dict[str, Any]:
    """The arguments that a text of the tables stands for."""
    return eval(f"dict({arguments})")


# ---- curves ----


def svg(draw: Callable[[Any], None], width: float = 5.0, height: float = 2.4) -> bytes:
    """What a function draws on axes, as SVG that looks right on light and on dark pages."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    style = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), GREY)
    style |= dict.fromkeys(("xtick.color", "ytick.color"), GREY)
    with pyplot.rc_context({**style, "svg.hashsalt": "rushlight", "font.size": 9}):
        figure, axes = pyplot.subplots(figsize=(width, height))
        draw(axes)
        axes.grid(alpha=0.25)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        figure.tight_layout()
        out = io.BytesIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
        pyplot.close(figure)
    return out.getvalue()


def rates(name: str) -> list[float]:
    """The learning rate of each step of a schedule over an optimiser whose rate is 1."""
    optimizer = optim.SGD([rushlight.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    cls = getattr(optim.lr_scheduler, name, None) or getattr(optim.swa_utils, name)
    schedule, found = cls(optimizer, **values_of(SCHEDULES[name])), []
    for step in range(STEPS):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        worsens = max(1.0 - step / 20, 0.3)  # a loss that stands still from step 14 on
        schedule.step(*([worsens] if name == "ReduceLROnPlateau" else []))
    return found


def schedule_pictures() -> Iterator[tuple[str, bytes, str]]:
    for name, arguments in SCHEDULES.items():
        space = "lr_scheduler" if hasattr(optim.lr_scheduler, name) else "swa_utils"
        values = rates(name)

        def draw(axes: Any, values: list[float] = values) -> None:
            axes.plot(values, color=BLUE)
            axes.set_xlabel("step")
            axes.set_ylabel("learning rate")
            axes.set_ylim(bottom=0)

        said = f"the learning rate of `{name}(SGD(…, lr=1.0), {arguments})` by step"
        if name == "ReduceLROnPlateau":
            said += ", for a loss that falls until step 14 and stays there"
        yield f"optim.{space}.{name}", svg(draw), said


def density(name: str, arguments: str, low: float, high: float) -> tuple[Any, Any, bool]:
    """Places, densities there, and whether values are counted."""
    given = {k: rushlight.tensor(v) for k, v in values_of(arguments).items()}
    made = getattr(distributions, name)(**given, validate_args=False)
    support = getattr(made.support, "base_constraint", made.support)
    counted = bool(getattr(support, "is_discrete", False))
    gap = (high - low) / 1000
    x = (
        rushlight.arange(low, high + 1)
        if counted
        else rushlight.linspace(low + gap, high - gap, 500)
    )
    inside = made.support.check(x)
    p = rushlight.where(inside, made.log_prob(rushlight.where(inside, x, made.sample())).exp(), 0.0)
    return x, p, counted


def distribution_pictures() -> Iterator[tuple[str, bytes, str]]:
    for name, (low, high, *cases) in DISTRIBUTIONS.items():
        drawn = [(density(name, case, low, high), case) for case in cases]
        kind = "probabilities" if drawn[0][0][2] else "density"

        def draw(axes: Any, drawn: Any = drawn) -> None:
            for ((x, p, counted), case), color in zip(drawn, (BLUE, ORANGE), strict=False):
                if counted:
                    axes.vlines(x.tolist(), 0, p.tolist(), color=color, alpha=0.5)
                    axes.plot(x.tolist(), p.tolist(), "o", markersize=4, color=color, label=case)
                else:
                    axes.plot(x.tolist(), p.tolist(), color=color, label=case)
            axes.set_ylim(0, min(axes.get_ylim()[1], 4))
            axes.legend(frameon=False, fontsize=8)

        yield f"distributions.{name}", svg(draw), f"{kind} of `{name}`"


def activation_pictures() -> Iterator[tuple[str, bytes, str]]:
    """Layers that map each number to one, by what they do to a line of numbers."""
    x = rushlight.linspace(-4, 4, 401)
    for name, cls in inspect.getmembers(nn.modules.activation, inspect.isclass):
        if (
            not issubclass(cls, nn.Module)
            or "dim" in inspect.signature(cls).parameters
            or name == "RReLU"
        ):
            continue
        try:
            layer = cls()
        except TypeError:  # needs arguments
            continue
        taken = x.clone().requires_grad_()
        try:
            y = layer(taken)
        except (RuntimeError, ValueError, IndexError):  # wants pictures, or an even size
            continue
        by_element = y.shape == x.shape and rushlight.allclose(layer(x[:7]), y[:7])
        if not by_element:
            continue
        y.sum().backward()

        def draw(axes: Any, y: Any = y, slope: Any = taken.grad) -> None:
            axes.plot(x.tolist(), y.tolist(), color=BLUE, label="value")
            axes.plot(x.tolist(), slope.tolist(), color=ORANGE, linestyle="--", label="derivative")
            axes.legend(frameon=False, fontsize=8)

        yield f"nn.{name}", svg(draw), f"`{name}()` and its derivative"


def window_pictures() -> Iterator[tuple[str, bytes, str]]:
    for name in rushlight.signal.windows.__all__:
        given = WINDOWS.get(name, "")
        values = getattr(rushlight.signal.windows, name)(64, **values_of(given)).tolist()

        def draw(axes: Any, values: list[float] = values) -> None:
            axes.plot(values, color=BLUE)
            axes.set_ylim(bottom=min(0, *values))

        yield (
            f"signal.windows.{name}",
            svg(draw),
            f"`{name}({', '.join(filter(None, ['64', given]))})`",
        )


# ---- pictures before and after ----


def scene() -> Any:
    """A picture to try transforms on: a house under the sun."""
    from PIL import Image, ImageDraw

    large = Image.new("RGB", (384, 384))
    draw = ImageDraw.Draw(large)
    for y in range(384):
        draw.line((0, y, 384, y), (120 + y // 4, 170 + y // 6, 235))
    draw.ellipse((270, 30, 340, 100), (255, 214, 60))
    draw.rectangle((0, 270, 384, 384), (86, 150, 70))
    draw.rectangle((70, 180, 230, 310), (206, 92, 64))
    draw.polygon([(50, 180), (150, 90), (250, 180)], (96, 60, 52))
    draw.rectangle((90, 205, 140, 250), (236, 236, 200))
    draw.rectangle((165, 220, 210, 310), (70, 50, 40))
    draw.rectangle((300, 220, 316, 310), (90, 62, 40))
    draw.ellipse((262, 130, 354, 240), (40, 110, 52))
    return large.resize((96, 96), Image.Resampling.LANCZOS)


def results(name: str, space: Any = transforms) -> list[Any]:
    """What a transform makes of the scene: one picture, several where it is random."""
    rushlight.manual_seed(3)
    made, found = getattr(space, name)(**values_of(TRANSFORMS[name])), []
    to_tensor, to_image = transforms.functional.to_tensor, transforms.functional.to_pil_image
    for _ in range(4):
        said = made(to_tensor(scene()) if name == "RandomErasing" else scene())
        several = said if isinstance(said, tuple) else (said,)
        found.append([to_image(p) if isinstance(p, rushlight.Tensor) else p for p in several])
    alike = all(
        p.tobytes() == q.tobytes() for row in found for p, q in zip(row, found[0], strict=True)
    )
    return found[0] if alike else [p for row in found for p in row]


def transform_pictures() -> Iterator[tuple[str, bytes, str]]:
    from PIL import Image

    for name, arguments in TRANSFORMS.items():
        shown = [scene(), *results(name)]
        width = sum(max(p.width, 48) + 12 for p in shown) + 24
        sheet = Image.new("RGBA", (width, max(p.height for p in shown)), (0, 0, 0, 0))
        x = 0
        for number, picture in enumerate(shown):
            sheet.paste(picture, (x, 0))
            x += max(picture.width, 48) + (36 if number == 0 else 12)
        out = io.BytesIO()
        sheet.resize((sheet.width * 3 // 2, sheet.height * 3 // 2)).save(out, "PNG")
        yield (
            f"vision.transforms.{name}",
            out.getvalue(),
            f"before, and after `{name}({arguments})`",
        )


def write(folder: Path) -> dict[str, tuple[str, str]]:
    """Draws all pictures into a folder; for each page its file and what it shows."""
    folder.mkdir(parents=True, exist_ok=True)
    drawers = (
        schedule_pictures,
        distribution_pictures,
        activation_pictures,
        window_pictures,
        transform_pictures,
    )
    found = {}
    state = rushlight.get_rng_state()
    for drawer in drawers:
        for name, data, said in drawer():
            file = f"{name}.png" if data.startswith(b"\x89PNG") else f"{name}.svg"
            (folder / file).write_bytes(data)
            found[name] = (file, said)
    rushlight.set_rng_state(state)
    return found
