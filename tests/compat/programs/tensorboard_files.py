"""Events for TensorBoard, written by torch.utils and by tensorboardX."""
# packages: tensorboard tensorboardX
# cases: torch.utils.tensorboard tensorboardX

import glob
import importlib
import sys
import tempfile

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

SummaryWriter = importlib.import_module(sys.argv[1]).SummaryWriter
torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as w:
        for i in range(3):
            w.add_scalar("loss", 1.0 / (i + 1), i)
            w.add_histogram("h", torch.randn(100), i)
        w.add_scalars("both", {"a": 1.0, "b": torch.tensor(2.0)}, 0)
        w.add_image("image", torch.rand(3, 8, 8), 0)
        w.add_images("images", torch.rand(4, 3, 8, 8), 0)
        w.add_text("text", "hello", 0)
        w.add_pr_curve("pr", torch.tensor([0, 1, 1, 0]), torch.tensor([0.1, 0.8, 0.6, 0.3]), 0)
        w.add_embedding(torch.randn(5, 4), metadata=list("abcde"))
        w.add_hparams({"lr": 0.1, "kind": "x"}, {"score": 0.5})
        w.add_mesh("mesh", torch.randn(1, 6, 3))
    a = EventAccumulator(folder, size_guidance={"histograms": 0})
    a.Reload()
    print(sorted(a.Tags()["scalars"]), sorted(a.Tags()["images"]), a.Tags()["histograms"])
    print([(e.step, round(e.value, 5)) for e in a.Scalars("loss")])
    h = a.Histograms("h")[0].histogram_value
    print(h.num, round(h.sum, 4), round(h.max, 4))
    print(sorted(p.rsplit("/", 1)[-1] for p in glob.glob(folder + "/**/*.tsv", recursive=True)))
