"""A small corpus of nested entities that comes with the package, for the demo, tests and first steps.

`nested.txt` is written by hand in brackets, `nested.jsonl` is made from it: `python -m hf_spanner.data.sample`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..chars import chars_to_words
from ..schema import ReadReport, Sentence

SAMPLE = Path(__file__).with_name("nested.jsonl")
SOURCE = Path(__file__).with_name("nested.txt")

_MARK = re.compile(r"\[(?P<label>[A-Z]+) |(?P<close>\])")


def load_sample() -> dict[str, list[Sentence]]:
    """The sample's sentences: the last tenth held out as `validation`, the rest `train`."""
    from ..readers import read_file

    sentences, _ = read_file(SAMPLE, "jsonl")
    cut = len(sentences) - len(sentences) // 10
    return {"train": sentences[:cut], "validation": sentences[cut:]}


def parse_brackets(line: str) -> tuple[str, list[dict[str, Any]]]:
    """A sentence in brackets as plain text and entities in characters, by start, the longest first.

    ```python
    >>> parse_brackets("[PER the mayor of [LOC York]]")
    ('the mayor of York', [{'start': 0, 'end': 17, 'label': 'PER'}, {'start': 13, 'end': 17, 'label': 'LOC'}])
    ```
    """
    text, entities, open_entities, position = "", [], [], 0
    for mark in _MARK.finditer(line):
        text += line[position : mark.start()]
        position = mark.end()
        if mark["close"] is None:
            open_entities.append({"start": len(text), "end": -1, "label": mark["label"]})
            entities.append(open_entities[-1])
        elif open_entities:
            open_entities.pop()["end"] = len(text)
        else:
            raise ValueError(f"A bracket closes at column {mark.start() + 1} that was never opened: {line!r}.")
    if open_entities:
        raise ValueError(f"The bracket of {open_entities[-1]['label']} is never closed: {line!r}.")
    return text + line[position:], entities


def read_brackets(path: str | Path = SOURCE) -> list[Sentence]:
    """The sentences of a file in brackets, cut into words as models cut raw text."""
    sentences: list[Sentence] = []
    document, report = None, ReadReport(source=str(path))
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("## "):
            document = line.removeprefix("## ").strip()
        elif line.strip() and not line.startswith("#"):
            where = f"{path}:{number}"
            try:
                text, marked = parse_brackets(line.strip())
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None
            spans = [(entity["start"], entity["end"], entity["label"]) for entity in marked]
            tokens, entities = chars_to_words(text, spans, "compound", report, "error", where)
            sentences.append(report.keep(f"sample-{len(sentences) + 1:03}", document, tokens, entities, where))
    return sentences
