"""Metrics of every domain, updated twice, computed, reset, saved."""
# packages: torchmetrics

import torch
import torchmetrics as tm
from shown import show

torch.manual_seed(0)
logits, target = torch.randn(2, 50, 4), torch.randint(4, (2, 50))
x, y = torch.randn(2, 50), torch.randn(2, 50)
for make in (
    lambda: tm.Accuracy(task="multiclass", num_classes=4, average="macro"),
    lambda: tm.F1Score(task="multiclass", num_classes=4, average=None),
    lambda: tm.AUROC(task="multiclass", num_classes=4),
    lambda: tm.AveragePrecision(task="multiclass", num_classes=4),
    lambda: tm.ConfusionMatrix(task="multiclass", num_classes=4),
    lambda: tm.CohenKappa(task="multiclass", num_classes=4),
    lambda: tm.MatthewsCorrCoef(task="multiclass", num_classes=4),
    lambda: tm.CalibrationError(task="multiclass", num_classes=4),
):
    metric = make()
    for a, b in zip(logits, target):
        metric.update(a.softmax(-1), b)
    show(type(metric).__name__, metric.compute())
for make in (
    tm.MeanSquaredError, tm.MeanAbsoluteError, tm.R2Score, tm.PearsonCorrCoef, tm.SpearmanCorrCoef,
    tm.KendallRankCorrCoef, tm.ExplainedVariance, tm.ConcordanceCorrCoef, tm.MeanMetric, tm.CatMetric,
):  # fmt: skip
    metric = make()
    for a, b in zip(x, y):
        metric(a) if make in (tm.MeanMetric, tm.CatMetric) else metric(a, b)
    show(make.__name__, metric.compute())
    metric.reset()
collection = tm.MetricCollection(
    {"mse": tm.MeanSquaredError(), "mae": tm.MeanAbsoluteError()}, prefix="val_"
)
for name, value in sorted(collection(x[0], y[0]).items()):
    show(name, value)
tracker = tm.wrappers.MetricTracker(tm.MeanSquaredError(), maximize=False)
for a, b in zip(x, y):
    tracker.increment()
    tracker.update(a, b)
show("best", tracker.best_metric())
boot = tm.wrappers.MinMaxMetric(tm.MeanSquaredError())
print({k: round(float(v), 5) for k, v in boot(x[0], y[0]).items()})
metric = tm.MeanSquaredError()
metric.persistent(True)
metric.update(x[0], y[0])
print(sorted(metric.state_dict()))
