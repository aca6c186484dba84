"""From the source of a corpus, in whatever form somebody has it, to its splits in our form."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from ..archives import is_archive, unpack
from ..downloading import download
from ..loading import SPLIT_NAMES, find_splits
from ..readers import FOLDERS, open_file
from ..readers.guessing import decide_format
from ..reshaping import OVERLAPS, remove_overlaps
from ..schema import ReadReport, Sentence, short
from . import Corpus

Say = Callable[[str], Any]
ALL = "all"  # in a description: files whose sentences are split by a rule


def prepare(
    corpus: Corpus,
    source: str | Path,
    work: Path,
    say: Say,
    splits: str | Path | None = None,
    cache: Path | None = None,
) -> dict[str, list[Sentence]]:
    """The sentences of a corpus by split, and what reading cost said.

    Args:
        source: a folder, an archive or a file: as published, or converted to any form that can be read; "download"
            gets it, where that is possible.
        work: a folder for what is unpacked; the caller removes it.
        splits: lists of documents by split, in place of those of the description (see `read_split_lists`).
        cache: where downloads are kept.
    """
    if str(source) == "download":
        folder = _downloaded(corpus, work, cache or work / "cache", say)
    else:
        folder = _opened(Path(source), work)
    files = _files(corpus, folder, say)
    if not files and (packed := _archives(folder)):  # such as the three of NCBI Disease
        for archive in packed:
            unpack(archive, work / "source" / archive.name)
        files = _files(corpus, work / "source", say)
    if files:
        parts = {split: _read(corpus, found, work, say) for split, found in files.items()}
    else:
        say(f"{folder} is not as published ({_patterns(corpus)}): it is read by what its files hold and are called.")
        described = dataclasses.replace(corpus, format=None, options={}, cut_from_words=None, document_per_file=False)
        parts = {split: _read(described, [path], work, say) for split, path in find_splits(folder).items()}
    if not any(parts.values()):
        raise ValueError(f"{source} holds no sentence of {corpus.title}.")
    rule = {"documents": read_split_lists(Path(splits))} if splits is not None else corpus.split
    whole = parts.pop(ALL, None) or (parts.pop("train") if set(parts) == {"train"} and rule else None)
    if whole is not None:
        parts = _split(corpus, whole, rule, say)
    elif splits is not None:
        parts = _split(corpus, [sentence for part in parts.values() for sentence in part], rule, say)
    return {split: _relabelled(corpus, parts[split], split, say) for split in SPLIT_NAMES if split in parts}


def _downloaded(corpus: Corpus, work: Path, cache: Path, say: Say) -> Path:
    if not corpus.download:
        raise ValueError(
            f"{corpus.title} cannot be downloaded: ask at {corpus.ask}, and name your copy with --source."
        )
    for file in corpus.download:
        path = download(file.url, cache, file.name, file.sha256, say)
        if is_archive(path):
            unpack(path, work / "source" / file.name)
        else:
            (work / "source").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, work / "source" / file.name)
    return work / "source"


def _opened(source: Path, work: Path) -> Path:
    if not source.exists():
        raise FileNotFoundError(f"{source} does not exist; name a folder, an archive or a file, or 'download'.")
    if not is_archive(source):
        return source
    unpack(source, work / "source")
    return work / "source"


def _archives(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if is_archive(path)] if folder.is_dir() else []


def _patterns(corpus: Corpus) -> str:
    return ", ".join(pattern for patterns in corpus.files.values() for pattern in patterns) or "no form is described"


def _files(corpus: Corpus, source: Path, say: Say) -> dict[str, list[Path]]:
    """The files of each split that has some; none if there is nothing as it is published."""
    found = {split: _matching(source, patterns, corpus.format) for split, patterns in corpus.files.items()}
    there = {split: files for split, files in found.items() if files}
    for split, patterns in corpus.files.items() if there else ():
        if split not in there:
            say(f"{source} holds no {split} data, which is called {' or '.join(patterns)}: that split is left out.")
    return there


def _matching(source: Path, patterns: Iterable[str], format: str | None) -> list[Path]:
    """What the first of the patterns that fits anything fits, anywhere below a folder; "." is the source itself, if it
    is of the format. One name is one file: where several have it, nobody can tell which is meant."""
    for pattern in patterns:
        if pattern == ".":
            found = [source] if (decide_format(source) or ("",))[0] == format else []
        elif source.is_file():
            found = [source] if source.match(pattern) else []
        else:
            found = [path for path in sorted(source.rglob(pattern)) if _is_data(path, source, format)]
        if len(found) > 1 and "*" not in pattern:
            several = ", ".join(str(path.relative_to(source)) for path in found[:3])
            raise ValueError(f"{source} holds {len(found)} × {pattern} ({several}): name the folder of one of them.")
        if found:
            return found
    return []


def _is_data(path: Path, source: Path, format: str | None) -> bool:
    """Whether this is a folder where the format is one of folders, a file elsewhere, and nothing hidden."""
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.relative_to(source).parts)
    return not hidden and path.is_dir() == (format in FOLDERS)


def _read(corpus: Corpus, files: list[Path], work: Path, say: Say) -> list[Sentence]:
    """The sentences of some files, each a document if the corpus is so."""
    sentences: list[Sentence] = []
    left = 0
    total = ReadReport(source=str(files[0]) if len(files) == 1 else f"{files[0].parent} ({len(files):,} files)")
    for file in files:
        found, report = open_file(_with_texts(corpus, file, work), corpus.format, **corpus.options)
        for sentence in found:
            if corpus.leave_out and re.search(corpus.leave_out, sentence["doc_id"] or ""):
                left += 1
                continue
            if corpus.document_per_file and sentence["doc_id"] is None:
                sentence["doc_id"] = _named(corpus, file.stem)
            if corpus.cut_from_words:
                tokens = [re.sub(corpus.cut_from_words, "", token) or token for token in sentence["tokens"]]
                sentence["tokens"] = tokens
            sentences.append(sentence)
        _add(total, report)
    say(str(total))
    if left:
        say(f"  left out: {left:,} sentences of documents that no paper has ({corpus.leave_out})")
    return sentences


def _with_texts(corpus: Corpus, annotations: Path, work: Path) -> Path:
    """A folder with brat annotations and texts together: copies, if the texts have a folder of their own."""
    texts = annotations.parent / (corpus.beside or "")
    if corpus.beside is None or not annotations.is_dir() or not texts.is_dir():
        return annotations
    together = work / f"{annotations.name}-with-{texts.name}"
    together.mkdir()
    for file in (*sorted(annotations.glob("*.ann")), *sorted(texts.glob("*.txt"))):
        shutil.copyfile(file, together / file.name)
    return together


def _add(total: ReadReport, report: ReadReport) -> None:
    total.sentences += report.sentences
    total.words += report.words
    total.entities += report.entities
    for name in ("lost", "changed", "ignored"):
        getattr(total, name).update(getattr(report, name))
    for reason, examples in report.examples.items():
        kept = total.examples.setdefault(reason, [])
        kept += examples[: 3 - len(kept)]


def read_split_lists(path: Path) -> dict[str, list[str]]:
    """The ids of documents by split: a YAML or JSON file `{train: [...], validation: [...], test: [...]}`, or a folder
    with a file for each split (`train.txt`, `dev.ids`, ...), one id a line."""
    if path.is_dir():
        lists = {}
        for split, aliases in SPLIT_NAMES.items():
            files = [file for file in sorted(path.iterdir()) if file.stem.lower() in aliases]
            if files:
                lists[split] = files[0].read_text(encoding="utf-8").split()
    else:
        try:
            lists = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ValueError(f"{path} is neither YAML nor JSON ({str(error).splitlines()[0]}).") from error
    if (
        not isinstance(lists, Mapping)
        or not lists
        or not set(lists) <= set(SPLIT_NAMES)
        or not all(isinstance(ids, list) for ids in lists.values())
    ):
        raise ValueError(f"{path} holds {short(lists)}; expected lists of documents under train, validation and test.")
    return {split: [str(id) for id in ids] for split, ids in lists.items()}


def _named(corpus: Corpus, doc_id: str) -> str:
    """A document's name without the folders before it, which lists write and copies of a corpus lack, and without
    what the corpus' files and lists put behind it."""
    return re.sub(corpus.cut_from_documents or "$", "", doc_id.rsplit("/", 1)[-1])


