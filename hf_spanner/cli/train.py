"""`hf-spanner train`: from annotated data to a saved model, its scores and the recipe that made it."""

import logging
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import transformers
from transformers.utils import CONFIG_NAME

from ..auto import approach
from ..building import VectorArguments, build_model
from ..building.relabelling import load_for
from ..data import (
    join_corpora,
    join_sentences,
    label_names,
    load_nested_ner,
    resplit_words,
    suggest_overlap,
)
from ..evaluation.scoring import score_predictions
from ..hub.publishing import write_companions
from ..hub.record import RECORD, base_model, hub_id, training_record
from ..loading import load_config
from ..metrics import format_scores
from ..modeling.folders import full_disk_said
from ..training import NestedNerTrainer, NestedNerTrainingArguments
from ..training.checkpoints import checkpoints_in, remove_all
from ..training.lock import locked
from ..training.lora import add_lora, merge_lora
from . import options
from .arguments import parse_with_recipe


@dataclass(kw_only=True)
class RunArguments(VectorArguments):
    """What to train, on what."""

    data: list[str] = field(
        metadata={
            "help": "A folder with train, validation and test files, one file, a Hub data set, or 'sample', the "
            "corpus of the package. Of several, each is trained and scored against the labels it is annotated with."
        }
    )
    complete: list[str] = field(
        default_factory=list,
        metadata={
            "help": "Of several: those known to hold no entity of the others' labels, as examples without them."
        },
    )
    repeats: list[int] | None = field(
        default=None,
        metadata={
            "help": "Of several: how many times each is passed in an epoch, such as 1 2 for a small second one."
        },
    )
    approach: str | None = field(
        default=None,
        metadata={"help": "The approach: span_ner (if none is named), bl_ner, seq_ner, biaffine_ner, ..."},
    )
    encoder: str = field(
        default="bert-base-cased",
        metadata={
            "help": "Hub id or folder of the pretrained encoder, or of a trained nested NER model ('default' is one), "
            "whose encoder is taken."
        },
    )
    model: str | None = field(
        default=None, metadata={"help": "Go on from a trained nested NER model, with its labels or with new ones."}
    )
    lora_rank: int | None = field(
        default=None, metadata={"help": "Train LoRA matrices of this rank in place of the encoder (needs peft)."}
    )
    format: str | None = field(
        default=None, metadata={"help": "The data's format, if it cannot be told from the file."}
    )
    labels: list[str] | None = field(default=None, metadata={"help": "The entity types; those of the data if unset."})
    resplit: bool = field(
        default=False, metadata={"help": "Cut the data's words as the model will cut raw text (word_splitter)."}
    )
    join_sizes: list[int] | None = field(
        default=None,
        metadata={"help": "Join neighbouring sentences for training, so many at a time, such as 1 1 2 4, at random."},
    )
    eval_join: int = field(
        default=1, metadata={"help": "Read validation and test data so many neighbouring sentences at a time."}
    )
    max_train_sentences: int | None = field(default=None, metadata={"help": "Train on the first N sentences only."})
    max_eval_sentences: int | None = field(default=None, metadata={"help": "Likewise for validation and test."})
    resume: bool = field(
        default=False,
        metadata={"help": "Go on from the last checkpoint in output_dir that is whole; without any, from the start."},
    )
    overwrite: bool = field(
        default=False, metadata={"help": "Train anew in an output_dir that holds a model or a training."}
    )


def main(argv: list[str] | None = None) -> int:
    """Train as told by a recipe and flags: `hf-spanner train [recipe.yaml] --data FOLDER --encoder NAME ...`."""
    (run, args), settings, recipe = parse_with_recipe(argv, RunArguments, NestedNerTrainingArguments)
    logging.basicConfig(format="%(message)s", level=logging.INFO if args.should_log else logging.ERROR)

    options.check_reporters(args.report_to)

    def say(text: str) -> None:
        if args.should_log:
            options.say(text)

    if run.resume and is_finished(str(args.output_dir)):
        say(
            f"The training in {args.output_dir} is finished ({RECORD}): there is nothing to resume. "
            f"--model {args.output_dir} goes on from its model, --overwrite trains anew."
        )
        return 0
    if not args.should_save:  # one process keeps other trainings out for all
        return train(run, args, settings, recipe, say)
    with full_disk_said(str(args.output_dir), remedy="go on with --resume"), locked(str(args.output_dir)):
        check_room(run, args)
        return train(run, args, settings, recipe, say)


