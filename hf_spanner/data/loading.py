"""One loader for everything: a file, a folder with splits, a dataset on the Hub or one already in memory."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .chars import WHOLE_TEXTS, Splitter, TextOptions
from .columns import sentences_of_columns
from .readers import DATA_SUFFIXES, data_files, open_file
from .readers.brat import brat_files
from .readers.cas import xmi_files
from .readers.files import check_rereadable, plain_name
from .readers.guessing import data_suffix
from .readers.tables import open_arrow
from .schema import FURTHER, ReadReport, Sentence, check_sentence, features, first_line, several

if TYPE_CHECKING:
    import datasets

logger = logging.getLogger("hf_spanner")

SPLIT_NAMES = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev", "devel", "development", "testa"),
    "test": ("test", "testing", "testb"),
}
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")

_BATCH = 1000  # sentences in memory at a time

Splits = Mapping[str, str] | Sequence[str]


def load_nested_ner(
    source: str | Path | datasets.Dataset | datasets.DatasetDict,
    format: str | None = None,
    splits: Splits | None = None,
    labels: Collection[str] | None = None,
    splitter: Splitter | None = None,
    **options: Any,
) -> datasets.DatasetDict:
    """Load nested NER data, whatever it is, as a `DatasetDict` with the columns of `features()` and labels as strings.

    Sentences are written to a temporary file as they are read and mapped into memory from there, so that a data set
    may be larger than memory; the file is gone when the program ends.

    Args:
        source: an existing path always wins: a file (one split, "train"), a folder with files or folders named after
            their split (train, validation/dev/valid, test), a folder of brat documents (one split, "train") or a
            folder written by `save_to_disk`. `"sample"` is the corpus that comes with the package. Otherwise `name` or
            `owner/name` is a dataset on the Hub. A `Dataset` or `DatasetDict` is taken as it is.
        format: one of `READERS`; guessed from the content if not given. Only for files.
        splits: the names of the splits to load, or a mapping from them to what they are called in the source (a file
            of the folder, a split on the Hub).
        labels: if given, any other label is an error.
        splitter: how a text with entities in characters is cut into words. For a model give its own,
            `model.config.word_splitter`, or it will meet other words than it learns. Data that comes in words keeps
            them, whatever is given here.
        options: the reader's own, such as `on_misaligned="drop"`; for the Hub also those of `datasets.load_dataset`.

    What could not be kept is logged as a warning of the logger "hf_spanner"; use `read_file` to hold it in your hands.

    ```python
    >>> data = load_nested_ner("my_corpus/")
    >>> data["train"][0]["entities"]
    [{'start': 0, 'end': 2, 'label': 'DNA'}]
    ```
    """
    data, reports = load_with_reports(source, format, splits, labels, splitter, **options)
    for report in reports.values():
        logger.log(logging.INFO if report.faithful else logging.WARNING, "%s", report)
    return data


def load_with_reports(
    source: str | Path | datasets.Dataset | datasets.DatasetDict,
    format: str | None = None,
    splits: Splits | None = None,
    labels: Collection[str] | None = None,
    splitter: Splitter | None = None,
    **options: Any,
) -> tuple[datasets.DatasetDict, dict[str, ReadReport]]:
    """What [`load_nested_ner`] loads, and what reading each split cost; nothing is logged."""
    from datasets import Dataset, DatasetDict

    if isinstance(source, str) and source == "sample" and not Path(source).exists():
        from .sample import load_sample

        sample: dict[str, list[Any]] = {**load_sample()}
        source = DatasetDict({split: Dataset.from_list(sentences) for split, sentences in sample.items()})
    loaded: dict[str, tuple[Iterator[Sentence], ReadReport]] = {}
    text = _take_text_options(options)
    columns = _as_columns(source, options)
    if columns is None:
        for split, path in find_splits(str(source), format, splits).items():
            loaded[split] = open_file(path, format, labels=labels, model_splitter=splitter, **text, **options)
    else:
        if format is not None:
            raise ValueError(
                f"format={format!r} is for files; {_name(source)} is a dataset with columns. Leave it out."
            )
        for split, name in _choose_splits(splits, {name: name for name in columns}, _name(source)).items():
            loaded[split] = _open_columns(columns[name], f"{_name(source)}[{split}]", labels, splitter, text)

    if not loaded:
        raise ValueError(f"{_name(source)} holds no split; save or load one with a split such as 'train'.")
    files = {split: _written(sentences) for split, (sentences, _) in loaded.items()}
    there = set().union(*(columns for _, columns in files.values()))
    data = DatasetDict({split: _opened(file, there) for split, (file, _) in files.items()})
    return data, {split: report for split, (_, report) in loaded.items()}


def _take_text_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are about texts, taken out of all the options."""
    names = [field.name for field in dataclasses.fields(TextOptions)]
    return {name: options.pop(name) for name in names if name in options}


