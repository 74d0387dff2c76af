"""A small GPT that learns to sort, by its own trainer."""
# repositories: karpathy/minGPT

import os
import sys

import torch
from shown import show

sys.path.insert(0, os.environ["COMPAT_REPOSITORIES"] + "/minGPT")
from mingpt.model import GPT
from mingpt.trainer import Trainer
from mingpt.utils import set_seed

set_seed(3407)


class Sorting(torch.utils.data.Dataset):
    """Six numbers, then the same in order; only those count."""

    def __len__(self):
        return 2000

    def __getitem__(self, i):
        given = torch.randint(3, (6,), generator=torch.Generator().manual_seed(i))
        both = torch.cat((given, given.sort()[0]))
        targets = both[1:].clone()
        targets[:5] = -1
        return both[:-1], targets


config = GPT.get_default_config()
config.model_type, config.vocab_size, config.block_size = "gpt-nano", 3, 11
config.embd_pdrop = config.attn_pdrop = config.resid_pdrop = 0.0
model = GPT(config)
settings = Trainer.get_default_config()
settings.max_iters, settings.num_workers, settings.batch_size = 40, 0, 32
trainer = Trainer(settings, model, Sorting())
trainer.set_callback("on_batch_end", lambda t: t.iter_num % 10 == 0 and show("loss", t.loss.item()))
trainer.run()
model.eval()
print(model.generate(torch.tensor([[0, 0, 2, 1, 0, 1]]), 6, do_sample=False).tolist())
