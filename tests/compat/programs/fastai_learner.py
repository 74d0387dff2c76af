"""fastai: learners with its optimisers and callbacks, tables, recommendations."""
# packages: fastai torchvision
# cases: basics tabular collab

import contextlib
import io
import pathlib
import sys
import tempfile

import numpy
import pandas
import torch
from shown import show as shown

case = sys.argv[1]
folder = pathlib.Path(tempfile.mkdtemp())
rng = numpy.random.default_rng(0)


def show(name, value):
    """As a plain tensor."""
    shown(name, value.as_subclass(torch.Tensor))


def fitted(learner, epochs=2, lr=1e-2, fit="fit_one_cycle"):
    """Fits without its table and prints what the recorder holds."""
    with learner.no_bar(), learner.no_logging():
        getattr(learner, fit)(epochs, lr)
    for values in learner.recorder.values:
        print("epoch", *(f"{v:.4g}" for v in values))


if case == "basics":
    from fastai.basics import (
        SGD,
        Adam,
        DataLoader,
        DataLoaders,
        L,
        Lamb,
        Larc,
        Learner,
        MSELossFlat,
        QHAdam,
        RAdam,
        RMSProp,
        mae,
        ranger,
        rmse,
        set_seed,
    )
    from fastai.callback.all import (
        EarlyStoppingCallback,
        GradientAccumulation,
        GradientClip,
        SaveModelCallback,
    )
    from fastai.losses import FocalLossFlat, LabelSmoothingCrossEntropyFlat

    set_seed(0, True)
    x = torch.from_numpy(rng.normal(size=(64, 5)).astype("float32"))
    y = x @ torch.arange(5.0)[:, None] + 0.1
    rows = list(zip(x, y, strict=True))
    data = DataLoaders(DataLoader(rows[:48], bs=8), DataLoader(rows[48:], bs=16))

    def learner(**given):
        set_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        return Learner(data, net, loss_func=MSELossFlat(), model_dir=folder, path=folder, **given)

    for optimizer in (Adam, SGD, RMSProp, Lamb, QHAdam, RAdam, Larc, ranger):
        print(optimizer.__name__)
        fitted(learner(opt_func=optimizer, metrics=[mae, rmse]), 1)
    one = learner(
        cbs=[
            GradientAccumulation(16),
            GradientClip(0.1),
            SaveModelCallback(),
            EarlyStoppingCallback(),
        ]
    )
    fitted(one, 2, fit="fit_flat_cos")
    with one.no_bar(), one.no_logging(), contextlib.redirect_stdout(io.StringIO()):
        found = one.lr_find(num_it=20, show_plot=False)
    print("found", f"{found.valley:.3g}")
    one.save("kept")
    one.load("kept")
    with one.no_bar():
        show("preds", one.get_preds()[0])
    show("focal", FocalLossFlat()(torch.randn(4, 3), torch.tensor([0, 1, 2, 1])))
    show("smooth", LabelSmoothingCrossEntropyFlat()(torch.randn(4, 3), torch.tensor([0, 1, 2, 1])))
    print(L(1, 2, 3).map(lambda v: v * 2))
    learner().summary()
elif case == "tabular":
    from fastai.tabular.all import (
        Categorify,
        FillMissing,
        Normalize,
        TabularDataLoaders,
        accuracy,
        set_seed,
        tabular_learner,
    )

    set_seed(0, True)
    frame = pandas.DataFrame(
        {
            "kind": rng.choice(["x", "y", "z"], 200),
            "size": rng.normal(size=200),
            "age": rng.integers(1, 90, 200).astype(float),
            "label": rng.choice(["no", "yes"], 200),
        }
    )
    frame.loc[::7, "age"] = numpy.nan
    data = TabularDataLoaders.from_df(
        frame,
        procs=[Categorify, FillMissing, Normalize],
        cat_names=["kind"],
        cont_names=["size", "age"],
        y_names="label",
        valid_idx=list(range(160, 200)),
        bs=32,
        num_workers=0,
    )
    set_seed(1)
    one = tabular_learner(data, layers=[16, 8], metrics=accuracy)
    fitted(one, 2)
    with one.no_bar():
        row, guess, parts = one.predict(frame.iloc[0])
    show("row", parts)
else:
    from fastai.basics import set_seed
    from fastai.collab import CollabDataLoaders, collab_learner

    set_seed(0, True)
    frame = pandas.DataFrame(
        {
            "user": rng.integers(0, 20, 300),
            "item": rng.integers(0, 15, 300),
            "rating": rng.integers(1, 6, 300).astype("float32"),
        }
    )
    data = CollabDataLoaders.from_df(frame, bs=32, seed=2, num_workers=0)
    for net in (False, True):
        set_seed(1)
        fitted(collab_learner(data, n_factors=8, use_nn=net, y_range=(0.5, 5.5)), 2)
