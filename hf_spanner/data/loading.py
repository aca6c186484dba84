"""One loader for everything: a file, a folder with splits, a dataset on the Hub or one already in memory."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .columns import sentences_of_columns
from .readers import BRAT_SUFFIXES, COLUMN_SUFFIXES, JSON_SUFFIXES, read_file
from .schema import ReadReport, Sentence, check_sentence, features

if TYPE_CHECKING:
    import datasets

logger = logging.getLogger("hf_spanner")

SPLIT_NAMES = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev", "devel", "development", "testa"),
    "test": ("test", "testing", "testb"),
}
_DATA_SUFFIXES = JSON_SUFFIXES | COLUMN_SUFFIXES | BRAT_SUFFIXES
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")

Splits = Mapping[str, str] | Sequence[str]


def load_nested_ner(
    source: str | Path | datasets.Dataset | datasets.DatasetDict,
    format: str | None = None,
    splits: Splits | None = None,
    labels: Collection[str] | None = None,
    **options: Any,
) -> datasets.DatasetDict:
    """Load nested NER data, whatever it is, as a `DatasetDict` with the columns of `features()` and labels as strings.

    Args:
        source: an existing path always wins: a file (one split, "train"), a folder with files or brat folders named
            after their split (train, validation/dev/valid, test), a folder of brat documents (one split, "train") or a
            folder written by `save_to_disk`. `"sample"` is the corpus that comes with the package. Otherwise `name` or
            `owner/name` is a dataset on the Hub. A `Dataset` or `DatasetDict` is taken as it is.
        format: one of `READERS`; guessed if not given. Only for files.
        splits: the names of the splits to load, or a mapping from them to what they are called in the source (a file
            of the folder, a split on the Hub).
        labels: if given, any other label is an error.
        options: the reader's own, such as `on_misaligned="drop"`; for the Hub those of `datasets.load_dataset`.

    What could not be kept is logged as a warning of the logger "hf_spanner"; use `read_file` to hold it in your hands.

    >>> data = load_nested_ner("my_corpus/")  # doctest: +SKIP
    >>> data["train"][0]["entities"]  # doctest: +SKIP
    [{'start': 0, 'end': 2, 'label': 'DNA'}]
    """
    from datasets import Dataset, DatasetDict

    if isinstance(source, str) and source == "sample" and not Path(source).exists():
        from ..samples import load_sample

        source = DatasetDict({split: Dataset.from_list(sentences) for split, sentences in load_sample().items()})
    loaded: dict[str, tuple[list[Sentence], ReadReport]] = {}
    columns = _as_columns(source, options)
    if columns is None:
        for split, path in find_splits(source, format, splits).items():
            loaded[split] = read_file(path, format, labels=labels, **options)
    else:
        if format is not None:
            raise ValueError(
                f"format={format!r} is for files; {_name(source)} is a dataset with columns. Leave it out."
            )
        for split, name in _choose_splits(splits, {name: name for name in columns}, _name(source)).items():
            report = ReadReport(source=f"{_name(source)}[{split}]")
            sentences = list(sentences_of_columns(columns[name], report, report.source))
            for sentence in sentences if labels is not None else ():
                check_sentence(sentence, f"{report.source}, sentence {sentence['id']!r}", labels)
            loaded[split] = sentences, report

    for _, report in loaded.values():
        logger.log(logging.INFO if report.faithful else logging.WARNING, "%s", report)
    columns = features(pos=any("pos" in sentence for sentences, _ in loaded.values() for sentence in sentences))
    return DatasetDict(
        {
            split: Dataset.from_dict(
                {column: [sentence.get(column) for sentence in sentences] for column in columns}, features=columns
            )
            for split, (sentences, _) in loaded.items()
        }
    )


def find_splits(source: str | Path, format: str | None = None, splits: Splits | None = None) -> dict[str, Path]:
    """The file or brat folder of every split of an existing path; see `load_nested_ner`."""
    source = Path(source)
    if not source.exists():
        raise FileNotFoundError(f"{source} does not exist; give a file or a folder.")
    if source.is_file():
        return _choose_splits(splits, {"train": source}, str(source))
    if isinstance(splits, Mapping):
        return {split: source / name for split, name in splits.items()}  # `read_file` says which one is missing
    candidates = [
        entry
        for entry in sorted(source.iterdir())
        if not entry.name.startswith(".")
        and (entry.is_dir() or format is not None or entry.suffix.lower() in _DATA_SUFFIXES)
        and not (entry.suffix == ".ann" and entry.with_suffix(".txt").exists())  # the .txt stands for the pair
    ]
    is_brat = any(source.glob("*.ann"))
    found = _name_splits(candidates, lambda entry: [(entry.name if entry.is_dir() else entry.stem).lower()], source)
    if not found and not is_brat:  # a folder of brat documents may well have one called "train-accident"
        found = _name_splits(
            [entry for entry in candidates if entry.is_file()],
            lambda entry: re.split("[^a-z]+", entry.name.lower()),
            source,
        )
    if not found and is_brat:
        found = {"train": source}
    if not found:
        there = ", ".join(sorted(entry.name for entry in source.iterdir())[:10]) or "nothing"
        raise ValueError(
            f"{source} holds no file that is named after a split (train, validation or dev, test); found {there}. "
            "Pass splits={'train': 'file name', ...}, or load it with datasets.load_dataset and pass the result."
        )
    return _choose_splits(splits, found, str(source))


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


def _as_columns(source: Any, options: dict[str, Any]) -> datasets.DatasetDict | None:
    """The source as a dataset with columns; None if it is a path to files of ours."""
    import datasets

    if isinstance(source, datasets.Dataset):
        return datasets.DatasetDict({"train": source})
    if isinstance(source, dict):
        return source
    path = Path(source)
    if path.exists():
        if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
            return _as_columns(datasets.load_from_disk(path), options)
        return None
    if not _HUB_ID.fullmatch(str(source)) or path.suffix.lower() in _DATA_SUFFIXES:
        raise FileNotFoundError(
            f"{source} does not exist, and it is not the name of a dataset on the Hub (name or owner/name) either."
        )
    try:
        return _as_columns(datasets.load_dataset(str(source), **options), options)
    except Exception as error:  # the Hub fails in a dozen ways; the user needs one sentence, and the cause below it
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{str(source)!r} is no existing path and could not be loaded from the Hub "
            f"({type(error).__name__}: {reason}). Check the spelling, the network and your access."
        ) from error


def _name(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else "dataset"
