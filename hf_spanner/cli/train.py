"""`hf-spanner train`: from annotated data to a saved model, its scores and the recipe that made it."""

import logging
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import transformers
from datasets import concatenate_datasets
from transformers.trainer_utils import IntervalStrategy
from transformers.utils import CONFIG_NAME

from ..auto import approach
from ..building import VectorArguments, build_model
from ..building.probing import collapsed_layers
from ..data import (
    join_corpora,
    join_sentences,
    label_names,
    load_nested_ner,
    mention_kinds,
    resplit_words,
    statistics,
    suggest_overlap,
)
from ..data.inspection import headlines, inspect
from ..data.plain import check_text
from ..data.splitting import documents, hold_out, make_folds
from ..evaluation.scoring import score_predictions
from ..hub.publishing import publish, write_companions, write_summary
from ..hub.record import RECORD, base_model, hub_id, read_record, training_record
from ..hub.several import SUMMARY, summarise, summary_table
from ..loading import check_encoder, load_config, load_for, load_model, load_tokenizer
from ..lock import locked
from ..metrics import format_scores
from ..modeling.folders import full_disk_said
from ..training import NestedNerTrainer, NestedNerTrainingArguments
from ..training.checkpoints import checkpoints_in, remove_all
from ..training.lora import add_lora, merge_lora
from ..training.settings import COLLAPSED, AtHand, choose
from . import options
from .arguments import parse_with_recipe
from .protocols import (
    ENCODER,
    count_sizes,
    encoder_of,
    joined_to_subwords,
    keep_the_last,
    like,
    subword_counter_of,
    trained_on,
)

LOOKED_THROUGH = 30_000  # sentences
FEW = 100  # sentences: with 50 of LitBank an encoder came to 44 to 51 F1, the default model to 65
FOLD_SEED = 42  # the parts of a cross-validation are the same for all models