def _split(corpus: Corpus, sentences: list[Sentence], rule: Mapping[str, Any], say: Say) -> dict[str, list[Sentence]]:
    if "documents" in rule:
        return _split_documents(corpus, sentences, rule["documents"], say)
    if "sentences" in rule:
        return _split_sentences(sentences, rule["sentences"], say)
    where = corpus.splits_from or "no paper says how it is split"
    raise ValueError(f"{corpus.title} comes in one piece: pass --splits with lists of documents ({where}).")


def _split_documents(
    corpus: Corpus, sentences: list[Sentence], lists: Mapping[str, list[str]], say: Say
) -> dict[str, list[Sentence]]:
    """By document; those on no list are training data, unless training data has a list: then they are left aside."""
    split_of = {_named(corpus, id): split for split, ids in lists.items() for id in ids}
    parts: dict[str, list[Sentence]] = {split: [] for split in ("train", *lists)}
    there: set[str] = set()
    aside: dict[str, int] = {}
    for sentence in sentences:
        name = _named(corpus, sentence["doc_id"] or "")
        there.add(name)
        split = split_of.get(name, None if "train" in lists else "train")
        if split is None:
            aside[name] = aside.get(name, 0) + 1
        else:
            parts[split].append(sentence)
    if aside:
        examples = ", ".join(sorted(aside)[:3])
        say(f"  left aside: {len(aside):,} documents with {sum(aside.values()):,} sentences on no list ({examples}).")
    if missing := sorted(set(split_of) - there):
        say(f"  missing: {len(missing):,} of {len(split_of):,} listed documents ({', '.join(missing[:3])}).")
    return {split: part for split, part in parts.items() if part}


