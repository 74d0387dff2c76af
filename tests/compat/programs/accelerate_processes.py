"""accelerate's launchers with two processes: gathered metrics, states saved and loaded."""
# packages: accelerate safetensors
# cases: debug notebook

import sys
import tempfile

import torch
from accelerate import Accelerator, debug_launcher, notebook_launcher
from accelerate.utils import broadcast_object_list, gather_object, set_seed
from shown import show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(folder):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(3)
    x = torch.randn(50, 8)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    model, optimizer, batches, tests, scheduler = accelerator.prepare(
        model, optimizer, DataLoader(data, 4, shuffle=True), DataLoader(data, 4), scheduler
    )

    def epoch():
        for x, y in batches:
            with accelerator.accumulate(model):
                accelerator.backward(nn.functional.mse_loss(model(x), y))
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()

    @torch.no_grad()
    def tested():
        found = [accelerator.gather_for_metrics((model(x), y)) for x, y in tests]
        outputs, targets = (torch.cat(parts) for parts in zip(*found))
        assert len(outputs) == 50
        return nn.functional.mse_loss(outputs, targets)

    epoch()
    first = tested()
    accelerator.save_state(folder)
    epoch()
    second = tested()
    accelerator.load_state(folder)
    again = tested()
    ranks = gather_object([accelerator.process_index])
    sent = broadcast_object_list([accelerator.process_index + 5])
    if accelerator.is_main_process:
        for score in (first, second, again):
            show("score", score)
        print("ranks", ranks, "sent", sent, "processes", accelerator.num_processes, flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    launch = debug_launcher if sys.argv[1] == "debug" else notebook_launcher
    with tempfile.TemporaryDirectory() as folder:
        launch(train, (folder,), num_processes=2)