@dataclass(kw_only=True)
class RunArguments(VectorArguments):
    """What to train, on what."""

    data: list[str] = field(
        metadata={
            "help": "Folders with splits, files, Hub data sets, or 'sample'. Of several, each is trained and scored "
            "against the labels it is annotated with."
        }
    )
    complete: list[str] = field(
        default_factory=list,
        metadata={
            "help": "Of several: those known to hold no entity of the others' labels, as examples without them."
        },
    )
    flat: list[str] = field(
        default_factory=list,
        metadata={
            "help": "Data that marks outermost entities alone: what lies inside or across them is then unknown, not "
            "absent. 'auto': all data in which no entities overlap."
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
        metadata={"help": "How entities are found, see below; span_ner if an encoder is named alone."},
    )
    encoder: str | None = field(
        default=None,
        metadata={
            "help": "The pretrained encoder of a new model: a Hub id or a folder. That of a trained nested NER model "
            f"('default' is one) will do, too; {ENCODER} if an approach is named and nothing else."
        },
    )
    model: str | None = field(
        default=None,
        metadata={
            "help": "A trained model to go on from, for the same labels or new ones. 'default' if neither this nor an "
            "encoder nor an approach is named."
        },
    )
    teacher: list[str] = field(
        default_factory=list,
        metadata={"help": "Trained models whose probabilities are learnt beside the annotation (distil_weight)."},
    )
    unlabelled: list[str] = field(
        default_factory=list,
        metadata={"help": "Text that teachers read, too: files or folders of .txt or .jsonl, packed or not."},
    )
    lora_rank: int | None = field(
        default=None, metadata={"help": "Train LoRA matrices of this rank, not the encoder (needs peft)."}
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
    join_subwords: int | None = field(
        default=None,
        metadata={
            "help": "Join neighbouring sentences of a document, in all splits, as long as they have at most so many "
            "sub-words together (DSpERT's code: 510)."
        },
    )
    train_on: list[str] = field(
        default_factory=lambda: ["train"],
        metadata={
            "help": "The splits to train on. With 'train validation' nothing is left to choose a checkpoint by: the "
            "last one is kept."
        },
    )
    size_embedding_quantile: float | None = field(
        default=None,
        metadata={
            "help": "Of dspert and biaffine_ner: as many sizes of spans have an embedding of their own as this share "
            "of the gold entities has (DSpERT's code: 0.975)."
        },
    )
    length_bins: list[str] | None = field(
        default=None,
        metadata={"help": "Score entities by these lengths, such as 1 2 3 4 5-9 10-, in place of the usual ones."},
    )
    max_train_sentences: int | None = field(default=None, metadata={"help": "Train on the first N sentences only."})
    max_eval_sentences: int | None = field(default=None, metadata={"help": "Likewise for validation and test."})
    seeds: list[int] | None = field(
        default=None,
        metadata={"help": "Train with each of these seeds: mean, spread, and the best model."},
    )
    folds: int | None = field(
        default=None,
        metadata={"help": "Cross-validate by document, on so many parts of the data."},
    )
    mentions: bool = field(
        default=False,
        metadata={"help": "Tell kinds of mention (name, nominal, pronoun) apart, if entities of the data have them."},
    )
    resume: bool = field(
        default=False,
        metadata={"help": "Go on from the last checkpoint in output_dir that is whole; without any, from the start."},
    )
    overwrite: bool = field(
        default=False, metadata={"help": "Train anew in an output_dir that holds a model or a training."}
    )


def main(argv: list[str] | None = None) -> int:
    """Train as told by a recipe and flags: `hf-spanner train [recipe.yaml] --data FOLDER --encoder NAME ...`."""
    argv = list(sys.argv[1:] if argv is None else argv)
    command = "hf-spanner train " + shlex.join(argv)
    task = parse(argv, command)
    logging.basicConfig(format="%(message)s", level=logging.INFO if task.args.should_log else logging.ERROR)
    options.check_reporters(task.args.report_to or ())
    if task.run.seeds is None and task.run.folds is None:
        run_task(task)
    else:
        train_several(task, lambda: parse(argv, command))
    return 0


@dataclass
class Task:
    """One training: what to run, and which part of the data is its test split, if it is one of several folds."""

    run: RunArguments
    args: NestedNerTrainingArguments
    settings: dict[str, Any]
    recipe: dict[str, Any]
    command: str
    fold: int | None = None
    quiet: bool = False

    @property
    def folder(self) -> Path:
        return Path(str(self.args.output_dir))

    def say(self, text: str) -> None:
        """Print, in one process of several."""
        if self.args.should_log and not self.quiet:
            options.say(text)


def parse(argv: list[str], command: str) -> Task:
    """The training that a command line asks for."""
    (run, args), settings, recipe = parse_with_recipe(argv, RunArguments, NestedNerTrainingArguments)
    if run.folds is not None and run.folds < 2:
        raise ValueError(f"--folds {run.folds} leaves nothing to train on: 2 or more, such as --folds 5.")
    if run.folds is not None and run.seeds is not None:
        raise ValueError("--folds trains on other parts of the data, --seeds on the same: leave one of them out.")
    if run.folds is not None and run.train_on != ["train"]:
        raise ValueError("--folds trains on all splits but test in parts, --train_on whole: leave one of them out.")
    if run.join_subwords is not None and (run.join_sizes or run.eval_join != 1):
        raise ValueError(
            "--join_subwords joins by size, --join_sizes and --eval_join by number: leave one of them out."
        )
    options.length_bins(run.length_bins)
    if "validation" in run.train_on:
        keep_the_last(args)
    if run.seeds is not None and len(set(run.seeds)) < max(len(run.seeds), 2):
        raise ValueError(f"--seeds {' '.join(map(str, run.seeds))}: name two seeds or more, each once.")
    if run.unlabelled and not run.teacher:
        raise ValueError("--unlabelled is text for teachers to read: name trained models with --teacher.")
    for teacher in run.teacher:  # what is missing is said before any work is done
        load_config(teacher)
    for text in run.unlabelled:
        check_text(text)
    return Task(run, args, settings, recipe, command)


def run_task(task: Task) -> dict[str, Any]:
    """Train, and return the record; what is finished is not trained again."""
    args, folder = task.args, task.folder
    if task.run.resume and is_finished(folder):
        task.say(
            f"The training in {folder} is finished ({RECORD}): there is nothing to resume. "
            f"--model {folder} goes on from its model, --overwrite trains anew."
        )
        return read_record(folder / RECORD)
    if not args.should_save:  # one process keeps other trainings out for all
        return train(task)
    with full_disk_said(str(folder), remedy="go on with --resume"), locked(str(folder)):
        check_room(task.run, args)
        return train(task)


def train_several(task: Task, again: Callable[[], Task]) -> None:
    """Train with several seeds, or on several parts of the data, each in a folder of its own; then mean and spread."""
    folder, seeds, folds = task.folder, task.run.seeds, task.run.folds
    if task.run.resume and (folder / SUMMARY).is_file():
        task.say(f"All trainings in {folder} are finished ({SUMMARY}): there is nothing to resume.")
        return
    check_room(task.run, task.args)
    records: dict[str, dict[str, Any]] = {}
    for number in seeds or range(int(folds or 0)):
        one = again()
        name = f"seed-{number}" if seeds else f"fold-{number + 1}"
        one.args.output_dir, one.args.push_to_hub = str(folder / name), False
        one.args.seed, one.fold = (number, None) if seeds else (one.args.seed, number)
        task.say(f"\n{name} of {len(seeds) if seeds else folds}: {one.folder}")
        records[name] = run_task(one)
    if task.args.should_save:
        summary = summarise(records)
        task.say(f"\n{summary_table(summary)}")
        write_summary(folder, summary, take_best=bool(seeds))
        if seeds:
            by = "the best on validation data" if "validation" in summary["mean"] else "the first"
            task.say(f"\n{folder} has the model of {summary['best']}, {by}.")
        if seeds and task.args.push_to_hub:
            args, (model, _) = task.args, load_model(str(folder))
            publish(model, args.hub_model_id or folder.name, private=args.hub_private_repo, token=args.hub_token)


def train(task: Task) -> dict[str, Any]:
    """Train, save, score and record, in a folder that is ours; returns the record."""
    run, args, settings, recipe, say = task.run, task.args, task.settings, task.recipe, task.say
    transformers.set_seed(args.seed)
    if run.model is None and "encoder_config" in approach(str(run.approach)).config_class.sub_configs:
        check_encoder(encoder_of(run))  # before the data, which may take long
    data = load_data(task)
    if "validation" not in data:  # nothing chooses a checkpoint, or ends training early
        args.eval_strategy, args.load_best_model_at_end, args.patience = IntervalStrategy.NO, False, None
        args.unset -= {"eval_strategy", "load_best_model_at_end", "patience"}
        say("no validation data: nothing is evaluated while training, and the last model is kept.")
    labels = run.labels or label_names(data, mentions=run.mentions)
    if run.mentions:
        settings.setdefault("mentions", mention_kinds(data))
        if not settings["mentions"]:
            raise ValueError("--mentions true: no entity of the data has a `mention` (name, nominal, ...) to learn.")
    settings.setdefault("overlap", overlap_of(run, data["train"]))
    sizes = ", ".join(f"{name} {len(part):,}" for name, part in data.items())
    say(f"{run.approach} on {', '.join(run.data)}: {sizes} sentences")
    say(f"labels: {', '.join(labels)}; overlap: {settings['overlap']}")
    if "flat" in data["train"].column_names:
        number = sum(data["train"]["flat"])
        say(f"flat: of {number:,} training sentences the spans inside or across entities are left out of the loss.")
    for line in (*unlearnable(data), *worth_knowing(task, data)):
        say(line)
    started = [*count_sizes(task, data), *choose_settings(task, data)]
    model, tokenizer, lines = start_model(task, labels, data)
    started += lines
    for line in started:
        say(line)

    model.restore_embeddings()
    lora = None if run.lora_rank is None else add_lora(model, run.lora_rank)
    trainer = NestedNerTrainer(
        model=model,
        args=args,
        train_dataset=data["train"],
        eval_dataset=data.get("validation"),
        processing_class=tokenizer,
        teachers=run.teacher,
        unlabelled=run.unlabelled,
    )
    for line in (*trainer.lessons, *trainer.choice.lines(), *trainer.reach.values()):
        say(line)
    built_on = base_model(
        run.model or (None if model.config.encoder_config is None else run.encoder or ENCODER),
        otherwise=recipe.get("encoder"),
    )
    if run.overwrite:
        trainer.accelerator.wait_for_everyone()  # all have read what they start from
        if args.should_save:
            make_room(task.folder, say)
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
            lengths = options.length_bins(run.length_bins)
            results[name] = score_predictions(model, found, sentences, groups=True, lengths=lengths)
            say(f"\n{name} ({len(sentences):,} sentences)\n{format_scores(results[name])}")
        trainer.record = training_record(
            trainer,
            results,
            command=task.command,
            run=vars(run),
            settings=settings,
            started=[*started, *trainer.choice.lines()],
            base_model=built_on,
            datasets=[name for name in map(hub_id, run.data) if name] or None,
            data=" and ".join(Path(source).name for source in run.data),
        )
        trainer.recipe = recipe
        write_companions(str(args.output_dir), trainer.whole_model(), tokenizer, trainer.record, recipe)
        use = f"evaluate --data {run.data[0]}" if model.task == "typing" else 'predict "..."'
        say(f"\nSaved to {args.output_dir}: hf-spanner {use} --model {args.output_dir}")
    if args.push_to_hub:
        trainer.push_to_hub()
        say(f"Pushed to the Hub: {trainer.hub_model_id}")
    return trainer.record


def load_data(task: Task) -> Any:
    """The splits to train on, to choose by and to test on, of all the data that was named."""
    run = task.run
    splitter = splitter_of(task)
    repeats = run.repeats or [1] * len(run.data)
    if len(repeats) != len(run.data) or min(repeats) < 1:
        raise ValueError(f"repeats={repeats} must be a number of at least 1 for each of {', '.join(run.data)}.")
    corpora = {
        source: load_corpus(source, task, splitter, times) for source, times in zip(run.data, repeats, strict=True)
    }
    return join_corpora(corpora, run.complete, run.flat)


def overlap_of(run: RunArguments, sentences: Any) -> str:
    """Which predictions may stand together: those that do in the data, unless that says too little."""
    if run.approach == "seq_ner":
        return "flat"
    return "nested" if run.flat else suggest_overlap(sentences)


def splitter_of(task: Task) -> str:
    """How the model will cut raw text into words."""
    run = task.run
    start = approach(str(run.approach)).config_class if run.model is None else load_config(run.model)
    return str(task.settings.get("word_splitter", start.word_splitter))


def choose_settings(task: Task, data: Any) -> list[str]:
    """Choose what nobody set of a new model's settings; returns lines that say what and why."""
    run, settings = task.run, task.settings
    if run.model is not None or "learning_rate" in task.recipe:  # it has its own; it is complete
        return []
    choice = choose(new_model(run, data, look_inside="fresh_layers" not in settings))
    choice.model, choice.training = {name: value for name, value in choice.model.items() if name not in settings}, {}
    settings |= choice.model
    lines = choice.lines()
    if len(data["train"]) < FEW:
        lines.append(
            f"{len(data['train'])} sentences are few for a new model: --model default (English) starts from one that "
            "knows entities."
        )
    return lines


def start_model(task: Task, labels: list[str], data: Any) -> tuple[Any, Any, list[str]]:
    """The model that training starts with, its tokenizer, and lines that say what its labels start from."""
    run, settings = task.run, task.settings
    if run.model is not None:
        return load_for(run.model, labels, data["train"], **settings)
    folder = task.folder if task.args.should_save else None
    model, tokenizer = build_model(
        str(run.approach), labels, settings, encoder_of(run), data, run, task.args.seed, folder, task.say
    )
    return model, tokenizer, []


def new_model(run: RunArguments, data: Any, look_inside: bool) -> AtHand:
    """What is known before there is a model; `look_inside`: whether to look at the encoder's layers."""
    name, encoder = str(run.approach), encoder_of(run)
    on_encoder = "encoder_config" in approach(name).config_class.sub_configs
    rows = [row for split in ("train", "validation") if split in data for row in data[split]["entities"]]
    layers = 0
    if look_inside and on_encoder:
        layers = collapsed_layers(encoder, load_tokenizer(encoder), data["train"], COLLAPSED)
    return AtHand(
        approach=name,
        trained=False,
        width=1 if on_encoder else None,  # how wide is of no consequence for a model's settings
        sentences=len(data["train"]),
        validation=len(data.get("validation", ())),
        lengths=[entity["end"] - entity["start"] for row in rows for entity in row],
        collapsed_layers=layers,
    )


def worth_knowing(task: Task, data: Any) -> list[str]:
    """What `hf-spanner inspect` would say first, of one corpus of a size that is soon looked through."""
    if len(task.run.data) > 1 or sum(map(len, data.values())) > LOOKED_THROUGH or not task.args.should_log:
        return []
    found = headlines(
        inspect(data, word_splitter=splitter_of(task)), said=("labels that train lacks", "out of reach", "little data")
    )
    return [f"{line} (hf-spanner inspect {task.run.data[0]})" for line in found]


def unlearnable(data: Mapping[str, Any]) -> list[str]:
    """A line for each split with labels that no training sentence has."""
    known = set(label_names(data["train"]))
    lines = []
    for split, part in data.items():
        counts = statistics(part).labels
        if missing := [f"{label} ({counts[label]:,})" for label in sorted(counts.keys() - known)]:
            if not counts.keys() & known:
                raise ValueError(f"No label of {split} is in train: {', '.join(missing)} against {', '.join(known)}.")
            lines.append(f"{split} has what train lacks and nobody can learn: {', '.join(missing)}.")
    return lines


def is_finished(folder: str | Path) -> bool:
    """Whether a folder holds a model with the record of its training, which is the last thing written."""
    return (Path(folder) / RECORD).is_file() and (Path(folder) / CONFIG_NAME).is_file()


def check_room(run: RunArguments, args: NestedNerTrainingArguments) -> None:
    """Refuse to replace, or to mix with, what `output_dir` holds, unless that was asked for."""
    folder, goes_on = Path(str(args.output_dir)), run.resume or args.resume_from_checkpoint
    if run.overwrite and goes_on:
        raise ValueError("--overwrite begins anew and --resume goes on: leave one of them out.")
    if any(folder.resolve() == Path(source).resolve() for source in run.data):
        raise ValueError(f"{folder} is the folder of the data: name another output_dir.")
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


def load_corpus(source: str, task: Task, splitter: str, repeats: int = 1):
    """One data set, with a validation split, cut down, reshaped and repeated as was asked for."""
    run, seed = task.run, task.args.seed
    data = load_nested_ner(source, format=run.format, splitter=splitter)
    if empty := [split for split, part in data.items() if not len(part)]:
        raise ValueError(f"{source} has no sentence in its split {empty[0]!r}: fill the file or remove it.")
    if task.fold is not None:
        data = one_fold(data, int(run.folds or 0), task.fold, FOLD_SEED)
    data = trained_on(data, run.train_on) if run.train_on != ["train"] else data
    if "validation" not in run.train_on and task.args.eval_strategy != IntervalStrategy.NO:
        data = with_validation(data, seed, task.say)
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
    if run.join_subwords is not None:
        data = joined_to_subwords(data, run.join_subwords, subword_counter_of(task), task.say)
    if run.eval_join != 1:
        for split in data.keys() - {"train"}:
            data[split] = like(data[split], list(join_sentences(data[split], [run.eval_join])))
    return data


def one_fold(data, number: int, fold: int, seed: int):
    """Training and validation data together, with one of so many parts as the test split."""
    whole = concatenate_datasets([data[split] for split in ("train", "validation") if split in data])
    folds = make_folds(documents(whole), number, seed)
    rest = sorted(index for i, part in enumerate(folds) if i != fold for index in part)
    return type(data)({"train": whole.select(rest), "test": whole.select(folds[fold])})


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
    """The data with a validation split: its own, or a tenth of the training data held out by document (and said)."""
    if "train" not in data:
        raise ValueError(f"The data has no train split, only {sorted(data)}.")
    if "validation" not in data:
        groups = documents(data["train"])
        if len(groups) < 2:
            what = "one sentence" if len(data["train"]) < 2 else f"{len(data['train']):,} sentences of one document"
            raise ValueError(f"The data is {what}, and has no validation split: add one, or a second document.")
        kept, held = hold_out(groups, 0.1, seed)
        by = "" if len(groups) == len(data["train"]) else ", whole documents"
        say(f"No validation split: {len(held):,} of {len(data['train']):,} training sentences are held out{by}.")
        data["train"], data["validation"] = data["train"].select(kept), data["train"].select(held)
    return data
