"""From character offsets to words: shared by every reader whose format counts characters."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from .schema import Entity, ReadReport, Sentence, short

Splitter = str | Callable[[str], list[tuple[int, int]]]


class CharSpan(NamedTuple):
    """A labelled span `[start, end)` in characters; where it is written, if not where its text is; its kind."""

    start: int
    end: int
    label: str
    where: str = ""
    mention: str | None = None


CharSpans = Iterable[CharSpan | tuple[int, int, str]]

ON_MISALIGNED = ("expand", "split", "drop", "error")
SPLIT_SENTENCES = ("newline", "punctuation", "none")


def at_its_offsets(span: CharSpan, wanted: str | None, text: str, report: ReadReport) -> bool:
    """Whether a mention that repeats its text (`wanted`, if that is to be looked at) has it there; else it is lost."""
    found = text[span.start : span.end] if 0 <= span.start < span.end <= len(text) else ""
    if found.strip() and (wanted is None or found.split() == wanted.split()):
        return True
    said = "" if wanted is None else f"{short(wanted)}, "
    report.lose("mention whose text is not at its offsets", f"{span.where}: {said}there is {short(found)}")
    return False


def _choose(option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{option}={value!r} is unknown; choose one of {', '.join(map(repr, known))}.")


@dataclass(frozen=True)
class TextOptions:
    """How an annotated text becomes sentences of words; the same for every reader whose format counts characters.

    Args:
        splitter: how text is cut into words: a name known to `hf_spanner.modeling.words.split_words`, or a function
            from a text to the (start, end) of its words. Data for a model is best cut by the model's own splitter,
            `model.config.word_splitter`, since that is what it will meet.
        on_misaligned: what to do with a mention that begins or ends inside a word; whatever it is, it is counted.
            "expand" takes the whole word: the nearest answer that a model can give on raw text. "split" cuts the word
            there: no character of the annotation moves, but the words then show where entities are, and on raw text
            no such cut will be made, so choose it to keep a corpus, not to train on it. "drop" the mention, or raise
            an "error".
        split_sentences: "none" keeps a text whole, "newline" makes a sentence of every line, "punctuation" cuts at
            blank lines and where a sentence seems to end (see `sentence_starts`), in running text whose lines are
            broken anywhere. A mention across such a border joins its sentences.
    """

    splitter: Splitter = "compound"
    on_misaligned: str = "expand"
    split_sentences: str = "none"

    def __post_init__(self) -> None:
        _choose("on_misaligned", self.on_misaligned, ON_MISALIGNED)
        _choose("split_sentences", self.split_sentences, SPLIT_SENTENCES)


WHOLE_TEXTS = TextOptions()
LINE_BY_LINE = TextOptions(split_sentences="newline")
RUNNING_TEXT = TextOptions(split_sentences="punctuation")


def chars_to_words(
    text: str,
    char_spans: CharSpans,
    splitter: Splitter,
    report: ReadReport,
    on_misaligned: str = "expand",
    where: str = "",
    words: list[tuple[int, int]] | None = None,
) -> tuple[list[str], list[Entity]]:
    """Cut `text` into words and express `char_spans` in them; `TextOptions` explains the options.

    White space at the ends of a mention is trimmed; nothing is lost by that. A text that brings its own `words`, as
    (start, end), keeps them.
    """
    _choose("on_misaligned", on_misaligned, ON_MISALIGNED)
    if words is None:
        report.from_text = True
        words = word_splitter(splitter)(text)
    spans = list(_trimmed(text, char_spans, report, where))
    pieces = _cut(words, spans) if on_misaligned == "split" else words
    starts, ends = [start for start, _ in words], [end for _, end in words]
    piece_starts, piece_ends = [start for start, _ in pieces], [end for _, end in pieces]
    entities: list[Entity] = []
    for span in spans:
        start, end = span.start, span.end
        first, last = _covered(starts, ends, start, end)
        if first > last:
            report.lose("mention without a word", _say(text, span))
            continue
        if starts[first] < start or ends[last] > end:
            mention, whole = _say(text, span), short(text[starts[first] : ends[last]])
            if on_misaligned == "error":
                raise ValueError(
                    f"{mention} begins or ends inside a word ({whole}); correct the offsets, choose a finer word "
                    "splitter, or read with on_misaligned='expand', 'split' or 'drop'."
                )
            if on_misaligned == "drop":
                report.lose("boundary inside a word", f"{mention} in {whole}")
                continue
            done = "the word was cut there" if on_misaligned == "split" else "expanded to the whole word"
            report.change(f"boundary inside a word, {done}", f"{mention} to {whole}")
        first, last = _covered(piece_starts, piece_ends, start, end)
        entities.append(Entity(start=first, end=last + 1, label=span.label))
        if span.mention is not None:
            entities[-1]["mention"] = span.mention
    return [text[start:end] for start, end in pieces], entities


def _covered(starts: list[int], ends: list[int], start: int, end: int) -> tuple[int, int]:
    """The first and the last word that has a character in `[start, end)`; first > last if there is none."""
    return bisect_right(ends, start), bisect_left(starts, end) - 1


def _cut(words: Iterable[tuple[int, int]], spans: Iterable[CharSpan]) -> list[tuple[int, int]]:
    """The words, cut where a span begins or ends inside them."""
    cuts = sorted({position for span in spans for position in span[:2]})
    pieces = []
    for start, end in words:
        borders = [start, *cuts[bisect_right(cuts, start) : bisect_left(cuts, end)], end]
        pieces += list(zip(borders, borders[1:], strict=False))
    return pieces


def document_to_sentences(
    text: str,
    char_spans: CharSpans,
    report: ReadReport,
    options: TextOptions,
    *,
    id: str,
    doc_id: str | None,
    where: str = "",
    further: Mapping[str, Any] | None = None,
    words: Sequence[tuple[int, int]] | None = None,
    starts: Sequence[int] | None = None,
) -> Iterator[Sentence]:
    """The sentences of one annotated text: the whole ("none"), or its pieces that hold a word ("newline": lines).

    A mention that crosses a border joins the pieces it touches, for a long sentence is better than a lost mention.
    The pieces of a text are one document, called by the text's id if nobody knows its name. `further` holds columns
    that each sentence has.

    Args:
        words: the text's own, as (start, end) in its order, if it brings them; they stay as they are.
        starts: where its own sentences begin, if it brings them and `options` are not to decide.
    """
    to_words = partial(
        chars_to_words,
        splitter=options.splitter,
        report=report,
        on_misaligned=options.on_misaligned,
        where=where,
    )
    if starts is None and options.split_sentences == "none":
        tokens, entities = to_words(text, char_spans, words=None if words is None else list(words))
        yield report.keep(id, doc_id, tokens, entities, where, further)
        return

    trimmed = list(_trimmed(text, char_spans, report, where))
    if starts is None:
        starts = line_starts(text) if options.split_sentences == "newline" else sentence_starts(text)
    pieces = _join_pieces(text, [0, *(start for start in starts if start)], trimmed, report)
    piece_starts = [start for start, _ in pieces]
    spans_of_piece: list[list[CharSpan]] = [[] for _ in pieces]
    for span in trimmed:
        piece = bisect_right(piece_starts, span.start) - 1
        shift = piece_starts[piece]
        spans_of_piece[piece].append(span._replace(start=span.start - shift, end=span.end - shift))
    number = 0
    for (start, end), spans in zip(pieces, spans_of_piece, strict=True):
        own = None if words is None else _inside(words, start, end)
        tokens, entities = to_words(text[start:end], spans, words=own)
        if tokens:
            yield report.keep(f"{id}.{number}", id if doc_id is None else doc_id, tokens, entities, where, further)
            number += 1


def line_starts(text: str) -> list[int]:
    """Where the lines of a text begin."""
    return [0] + [position + 1 for position, character in enumerate(text) if character == "\n"]


# What ends a sentence, with closing quotes and brackets; what follows the white space has to begin like a sentence.
_SENTENCE_END = re.compile(
    r"\n[^\S\n]*\n\s*"
    r"""|[.!?…]+[)\]"'”’»]*\s+(?=["'“‘«(\[¿¡]*[^\W_a-z])"""
    r"|[。！？][”’」』）]*"
)
# A full stop behind these ends no sentence: an initial, or an abbreviation that stands before a name or number.
_ABBREVIATION = re.compile(
    r"(?:^|[^\w.])(?:[^\W\d_]|Mr|Mrs|Ms|Dr|Drs|Prof|St|Gen|Gov|Sen|Rep|Lt|Col|Sgt|Capt|Maj|Cmdr|Adm|Rev|Hon|"
    r"Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec|No|Nos|Fig|Figs|Eq|Ref|Vol|vs|cf|al|approx|ca|e\.g|i\.e|viz|resp|"
    r"[A-Z](?:\.[A-Z])+)\.$"
)


