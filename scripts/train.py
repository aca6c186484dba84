"""Fine-tune a nested NER model with the Python API: read it, copy it, change it. (`hf-spanner train` does far more.)

python scripts/train.py --data sample --encoder bert-base-cased --output_dir runs/mine
torchrun --nproc_per_node 8 scripts/train.py --data genia/ --approach dspert --output_dir runs/genia --bf16 True
"""

from dataclasses import dataclass, field

from transformers import HfArgumentParser, set_seed

import hf_spanner
from hf_spanner.data import label_names, suggest_overlap


@dataclass
class Run:
    data: str = field(metadata={"help": "A folder with train and validation files, a Hub data set, or 'sample'."})
    approach: str = field(default="span_ner", metadata={"help": f"One of {', '.join(hf_spanner.APPROACHES)}."})
    encoder: str = field(default="bert-base-cased", metadata={"help": "Hub id or folder of any AutoModel encoder."})


def main() -> None:
    run, args = HfArgumentParser((Run, hf_spanner.NestedNerTrainingArguments)).parse_args_into_dataclasses()
    set_seed(args.seed)
    data = hf_spanner.load_nested_ner(run.data)
    model = hf_spanner.APPROACHES[run.approach].from_encoder(
        run.encoder, labels=label_names(data), max_span_length=12, overlap=suggest_overlap(data["train"])
    )
    trainer = hf_spanner.NestedNerTrainer(
        model=model,
        args=args,
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        processing_class=hf_spanner.load_tokenizer(run.encoder),
    )
    print(*trainer.reach.values(), sep="\n")  # what the model could never find
    trainer.train()
    trainer.save_model()
    if "test" in data:
        print(trainer.evaluate(data["test"], metric_key_prefix="test"))
    if args.push_to_hub:
        trainer.push_to_hub()


if __name__ == "__main__":
    main()
