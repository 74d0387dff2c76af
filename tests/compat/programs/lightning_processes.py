"""Trainers with two processes: data parallel, spread over both, and cut by tensor parallelism."""
# packages: lightning
# cases: ddp ddp_spawn ddp_fork bf16 fully_shard tensor_parallel

import logging
import os
import sys
import tempfile
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
CASE = sys.argv[1]


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        if CASE not in ("fully_shard", "tensor_parallel"):
            self.net = self.layers()

    def layers(self):
        return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 1))

    def configure_model(self):
        if hasattr(self, "net"):
            return
        self.net = self.layers()
        if CASE == "fully_shard":
            fully_shard(self.net, mesh=self.device_mesh["data_parallel"])
        else:
            plan = {
                "0": ColwiseParallel(output_layouts=Replicate()),
                "3": RowwiseParallel(input_layouts=Replicate()),
            }
            parallelize_module(self.net, self.device_mesh["tensor_parallel"], plan)

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x).float(), y)
        self.log("train", loss, sync_dist=True, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val", nn.functional.mse_loss(self.net(x).float(), y), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-2)


def loaders():
    g = torch.Generator().manual_seed(5)
    x = torch.randn(64, 8, generator=g)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    return DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=8)


def trainer(epochs, folder, **options):
    strategies = {
        "bf16": "ddp",
        "fully_shard": ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1),
        "tensor_parallel": ModelParallelStrategy(data_parallel_size=1, tensor_parallel_size=2),
    }
    return L.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        devices=2,
        strategy=strategies.get(CASE, CASE),
        precision="bf16-mixed" if CASE == "bf16" else "32-true",
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        **options,
    )


def main():
    L.seed_everything(3, verbose=False)
    folder = os.environ.setdefault("COMPAT_FOLDER", tempfile.mkdtemp())  # of both processes
    kept = ModelCheckpoint(folder + "/kept", monitor="val", save_last=True)
    logger = CSVLogger(folder)
    first = trainer(3, folder, logger=logger, callbacks=[kept, EarlyStopping("val", patience=5)])
    first.fit(Model(), *loaders())
    then = trainer(5, folder, logger=False, enable_checkpointing=False)
    then.fit(Model(), *loaders(), ckpt_path=folder + "/kept/last.ckpt")
    if then.global_rank == 0:
        for name, part in (("first", first), ("then", then)):
            for metric in ("train", "val"):
                value = part.callback_metrics[metric].item()
                print(name, metric, f"{value:.2f}" if CASE == "bf16" else f"{value:.4f}")
        print("epochs", then.current_epoch, "processes", then.world_size)


if __name__ == "__main__":
    main()