def train(run: RunArguments, args: NestedNerTrainingArguments, settings: dict, recipe: dict, say) -> int:
    """Train, save, score and record, in a folder that is ours."""
    transformers.set_seed(args.seed)
    name = str(run.approach)  # `choose_approach` has seen to it
    data = load_data(run, settings, args.seed, say)
    labels = run.labels or label_names(data)
    settings.setdefault("overlap", suggest_overlap(data["train"]) if run.approach != "seq_ner" else "flat")
    sizes = ", ".join(f"{name} {len(part):,}" for name, part in data.items())
    say(f"{run.approach} on {', '.join(run.data)}: {sizes} sentences")
    say(f"labels: {', '.join(labels)}; overlap: {settings['overlap']}")

    if run.model is not None:
        model, tokenizer, lines = load_for(run.model, labels, data["train"], **settings)
        for line in lines:
            say(line)
    else:
        folder = Path(str(args.output_dir)) if args.should_save else None
        model, tokenizer = build_model(
            name, labels, settings, run.encoder, data, run, seed=args.seed, folder=folder, say=say
        )

    model.restore_embeddings()
    lora = None if run.lora_rank is None else add_lora(model, run.lora_rank)
    trainer = NestedNerTrainer(
        model=model,
        args=args,
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        processing_class=tokenizer,
    )
    for line in trainer.reach.values():
        say(line)
    built_on = base_model(
        run.model or (None if model.config.encoder_config is None else run.encoder), otherwise=recipe.get("encoder")
    )
    if run.overwrite:
        trainer.accelerator.wait_for_everyone()  # all have read what they start from
        if args.should_save:
            make_room(Path(str(args.output_dir)), say)
    resume = run.resume and bool(checkpoints_in(str(args.output_dir)))
    if run.resume and not resume:
        say(f"{args.output_dir} has no checkpoint yet: training begins at the start.")
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint or resume)

    if lora is not None:
        merge_lora(lora)
    trainer.save_model()
    for split in ("validation", "test"):  # every process takes part; what was read in training is not read again
        if split in data and split not in trainer.predictions:
            trainer.evaluate(data[split], metric_key_prefix="eval" if split == "validation" else split)
    if trainer.is_world_process_zero():
        results = {}
        for name, found, sentences in parts_to_score(trainer.predictions):
            results[name] = score_predictions(model, found, sentences, groups=True)
            say(f"\n{name} ({len(sentences):,} sentences)\n{format_scores(results[name])}")
        trainer.record = training_record(
            trainer,
            results,
            command="hf-spanner train " + shlex.join(sys.argv[1:]),
            run=vars(run),
            settings=settings,
            base_model=built_on,
            datasets=[name for name in map(hub_id, run.data) if name] or None,
            data=" and ".join(Path(source).name for source in run.data),
        )
        trainer.recipe = recipe
        write_companions(str(args.output_dir), model, tokenizer, trainer.record, recipe)
        use = f"evaluate --data {run.data[0]}" if model.task == "typing" else 'predict "..."'
        say(f"\nSaved to {args.output_dir}: hf-spanner {use} --model {args.output_dir}")
    if args.push_to_hub:
        trainer.push_to_hub()
        say(f"Pushed to the Hub: {trainer.hub_model_id}")
    return 0


def is_finished(folder: str | Path) -> bool:
    """Whether a folder holds a model with the record of its training, which is the last thing written."""
    return (Path(folder) / RECORD).is_file() and (Path(folder) / CONFIG_NAME).is_file()


