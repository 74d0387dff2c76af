"""Engines, events, metrics, handlers."""
# packages: ignite

import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import (
    Checkpoint,
    CosineAnnealingScheduler,
    DiskSaver,
)
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, Precision, Recall, RunningAverage
from ignite.utils import manual_seed
from shown import show
from torch import nn

manual_seed(0)
x = torch.randn(120, 5)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, y), batch_size=20, shuffle=True
)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
trainer = create_supervised_trainer(model, optimizer, nn.CrossEntropyLoss())
evaluator = create_supervised_evaluator(
    model,
    metrics={
        "accuracy": Accuracy(),
        "loss": Loss(nn.CrossEntropyLoss()),
        "precision": Precision(average=True),
        "recall": Recall(),
        "cm": ConfusionMatrix(3),
    },
)
RunningAverage(output_transform=lambda out: out).attach(trainer, "running")
trainer.add_event_handler(
    Events.ITERATION_STARTED, CosineAnnealingScheduler(optimizer, "lr", 0.02, 0.001, 30)
)
with tempfile.TemporaryDirectory() as folder:
    saver = Checkpoint(
        {"model": model, "optimizer": optimizer}, DiskSaver(folder, require_empty=False), n_saved=1
    )
    trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        evaluator.run(loader)
        for name, value in sorted(evaluator.state.metrics.items()):
            show(name, value if isinstance(value, torch.Tensor) else float(value))
        show("running", float(engine.state.metrics["running"]))

    trainer.run(loader, max_epochs=3)
    Checkpoint.load_objects({"model": model}, torch.load(saver.last_checkpoint))
