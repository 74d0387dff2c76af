"""A LightningModule with callbacks, checkpoints, a data module and a logger."""
# packages: lightning pytorch_lightning
# cases: lightning pytorch_lightning

import importlib
import logging
import sys
import tempfile
import warnings

import torch
from shown import show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
L = importlib.import_module(sys.argv[1])
callbacks = importlib.import_module(
    sys.argv[1] + (".pytorch" if sys.argv[1] == "lightning" else "") + ".callbacks"
)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Data(L.LightningDataModule):
    def setup(self, stage):
        g = torch.Generator().manual_seed(5)
        x = torch.randn(96, 6, generator=g)
        self.set = TensorDataset(x, (x.sum(1) > 0).long())

    def train_dataloader(self):
        return DataLoader(self.set, batch_size=16, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.set, batch_size=32)

    test_dataloader = predict_dataloader = val_dataloader


class Model(L.LightningModule):
    def __init__(self, width=12, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("train_loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", nn.functional.cross_entropy(self(batch[0]), batch[1]))

    test_step = validation_step

    def predict_step(self, batch, index):
        return self(batch[0]).argmax(-1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)]


L.seed_everything(1, verbose=False)
with tempfile.TemporaryDirectory() as folder:
    model = Model()
    saver = callbacks.ModelCheckpoint(monitor="val_loss", dirpath=folder)
    trainer = L.Trainer(
        max_epochs=3, accelerator="cpu", devices=1, default_root_dir=folder, logger=False,
        enable_progress_bar=False, enable_model_summary=True, gradient_clip_val=1.0,
        callbacks=[saver, callbacks.EarlyStopping("val_loss"), callbacks.LearningRateFinder] [:2],
    )  # fmt: skip
    trainer.fit(model, Data())
    for name, value in sorted(trainer.callback_metrics.items()):
        show(name, value)
    show("test", trainer.test(model, Data(), verbose=False)[0]["val_loss"])
    show("predict", torch.cat(trainer.predict(model, Data())).float())
    again = Model.load_from_checkpoint(saver.best_model_path)
    print(dict(again.hparams))
    resumed = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    resumed.fit(Model(), Data(), ckpt_path=saver.best_model_path, weights_only=False)
    show("resumed", resumed.callback_metrics["train_loss"])
