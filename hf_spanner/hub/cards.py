"""Model cards: what a model is, how it was made and what it can do, written from its record (`training.json`)."""

import pprint
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from ..harmless import harmless
from ..metrics.tasks import TASKS
from ..modeling.pipeline_nested_ner import NestedNerPipeline
from .record import public
from .several import summary_line

_PACKAGE = Path(__file__).resolve().parents[1]
FOLDER = next(  # beside the package in the source tree, inside it once installed
    folder
    for folder in (_PACKAGE / "model_cards", _PACKAGE.parent / "model_cards")
    if (folder / "template.md").is_file()
)
GENERATED = (
    "<!-- Written by hf_spanner from training.json. Delete this line to keep your own text: it is then left alone. -->"
)
EXAMPLE = "The mayor of New York met the head of the Bank of England in London."
TASK: dict[str, Any] = {"task_type": "token-classification", "task_name": "Nested named entity recognition"}


@dataclass
class About:
    """What only the author of a model knows; everything else in a card comes from the model and its record."""

    language: str | list[str] | None = None
    license: str | None = None
    datasets: str | list[str] | None = None
    base_model: str | None = None
    tags: list[str] | None = None
    limits: str | None = None

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


def make_card(model, tokenizer, name: str, record: Mapping[str, Any], about: About | None = None) -> ModelCard:
    """The card of a model under the name (a Hub id or a folder) by which it is loaded.

    Args:
        record: as `training_record` makes it; may be empty.
    """
    about, record, config = about or About(), public(record), model.config
    results = record.get("results", {})
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="token-classification",
        base_model=about.base_model or record.get("base_model"),
        datasets=_list(about.datasets) or record.get("datasets"),
        language=about.language,
        license=about.license,
        tags=["nested-ner", "named-entity-recognition", "hf_spanner", config.model_type, *(about.tags or [])],
        metrics=TASKS[model.task].card_metrics,
        model_name=name.rstrip("/").split("/")[-1],
        eval_results=[row for split, scores in results.items() for row in eval_results(split, scores, record, about)]
        or None,
    )
    code, note = usage(model, tokenizer, name, record.get("example"))
    return ModelCard.from_template(
        data,
        template_str=(FOLDER / "template.md").read_text(encoding="utf-8"),
        generated=GENERATED,
        title=name.rstrip("/").split("/")[-1],
        summary=summary(model, record, about),
        usage=code,
        usage_note=note,
        labels=label_rows(config.types, record.get("labels", {})),
        results=[{"title": split.capitalize(), "tables": tables(scores)} for split, scores in results.items()],
        command=record.get("command"),
        export=export_lines(record),
        training=training_lines(record),
        reach=record.get("reach"),
        settings=settings_of(record),
        limits=limits(model, about),
        citation=citation(config.model_type),
    )


def summary(model, record: Mapping, about: About) -> str:
    config = model.config
    base = about.base_model or record.get("base_model")
    on = f" on [{base}](https://huggingface.co/{base})" if base else ""
    data = (_list(about.datasets) or record.get("datasets") or [record.get("data")])[0]
    trained = f", trained on {data}" if data else ""
    return (
        f"A `{config.model_type}` model of hf_spanner{trained}{on}. "
        f"It {TASKS[model.task].does} with {len(config.types)} labels: "
        f"{', '.join(f'`{harmless(label)}`' for label in config.types)}."
    )


def usage(model, tokenizer, name: str, example: Mapping | None) -> tuple[str, str]:
    """Code that runs as printed, with what it prints, and what to say below it."""
    if model.task == "typing":
        example = example or {"tokens": EXAMPLE.split(), "entities": [{"start": 3, "end": 5}]}
        spans = [{"start": entity["start"], "end": entity["end"]} for entity in example["entities"]]
        code = (
            "from hf_spanner import load_model, predict_sentences\n\n"
            f"model, tokenizer = load_model({name!r})\n"
            f"sentence = {pprint.pformat({'tokens': example['tokens'], 'entities': spans}, width=110, compact=True)}\n"
            "print(predict_sentences(model, tokenizer, [sentence]))"
        )
        return code, "The model types spans that are given; it cannot find entities in a text."
    text = " ".join(example["tokens"]) if example else EXAMPLE
    lines = [
        "import hf_spanner",
        "from transformers import pipeline",
        "",
        f'ner = pipeline("nested-ner", model={name!r})',
        f"for entity in ner({text!r}):",
        '    print(entity["entity_group"], entity["word"], round(entity["score"], 2), sep="\\t")',
    ]
    if tokenizer is not None:
        found = NestedNerPipeline(model=model, tokenizer=tokenizer)(text)
        lines += [f"# {e['entity_group']}\t{e['word']}\t{round(e['score'], 2)}" for e in found]
    if getattr(model.config, "onnx", None) is not None:
        return "\n".join(lines), "`pip install 'hf_spanner[onnx]'` first."
    return "\n".join(lines), (
        "`pip install hf_spanner` first; with it, no code of this repository is run. Without it, leave out the first "
        "line and pass `trust_remote_code=True`: the files of this repository then run, on transformers and torch."
    )


