"""A model trained on a toy encoder, for tests."""

from collections.abc import Mapping
from pathlib import Path

from transformers import PrinterCallback, set_seed

from hf_spanner import NestedNerTrainer, NestedNerTrainingArguments, load_tokenizer
from hf_spanner.auto import approach as approach_of
from hf_spanner.building.toy import make_toy_encoder
from hf_spanner.data import label_names


def train_toy_model(
    folder: str | Path,
    data: Mapping[str, list],
    *,
    approach: str = "span_ner",
    epochs: int = 40,
    seed: int = 0,
    callbacks: list | None = None,
    **settings,
) -> dict[str, float]:
    """Train an approach on a toy encoder with the project's trainer, save it to `folder`, return validation scores.

    Args:
        data: sentences under `train` and `validation`, as [`hf_spanner.data.sample.load_sample`] gives them.
        settings: fields of the approach's configuration.
    """
    folder = Path(folder)
    set_seed(seed)
    encoder = make_toy_encoder(
        folder / "encoder", (" ".join(sentence["tokens"]) for sentence in data["train"]), seed=seed
    )
    labels = label_names(data["train"])
    model = approach_of(approach).from_encoder(encoder, labels=labels, **{"max_span_length": 12, **settings})
    trainer = NestedNerTrainer(
        model=model,
        args=NestedNerTrainingArguments(
            output_dir=str(folder),
            num_train_epochs=epochs,
            per_device_train_batch_size=16,
            max_grad_norm=1.0,
            learning_rate=2e-3,  # an encoder that knows nothing learns as fast as its head
            eval_strategy="no",
            save_strategy="no",
            load_best_model_at_end=False,
            logging_strategy="epoch",
            report_to="none",
            disable_tqdm=True,
            seed=seed,
        ),
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        processing_class=load_tokenizer(encoder),
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    trainer.save_model()
    return trainer.evaluate()