def _open_columns(
    dataset: datasets.Dataset,
    name: str,
    labels: Collection[str] | None,
    splitter: Splitter | None,
    text: dict[str, Any],
) -> tuple[Iterator[Sentence], ReadReport]:
    report = ReadReport(source=name)
    options = dataclasses.replace(WHOLE_TEXTS, **({"splitter": splitter} if splitter else {}) | text)
    known = None if labels is None else set(several("labels", labels))

    def sentences() -> Iterator[Sentence]:
        for sentence in sentences_of_columns(dataset, report, name, options):
            if known is not None:
                check_sentence(sentence, f"{name}, sentence {sentence['id']!r}", known)
            yield sentence

    return sentences(), report


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where the sentences of this process are written; it is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="hf_spanner-", ignore_cleanup_errors=True)


def _written(sentences: Iterator[Sentence]) -> tuple[str, set[str]]:
    """The sentences in a file, with all columns that there may be, and the names of those that hold something."""
    import pyarrow as pa

    schema, there = features(further=FURTHER, mention=True).arrow_schema, set()
    with (
        tempfile.NamedTemporaryFile(dir=_folder().name, suffix=".arrow", delete=False) as file,
        pa.ipc.new_stream(file, schema) as stream,
    ):
        while batch := list(islice(sentences, _BATCH)):
            stream.write_table(pa.Table.from_pylist(batch, schema=schema))
            there |= {name for sentence in batch for name in FURTHER if name in sentence}
            if "mention" not in there and any("mention" in e for sentence in batch for e in sentence["entities"]):
                there.add("mention")
    return file.name, there


def _opened(file: str, there: Collection[str]) -> datasets.Dataset:
    """The sentences of a file as a dataset, with those of the columns that there may be that are there."""
    import pyarrow as pa
    from datasets import Dataset

    if "mention" not in there:  # a field of a column, which only writing anew removes
        schema, whole = features(further=FURTHER).arrow_schema, file
        file = f"{whole}.plain"
        with pa.memory_map(whole) as source, pa.OSFile(file, "wb") as target, pa.ipc.new_stream(target, schema) as out:
            for batch in pa.ipc.open_stream(source):
                columns = [
                    _without_mention(column) if name == "entities" else column
                    for name, column in zip(batch.schema.names, batch.columns, strict=True)
                ]
                out.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        Path(whole).unlink()
    dataset: Dataset = Dataset.from_file(file)
    missing = [name for name in FURTHER if name not in there]
    return dataset.remove_columns(missing) if missing else dataset


def _without_mention(entities: Any) -> Any:
    """A column of lists of entities without their field `mention`."""
    import pyarrow as pa

    kept = [entities.values.field(name) for name in ("start", "end", "label")]
    return pa.ListArray.from_arrays(entities.offsets, pa.StructArray.from_arrays(kept, ["start", "end", "label"]))


def find_splits(source: str | Path, format: str | None = None, splits: Splits | None = None) -> dict[str, Path]:
    """The file or folder of every split of an existing path; see `load_nested_ner`."""
    source = Path(source)
    if not source.exists():
        raise FileNotFoundError(f"{source} does not exist; give a file or a folder.")
    check_rereadable(source)
    if source.is_file():
        return _choose_splits(splits, {"train": source}, str(source))
    if isinstance(splits, Mapping):
        return {split: source / name for split, name in splits.items()}  # `read_file` says which one is missing
    found = _find_in_folder(source, format)
    if not found:
        there = ", ".join(sorted(entry.name for entry in source.iterdir())[:10]) or "nothing"
        raise ValueError(
            f"{source} holds no file that is named after a split (train, validation or dev, test); found {there}. "
            "Call the files so, or in Python pass splits={'train': 'file name', ...} or what load_dataset returns."
        )
    return _choose_splits(splits, found, str(source))


def _find_in_folder(source: Path, format: str | None) -> dict[str, Path]:
    if (source / "state.json").exists():
        return {"train": source}
    if (source / "dataset_dict.json").exists():
        return _saved_splits(source)
    candidates = [
        entry
        for entry in sorted(source.iterdir())
        if not entry.name.startswith(".")
        and (entry.is_dir() or format is not None or data_suffix(entry) in DATA_SUFFIXES)
        and not (entry.suffix == ".ann" and entry.with_suffix(".txt").exists())  # the .txt stands for the pair
    ]
    of_documents = any(source.glob("*.ann")) or any(source.glob("*.xmi"))
    found = _name_splits(
        candidates, lambda entry: [(entry.name if entry.is_dir() else plain_name(entry).stem).lower()], source
    )
    if not found and not of_documents:  # one of which may well be called "train-accident"
        found = _name_splits(
            [entry for entry in candidates if entry.is_file()],
            lambda entry: re.split("[^a-z]+", entry.name.lower()),
            source,
        )
    if found:
        _say_what_is_left(candidates, found.values())
    elif of_documents:
        found = {"train": source}
    return found or _find_below(source, candidates, format)