def check_room(run: RunArguments, args: NestedNerTrainingArguments) -> None:
    """Refuse to replace, or to mix with, what `output_dir` holds, unless that was asked for."""
    folder, goes_on = Path(str(args.output_dir)), run.resume or args.resume_from_checkpoint
    if run.overwrite and goes_on:
        raise ValueError("--overwrite begins anew and --resume goes on: leave one of them out.")
    if run.overwrite:
        return
    if is_finished(str(args.output_dir)):
        what, remedy = f"a finished model ({RECORD})", "--overwrite replaces it"
    elif (old := checkpoints_in(folder)) and not goes_on:
        what, remedy = f"an unfinished training ({old[0].name})", "--resume goes on with it, --overwrite begins anew"
    elif (folder / CONFIG_NAME).is_file() and not goes_on:
        what, remedy = f"a model ({CONFIG_NAME})", "--overwrite replaces it"
    else:
        return
    raise FileExistsError(f"{folder} holds {what}: {remedy}, or name another output_dir.")


def make_room(folder: Path, say) -> None:
    """Remove what would pass a former training in `folder` off as this one; its model stays until there is a new."""
    if is_finished(folder) or checkpoints_in(folder):
        say(f"{folder} is trained in anew (--overwrite): the former training's record and checkpoints are removed.")
    (folder / RECORD).unlink(missing_ok=True)
    remove_all(folder)


def load_data(run: RunArguments, settings: Mapping, seed: int, say):
    """The data to train and score on: the corpora as they are asked for, joined."""
    start = approach(str(run.approach)).config_class if run.model is None else load_config(run.model)
    splitter = settings.get("word_splitter", start.word_splitter)
    repeats = run.repeats or [1] * len(run.data)
    if len(repeats) != len(run.data) or min(repeats) < 1:
        raise ValueError(f"repeats={repeats} must be a number of at least 1 for each of {', '.join(run.data)}.")
    corpora = {
        source: load_corpus(source, run, splitter, seed, say, times)
        for source, times in zip(run.data, repeats, strict=True)
    }
    return join_corpora(corpora, run.complete)


def load_corpus(source: str, run: RunArguments, splitter: str, seed: int, say, repeats: int = 1):
    """One data set, with a validation split, cut down, reshaped and repeated as was asked for."""
    data = with_validation(load_nested_ner(source, format=run.format, splitter=splitter), seed, say)
    for split in data:
        limit = run.max_train_sentences if split == "train" else run.max_eval_sentences
        if limit is not None and limit < len(data[split]):
            data[split] = data[split].select(range(limit))
        if run.resplit:
            data[split] = like(data[split], [resplit_words(sentence, splitter) for sentence in data[split]])
    if run.join_sizes or repeats > 1:  # joined in another way each time
        sizes = run.join_sizes or [1]
        passes = [sentence for i in range(repeats) for sentence in join_sentences(data["train"], sizes, seed + i)]
        data["train"] = like(data["train"], passes)
    if run.eval_join != 1:
        for split in data.keys() - {"train"}:
            data[split] = like(data[split], list(join_sentences(data[split], [run.eval_join])))
    return data


def like(part, sentences: list):
    """Sentences as a data set with the columns of another."""
    return type(part).from_list(sentences, features=part.features)


def parts_to_score(predictions: Mapping[str, tuple]) -> Iterator[tuple[str, list, list]]:
    """What was found in validation and test data, and the gold sentences; of several corpora each one's, too."""
    for split, (found, dataset) in predictions.items():
        yield split, found, dataset.sentences
        of = [sentence.get("corpus") for sentence in dataset.sentences]
        if len(set(of)) > 1:
            for corpus in dict.fromkeys(of):
                chosen = [i for i, name in enumerate(of) if name == corpus]
                yield f"{split} of {corpus}", [found[i] for i in chosen], [dataset.sentences[i] for i in chosen]


def with_validation(data, seed: int, say):
    """The data with a validation split: its own, or a tenth of the training sentences held out (and said)."""
    if "train" not in data:
        raise ValueError(f"The data has no train split, only {sorted(data)}.")
    if "validation" not in data:
        if len(data["train"]) < 2:
            raise ValueError("The data has one sentence and no validation split: at least two sentences are needed.")
        parts = data["train"].train_test_split(test_size=max(1, len(data["train"]) // 10), seed=seed)
        say(f"No validation split: {len(parts['test']):,} of {len(data['train']):,} training sentences are held out.")
        data["train"], data["validation"] = parts["train"], parts["test"]
    return data