def label_rows(labels: Iterable[str], seen: Mapping[str, Mapping]) -> list[dict[str, str]]:
    rows = []
    for label in labels:
        row = seen.get(label, {})
        examples = ", ".join(_cell(text) for text in row.get("examples", []))
        rows.append({"name": _cell(label), "count": f"{row['count']:,}" if row else "", "examples": examples})
    return rows


def tables(scores: Mapping[str, Any]) -> list[str]:
    """Per type, then by length and by depth, as far as they were measured."""
    if "typing_accuracy" in scores:
        rows = [*scores["per_type"].items(), ("**all**", scores)]
        cells = [[name, f"{100 * row['typing_accuracy']:.1f}", f"{row['support']:,}"] for name, row in rows]
        return [_table(["type (spans given)", "accuracy", "support"], cells)]
    groups = scores.get("groups", {})
    parts = [
        _score_table("type", [*scores["per_type"].items(), ("**all (micro)**", scores)]),
        f"Macro F1 {100 * scores['macro_f1']:.1f}; located, whatever the label: F1 {100 * scores['locate_f1']:.1f}.",
    ]
    for by, title in (("length", "length"), ("depth", "depth in the gold")):
        if by in groups:
            parts.append(_score_table(title, groups[by].items()))
    return parts


def _score_table(title: str, rows: Iterable[tuple[str, Mapping]]) -> str:
    names = ("precision", "recall", "f1")
    cells = [[name, *(f"{100 * row[n]:.1f}" for n in names), f"{row['support']:,}"] for name, row in rows]
    return _table([title, "precision", "recall", "F1", "support"], cells)


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def training_lines(record: Mapping[str, Any]) -> list[str]:
    """Sizes, seed and selection, versions: what stands beside the settings."""
    lines = []
    if sizes := record.get("sentences"):
        lines.append(f"Sentences: {', '.join(f'{split} {count:,}' for split, count in sizes.items())}.")
    if "seed" in record:
        processes = record.get("processes", 1)
        lines.append(f"Seed {record['seed']}, one run{f' of {processes} processes' if processes > 1 else ''}.")
    if parameters := record.get("parameters"):
        lines.append(f"Parameters: {parameters['all']:,}, of which {parameters['encoder']:,} are the encoder's.")
    if seconds := record.get("training_seconds"):
        lines.append(f"Training took {duration(seconds)}, evaluations included.")
    if several := record.get("several"):
        lines.append(f"{summary_line(several)} This is the model of {several['best']}.")
    if teaching := record.get("teaching"):
        lines.append(_cell(taught_by(teaching)))
    lines += [_cell(line) for line in record.get("started", [])]
    if record.get("selected_by"):
        evaluations = len(record.get("history", []))
        lines.append(
            f"The checkpoint was chosen by `{record['selected_by']}` on the validation data, out of {evaluations}; "
            "the test data had no part in it."
        )
    elif record:
        lines.append("The last checkpoint was taken; none was chosen by its score.")
    if versions := record.get("versions"):
        lines.append(", ".join(f"{name} {version}" for name, version in versions.items()) + ".")
    return lines or ["How the model was trained was not recorded."]


def duration(seconds: float) -> str:
    """`47 s`, `12 min`, `3.4 h`"""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def taught_by(teaching: Mapping[str, Any]) -> str:
    """A sentence about the teachers of a distilled model."""
    names = " and ".join(Path(name).name for name in teaching["teachers"])
    texts = f", also of {teaching['texts']:,} texts without annotation" if teaching["texts"] else ""
    how = f": weight {teaching['weight']:g}, temperature {teaching['temperature']:g}" if "weight" in teaching else ""
    return f"Distilled from the {teaching['by']} of {names}{texts}{how}."