def _find_below(source: Path, candidates: list[Path], format: str | None) -> dict[str, Path]:
    """The splits of a folder none of whose entries is named after one: those of its one sub-folder that has some, or
    all the brat documents below it."""
    below = {entry: _find_in_folder(entry, format) for entry in candidates if entry.is_dir()}
    below = {entry: found for entry, found in below.items() if found and set(found.values()) != {entry}}
    if len(below) > 1:
        names = ", ".join(entry.name for entry in below)
        raise ValueError(f"{source} holds several data sets, each with splits: {names}. Name one of them.")
    if below:
        _say_what_is_left(candidates, below)
        return next(iter(below.values()))
    return {"train": source} if next(brat_files(source, ".ann"), None) or xmi_files(source) else {}


def _saved_splits(source: Path) -> dict[str, Path]:
    try:
        names = json.loads((source / "dataset_dict.json").read_text(encoding="utf-8"))["splits"]
        return {str(name): source / str(name) for name in names}
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(
            f"{source / 'dataset_dict.json'}: expected an object with the names of the 'splits', as save_to_disk "
            f"writes it ({first_line(error)})."
        ) from error


def _say_what_is_left(candidates: list[Path], chosen: Collection[Path]) -> None:
    """Data that no split's name speaks of is not read, and not passed over in silence either."""
    left = [entry.name for entry in candidates if entry not in chosen and (entry.is_file() or data_files(entry))]
    if left:
        some = ", ".join(left[:5]) + (", …" if len(left) > 5 else "")
        logger.warning("%s: left aside, as no split is called so: %s.", candidates[0].parent, some)


def _name_splits(entries: list[Path], words_of: Callable[[Path], Iterable[str]], folder: Path) -> dict[str, Path]:
    """The entry of every split that the words of exactly one entry's name speak of."""
    candidates: dict[str, list[Path]] = {split: [] for split in SPLIT_NAMES}
    for entry in entries:
        words = set(words_of(entry))
        meant = [split for split, aliases in SPLIT_NAMES.items() if words & set(aliases)]
        if len(meant) > 1:  # such as train_dev.json, which would put the same sentences into two splits
            logger.warning("%s is left aside: its name speaks of %s.", entry, " and ".join(meant))
        elif meant:
            candidates[meant[0]].append(entry)
    for split, matches in candidates.items():
        if len(matches) > 1:
            names = ", ".join(entry.name for entry in matches)
            raise ValueError(
                f"{folder} holds several candidates for the split {split!r}: {names}. "
                f"Pass splits={{{split!r}: {matches[0].name!r}, ...}}."
            )
    return {split: matches[0] for split, matches in candidates.items() if matches}


def _choose_splits(splits: Splits | None, found: dict[str, Any], source: str) -> dict[str, Any]:
    if splits is None:
        return found
    if isinstance(splits, str):
        splits = [splits]
    wanted = splits if isinstance(splits, Mapping) else {split: split for split in splits}
    missing = sorted(set(wanted.values()) - set(found))
    if missing:
        raise ValueError(
            f"{source} has no split {', '.join(map(repr, missing))}; it has {', '.join(map(repr, found))}."
        )
    return {split: found[name] for split, name in wanted.items()}


def _as_columns(source: Any, options: dict[str, Any]) -> Mapping[str, datasets.Dataset] | None:
    """The source as a dataset with columns; None if it is a path to files of ours."""
    import datasets

    if isinstance(source, datasets.Dataset | dict):
        if options:
            raise ValueError(f"A dataset with columns has no option {', '.join(map(repr, sorted(options)))}.")
        return source if isinstance(source, dict) else {"train": source}
    path = Path(source)
    if path.exists():
        if not (path / "dataset_dict.json").exists() and not (path / "state.json").exists():
            return None
        try:
            saved = open_arrow(path)
        except Exception as error:  # Arrow and datasets fail in a dozen ways; the user needs one sentence
            raise ValueError(
                f"{path} is no complete folder of save_to_disk ({first_line(error)}); save it again."
            ) from error
        return _as_columns(saved, options)
    if not _HUB_ID.fullmatch(str(source)) or data_suffix(path) in DATA_SUFFIXES:
        raise FileNotFoundError(
            f"{source} does not exist, and it is not the name of a dataset on the Hub (name or owner/name) either."
        )
    try:
        return _as_columns(datasets.load_dataset(str(source), **options), {})
    except Exception as error:  # the Hub fails in a dozen ways; the user needs one sentence, and the cause below it
        raise ValueError(
            f"{str(source)!r} is no existing path and could not be loaded from the Hub "
            f"({first_line(error)}). Check the spelling, the network and your access."
        ) from error


def _name(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else "dataset"
