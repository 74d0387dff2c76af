"""Hugging Face's Trainer on two processes that the launcher starts, with evaluation and resuming."""
# packages: transformers accelerate safetensors
# cases: float32 bf16

import sys
import tempfile

import torch
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)


class Tokens(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(0, 64, (count, 16), generator=g)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "labels": self.tokens[i]}


def trainer(epochs, folder, case):
    set_seed(1)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=64,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=32,
        )
    )
    arguments = TrainingArguments(
        folder,
        num_train_epochs=epochs,
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        gradient_accumulation_steps=2,
        eval_strategy="epoch",
        save_strategy="epoch",
        learning_rate=1e-3,
        report_to=[],
        use_cpu=True,
        bf16=case == "bf16",
        seed=5,
        disable_tqdm=True,
        logging_strategy="no",
    )
    made = Trainer(model, arguments, train_dataset=Tokens(32, 0), eval_dataset=Tokens(10, 1))
    made.remove_callback(PrinterCallback)
    return made


def train(folder, case):
    first = trainer(2, folder, case).train()
    again = trainer(3, folder, case)
    then = again.train(resume_from_checkpoint=True)
    score = again.evaluate()["eval_loss"]
    outputs = again.predict(Tokens(7, 2)).predictions
    return first.training_loss, then.global_step, score, outputs.shape, again.args.world_size


if __name__ == "__main__":
    config = LaunchConfig(1, 1, 2, rdzv_backend="c10d", rdzv_endpoint="127.0.0.1:0", max_restarts=0)
    with tempfile.TemporaryDirectory() as folder:
        results = elastic_launch(config, train)(folder, sys.argv[1])
    loss, steps, score, shape, size = results[0]
    digits = 2 if sys.argv[1] == "bf16" else 4
    print(f"loss {loss:.{digits}f} score {score:.{digits}f} shape {shape}")
    print("steps", steps, "processes", size)