def export_lines(record: Mapping[str, Any]) -> list[str]:
    """What was exported from what with which versions, and what the check said."""
    if not (about := record.get("export")):
        return []
    check, plan = about["check"], about["plan"]
    what = "with weights in eight bits" if about["int8"] else "in single precision"
    speed = ", ".join(f"{ratio} times at batch {size}" for size, ratio in check["speed"].items())
    return [
        _cell(f"The {about['part']} of `{about['from']}` for ONNX Runtime {what}, opset {about['opset']}."),
        *(_cell(f"`{kind}`: {what}, as F1 asked for it.") for kind, what in plan.items()),
        _cell(
            f"On {check['sentences']:,} sentences of {about['data']} with {check['entities']:,} entities, other ones "
            f"than in torch in {check['differing']:,} sentences; F1 {100 * check['exported_f1']:.2f}, "
            f"{'in torch' if check['gold'] else 'by what torch finds,'} {100 * check['f1']:.2f}; as fast as torch: "
            f"{speed}, in turns on the machine that exported it."
        ),
        ", ".join(f"{name} {number}" for name, number in about["versions"].items()) + ".",
    ]


def settings_of(record: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        *((name, value) for name, value in record.get("settings", {}).items()),
        *((name, value) for name, value in record.get("training", {}).items() if value not in (None, False, -1)),
    ]


def limits(model, about: About) -> list[str]:
    config = model.config
    lines = [about.limits] if about.limits else []
    if model.heads == ("seq",) or config.overlap == "flat":
        lines.append("Overlapping entities are not found: of nested ones at most the outermost is.")
    reach = model.reach()
    if reach.longest is not None:
        lines.append(f"Entities of more than {reach.longest} {reach.unit}s are not found.")
    if not config.multi_label:
        lines.append("A span gets one label.")
    lines.append(
        "The scores above hold for data like that it was trained on; other domains and languages were not measured."
    )
    return lines


def citation(approach: str) -> str | None:
    papers = yaml.safe_load((FOLDER / "papers.yaml").read_text(encoding="utf-8"))
    return next((paper["bibtex"].strip() for paper in papers if approach in paper["approaches"]), None)


# ---------------------------------------------------------------------------------------------------- results as data


def eval_results(split: str, scores: Mapping[str, Any], record: Mapping, about: About) -> list[EvalResult]:
    """Every measured number of a split, for `model-index`."""
    name = (_list(about.datasets) or record.get("datasets") or [record.get("data") or "unknown"])[0]
    dataset: dict[str, Any] = {
        "dataset_type": re.sub(r"[^\w./-]+", "-", name),
        "dataset_name": name,
        "dataset_split": split,
    }
    numbers = {name: value for name, value in scores.items() if isinstance(value, float)}
    rows = [(name, name, value) for name, value in numbers.items()]
    kind = "typing_accuracy" if "typing_accuracy" in scores else "f1"
    rows += [(kind, f"{kind} ({label})", row[kind]) for label, row in scores["per_type"].items()]
    for by in ("length", "nesting", "depth"):
        groups = scores.get("groups", {}).get(by, {})
        rows += [("f1", f"f1 ({by}: {group})", row["f1"]) for group, row in groups.items() if row["support"]]
    types = {"typing_accuracy": "accuracy"}
    return [
        EvalResult(
            **TASK,
            **dataset,
            metric_type=types.get(kind, kind.rpartition("_")[2]),
            metric_name=name,
            metric_value=round(value, 4),
        )
        for kind, name, value in rows
    ]


def eval_results_files(record: Mapping[str, Any], about: About | None = None) -> dict[str, str]:
    """`.eval_results/*.yaml` by path: one file a split. The form needs a data set on the Hub; without one, none."""
    about, record = about or About(), public(record)
    dataset = (_list(about.datasets) or record.get("datasets") or [None])[0]
    if dataset is None:
        return {}
    files = {}
    for split, scores in record.get("results", {}).items():
        kind = "typing_accuracy" if "typing_accuracy" in scores else "f1"
        entry = {
            "dataset": {"id": dataset, "task_id": f"nested_ner_{split}"},
            "value": round(100 * scores[kind], 2),
            "notes": f"strict micro {kind} on the {split} split, in per cent",
        }
        # A split is called what a record says, and must not lead out of the folder.
        name = re.sub(r"[^\w .-]", "_", split)[:100]
        files[f".eval_results/nested_ner_{name}.yaml"] = yaml.safe_dump([entry], sort_keys=False)
    return files


def _list(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])


def _cell(text: Any) -> str:
    """Text inside a Markdown table."""
    return harmless(text, keep="\n").replace("|", "\\|").replace("\n", " ")