def sentence_starts(text: str) -> list[int]:
    """Where the sentences of running text begin: behind blank lines, and behind `.`, `!` or `?` with white space and
    then a capital, a digit or another script; not behind an initial or a usual abbreviation.

    >>> text = "Dr. Yu met J. Vogt in Bonn. They talked."
    >>> [text[start:] for start in sentence_starts(text)][1:]
    ['They talked.']
    """
    starts = [0]
    for match in _SENTENCE_END.finditer(text):
        end = match[0].rstrip()
        before = text[max(0, match.start() - 12) : match.start()] + end
        if 0 < match.end() < len(text) and not (end == "." and _ABBREVIATION.search(before)):
            starts.append(match.end())
    return starts


def _inside(words: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """The words that begin in `[start, end)`, counted from its start."""
    first, last = bisect_left(words, (start, 0)), bisect_left(words, (end, 0))
    return [(word_start - start, word_end - start) for word_start, word_end in words[first:last]]


def _join_pieces(text: str, starts: list[int], spans: Iterable[CharSpan], report: ReadReport) -> list[tuple[int, int]]:
    """The (start, end) of all pieces of a text, where pieces that share a mention are one."""
    joined: set[int] = set()  # pieces that go on with the piece before them
    for span in spans:
        first, last = bisect_right(starts, span.start) - 1, bisect_right(starts, span.end - 1) - 1
        if first != last:
            joined.update(range(first + 1, last + 1))
            report.change("mention across a sentence border, sentences joined", _say(text, span))
    starts = [start for piece, start in enumerate(starts) if piece not in joined]
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def _trimmed(text: str, spans: CharSpans, report: ReadReport, where: str) -> Iterator[CharSpan]:
    """The spans without white space at their ends, each with its place; an impossible span is an error."""
    for span in (CharSpan(*span) for span in spans):
        start, end, label, place = span.start, span.end, span.label, span.where or where
        if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
            raise ValueError(
                f"{place or 'text'}: character span [{short(start)}, {short(end)}) of label {short(label)} does not "
                f"fit into a text of {len(text)} characters; expected 0 <= start < end <= {len(text)} with an "
                "exclusive end."
            )
        mention = text[start:end]
        if mention.isspace():
            report.lose("mention without a word", _say(text, CharSpan(start, end, label, place)))
        else:
            start, end = end - len(mention.lstrip()), start + len(mention.rstrip())
            yield span._replace(start=start, end=end, where=place)


def _say(text: str, span: CharSpan) -> str:
    label = span.label if isinstance(span.label, str) else short(span.label)  # refused later, when all is in words
    return (f"{span.where}: " if span.where else "") + f"{label} {short(text[span.start : span.end])}"


def word_splitter(splitter: Splitter) -> Callable[[str], list[tuple[int, int]]]:
    """The function behind a splitter's name; a function is returned as it is."""
    if callable(splitter):
        return splitter
    from ..modeling.words import split_words

    return partial(split_words, splitter=splitter)