def _split_sentences(sentences: list[Sentence], numbers: Mapping[str, int], say: Say) -> dict[str, list[Sentence]]:
    """In the order of the text, so many sentences for each split; of another number of sentences the same shares."""
    wanted = sum(numbers.values())
    if wanted != len(sentences):
        say(f"  {len(sentences):,} sentences, expected {wanted:,}: they are split in the same shares.")
    parts, begin, up_to = {}, 0, 0
    for split, number in numbers.items():
        up_to += number
        end = round(len(sentences) * up_to / wanted)
        parts[split] = sentences[begin:end]
        begin = end
    return {split: part for split, part in parts.items() if part}


def _relabelled(corpus: Corpus, sentences: list[Sentence], split: str, say: Say) -> list[Sentence]:
    """The sentences with the labels and the entities that the papers have."""
    if corpus.labels is not None:
        left: dict[str, int] = {}
        changed = []
        known = {*corpus.labels.values()}
        for sentence in sentences:
            entities, seen = [], set()
            for entity in sentence["entities"]:
                label = corpus.labels.get(entity["label"], entity["label"] if entity["label"] in known else None)
                key = (entity["start"], entity["end"], label)
                if label is None or key in seen:
                    reason = entity["label"] if label is None else f"{entity['label']} (second of its label and span)"
                    left[reason] = left.get(reason, 0) + 1
                else:
                    seen.add(key)
                    entities.append({**entity, "label": label})
            changed.append(cast("Sentence", {**sentence, "entities": entities}))
        sentences = changed
        for label, number in sorted(left.items()):
            say(f"  {split}, left out: {number:,} × {label}")
    if corpus.overlap is not None:
        sentences, removed = remove_overlaps(sentences, corpus.overlap)
        say(f"  {split}, removed: {removed:,} × entity; kept are {OVERLAPS[corpus.overlap]}")
    return sentences
