"""Feature extraction, optimisers, schedulers, EMA, mixup, losses, checkpoints."""
# packages: timm torchvision

import tempfile

import timm
import torch
from shown import show
from timm.data import Mixup, resolve_data_config
from timm.data.transforms_factory import create_transform
from timm.loss import BinaryCrossEntropy, LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import ModelEmaV2, accuracy

torch.manual_seed(0)
model = timm.create_model("resnet10t", num_classes=4, features_only=False)
x, y = torch.randn(8, 3, 64, 64), torch.randint(4, (8,))
for kind in (
    "sgd",
    "adamw",
    "lamb",
    "lookahead_adam",
    "adafactor",
    "nadamw",
    "lion",
    "madgrad",
    "adan",
):
    torch.manual_seed(1)
    tiny = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 4))
    optimizer = create_optimizer_v2(tiny, opt=kind, lr=1e-3, weight_decay=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        loss = LabelSmoothingCrossEntropy()(tiny(x), y)
        loss.backward()
        optimizer.step()
    show(kind, loss)
features = timm.create_model("resnet10t", features_only=True, out_indices=(1, 3))
for f in features(x):
    show("feature", f)
schedule, epochs = create_scheduler_v2(optimizer, sched="cosine", num_epochs=10, warmup_epochs=2)
for epoch in range(5):
    schedule.step(epoch)
show("lr", optimizer.param_groups[0]["lr"])
ema = ModelEmaV2(model, decay=0.9)
with torch.no_grad():
    for p in model.parameters():
        p.add_(0.01)
ema.update(model)
show("ema", next(ema.module.parameters()))
show("accuracy", accuracy(model(x), y, topk=(1, 3))[1])
import numpy

numpy.random.seed(0)
mixed, targets = Mixup(mixup_alpha=0.4, num_classes=4)(x.clone(), y)
show("mixed", mixed)
show("soft", SoftTargetCrossEntropy()(model(mixed), targets))
show("binary", BinaryCrossEntropy()(model(mixed), targets))
print(resolve_data_config({}, model=model)["input_size"])
from PIL import Image

transform = create_transform(**resolve_data_config({}, model=model))
show("image", transform(Image.new("RGB", (300, 280), (10, 100, 200))))
with tempfile.TemporaryDirectory() as folder:
    torch.save(model.state_dict(), folder + "/m.pth")
    again = timm.create_model("resnet10t", num_classes=4, checkpoint_path=folder + "/m.pth")
show("same", torch.equal(again.conv1[0].weight, model.conv1[0].weight))
