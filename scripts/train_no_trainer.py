"""Fine-tune a nested NER model in a plain loop with accelerate: for who wants to change the loop itself.

python scripts/train_no_trainer.py --data sample --encoder bert-base-cased --output_dir runs/mine
accelerate launch --config_file scripts/accelerate/ddp_8gpu.yaml scripts/train_no_trainer.py --data genia/ ...
"""

from dataclasses import dataclass, field

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import EvalPrediction, HfArgumentParser, get_scheduler

import hf_spanner
from hf_spanner.building import VectorArguments, build_model
from hf_spanner.data import label_names, suggest_overlap
from hf_spanner.training.parameters import parameter_groups


@dataclass
class Run:
    data: str = field(metadata={"help": "A folder with train and validation files, a Hub data set, or 'sample'."})
    output_dir: str = field(metadata={"help": "Where the trained model goes."})
    approach: str = field(default="span_ner", metadata={"help": f"One of {', '.join(hf_spanner.APPROACHES)}."})
    encoder: str = field(default="bert-base-cased", metadata={"help": "Hub id or folder of any AutoModel encoder."})
    max_span_length: int = 12
    num_train_epochs: int = 4
    per_device_train_batch_size: int = 8
    per_device_eval_batch_size: int = 32
    gradient_accumulation_steps: int = 1
    learning_rate: float = field(default=5e-5, metadata={"help": "Of the encoder."})
    head_learning_rate: float = field(default=1e-3, metadata={"help": "Of everything else."})
    weight_decay: float = 0.01
    warmup_share: float = 0.1
    max_grad_norm: float = 1.0
    seed: int = 42


def main() -> None:
    (run,) = HfArgumentParser(Run).parse_args_into_dataclasses()
    accelerator = Accelerator(gradient_accumulation_steps=run.gradient_accumulation_steps)
    set_seed(run.seed)

    # The data and the model.
    data = hf_spanner.load_nested_ner(run.data)
    settings = {"max_span_length": run.max_span_length, "overlap": suggest_overlap(data["train"])}
    model, tokenizer = build_model(
        run.approach,
        label_names(data),
        settings,
        run.encoder,
        data,
        VectorArguments(),
        run.seed,
        say=accelerator.print,
    )
    validation = hf_spanner.NestedNerDataset(data["validation"], tokenizer, model.config)
    train = hf_spanner.NestedNerDataset(data["train"], tokenizer, model.config)
    metrics = hf_spanner.NestedNerMetrics(model.config, validation)
    collate = hf_spanner.NestedNerCollator(tokenizer.pad_token_id)
    train_loader = DataLoader(train, run.per_device_train_batch_size, shuffle=True, collate_fn=collate)
    loader = DataLoader(validation, run.per_device_eval_batch_size, collate_fn=collate)

    # What is optimised, and how fast.
    groups = parameter_groups(model, run.learning_rate, run.head_learning_rate, run.weight_decay)
    optimizer = torch.optim.AdamW(groups)
    model, optimizer, train_loader, loader = accelerator.prepare(model, optimizer, train_loader, loader)
    steps = run.num_train_epochs * -(-len(train_loader) // run.gradient_accumulation_steps)
    schedule = get_scheduler("linear", optimizer, round(run.warmup_share * steps), steps)

    for epoch in range(1, run.num_train_epochs + 1):
        model.train()
        total = torch.tensor(0.0, device=accelerator.device)
        for batch in tqdm(train_loader, f"epoch {epoch}", leave=False, disable=not accelerator.is_local_main_process):
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), run.max_grad_norm)
                optimizer.step()
                optimizer.zero_grad()
                if accelerator.sync_gradients:
                    schedule.step()
            total += loss.detach()

        model.eval()
        for number, batch in enumerate(loader, 1):
            with torch.no_grad():
                found = model(**batch).predictions  # (B, P, 6): entities, and which sentence they are of
            found, gold = accelerator.pad_across_processes((found, batch["entities"]), dim=1, pad_index=-1)
            gathered = EvalPrediction(*accelerator.gather_for_metrics((found, gold)))
            scores = metrics(gathered, compute_result=number == len(loader))
        mean = accelerator.reduce(total / len(train_loader), "mean").item()
        accelerator.print(f"epoch {epoch}: loss {mean:.4f}, validation F1 {scores.get('f1', 0):.4f}")

    # A folder that `hf_spanner.pipeline` reads, and that can be pushed to the Hub.
    accelerator.unwrap_model(model).save_pretrained(
        run.output_dir,
        is_main_process=accelerator.is_main_process,
        state_dict=accelerator.get_state_dict(model),
    )
    if accelerator.is_main_process:
        tokenizer.save_pretrained(run.output_dir)
    accelerator.end_training()


if __name__ == "__main__":
    main()
