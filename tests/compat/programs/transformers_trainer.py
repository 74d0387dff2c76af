"""The Trainer: steps, evaluation, checkpoints, resuming."""
# packages: transformers accelerate

import os
import tempfile

import numpy as np
import torch
from shown import show
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(0)


class Pairs(torch.utils.data.Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(n)
        self.ids = torch.randint(3, 60, (n, 10), generator=g)
        self.labels = (self.ids.sum(1) % 2).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


config = BertConfig(
    hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=60
)
model = BertForSequenceClassification(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=2,
        per_device_train_batch_size=8,
        learning_rate=1e-3,
        logging_steps=2,
        save_steps=4,
        report_to=[],
        use_cpu=True,
        warmup_steps=2,
        gradient_accumulation_steps=2,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=Pairs(64),
        eval_dataset=Pairs(32),
        compute_metrics=lambda p: {
            "accuracy": float(np.mean(p.predictions.argmax(-1) == p.label_ids))
        },
    )
    trainer.remove_callback(PrinterCallback)  # its lines tell times
    result = trainer.train()
    show("train loss", float(result.training_loss))
    metrics = trainer.evaluate()
    show("eval loss", metrics["eval_loss"])
    show("accuracy", metrics["eval_accuracy"])
    print("checkpoints", sorted(n for n in os.listdir(folder) if n.startswith("checkpoint")))
    again = trainer.train(resume_from_checkpoint=True)
    print("global step", again.global_step)
    predictions = trainer.predict(Pairs(16)).predictions
    show("predictions", torch.from_numpy(predictions))
