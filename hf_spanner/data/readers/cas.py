"""UIMA CAS as XMI, from INCEpTION, WebAnno or DKPro."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..chars import CharSpan, Splitter
from ..needed import needed
from ..schema import ReadReport, Sentence, first_line, short
from ..writers.cas import NAMED_ENTITY, SEGMENTATION, TYPE_SYSTEM
from .files import open_bytes, plain_name
from .own_words import OWN, OwnText, own_sentences

# Layers that annotate a text and mark no mentions: what DKPro and INCEpTION themselves say of it.
_NO_MENTIONS = ("de.tudarmstadt.ukp.", "uima.")
_STRING = "uima.cas.String"


def read_cas(
    path: str | Path,
    report: ReadReport,
    *,
    layer: str | None = None,
    feature: str | None = None,
    splitter: Splitter | None = None,
    split_sentences: str = OWN,
    on_misaligned: str = "expand",
) -> Iterator[Sentence]:
    """A `.xmi`, or a folder of them and its sub-folders; `TypeSystem.xml` lies beside the file or in a folder above.

    Words and sentences are the document's own tokens and sentences; one without tokens is cut by a splitter.

    Args:
        layer: the type of the annotations that are entities; by default DKPro's `NamedEntity`, or the one custom layer
            if there are no named entities. The annotations of other custom layers are counted.
        feature: the feature that holds the label; by default `value`, or the layer's one feature of strings.
        splitter: cut the text into words anew.
        split_sentences: "own", "newline" or "none".
        on_misaligned: see `TextOptions`.
    """
    path = Path(path)
    files = xmi_files(path) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"{path} holds no .xmi file; expected documents and their {TYPE_SYSTEM}.")
    opened = _Files(path)
    for file in files:
        cas, written = opened.load(file)
        name = plain_name(file).stem if path.is_file() else file.relative_to(path).with_suffix("").as_posix()
        text = cas.sofa_string
        if text is None:
            custom = sum(count for kind, count in written.items() if not kind.startswith(_NO_MENTIONS))
            report.lose("annotation of a document without a text", str(file), written[layer or NAMED_ENTITY] or custom)
            report.ignore("document without a text", str(file))
            continue
        words = _words(cas, report, str(file))
        document = OwnText(
            text, words, _starts(cas, words), list(_char_spans(cas, written, layer, feature, report, file))
        )
        yield from own_sentences(
            document,
            report,
            splitter if words else splitter or "compound",
            split_sentences,
            on_misaligned,
            id=name,
            doc_id=name,
            where=str(file),
        )


def xmi_files(folder: Path) -> list[Path]:
    """The `.xmi` files of a folder and its sub-folders; what is hidden is no data."""
    files = sorted(file for file in folder.rglob("*.xmi") if file.is_file())
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


class _Files:
    """CAS files of one source, and the type systems that they share."""

    def __init__(self, source: Path) -> None:
        self.cassis = needed("cassis", "cas", "Reading CAS XMI")
        self.top = source if source.is_dir() else source.parent.parent
        self.types: dict[Path, Any] = {}

    def load(self, file: Path) -> tuple[Any, Counter[str]]:
        """The CAS, and how many annotations of each type are written in the file."""
        places = [folder / TYPE_SYSTEM for folder in file.parents if self.top in (folder, *folder.parents)]
        place = next((place for place in places if place.is_file()), None)
        if place is None:
            raise FileNotFoundError(
                f"{file}: there is no {TYPE_SYSTEM} beside it; INCEpTION and WebAnno export it with the document."
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # an offset that lies in no text is only a warning to cassis
                warnings.filterwarnings("ignore", message="Feature with name", category=UserWarning)
                if place not in self.types:
                    self.types[place] = self.cassis.load_typesystem(io.BytesIO(_content(place)))
                content = _content(file)
                cas = self.cassis.load_cas_from_xmi(io.BytesIO(content), typesystem=self.types[place])
                return (cas if cas.sofa_string is None else _checked(cas)), _written(content)
        except Exception as error:  # XML and CAS fail in a dozen ways; the user needs one sentence
            raise ValueError(
                f"{file}: the CAS is damaged or does not fit {place} ({first_line(error)}); export it again."
            ) from error


def _content(file: Path) -> bytes:
    with open_bytes(file) as opened:
        content = opened.read()
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ValueError(f"{file} declares entities of XML, which is refused")
    return content


def _written(content: bytes) -> Counter[str]:
    etree = needed("lxml.etree", "cas", "Reading CAS XMI")
    tags = (str(element.tag) for element in etree.fromstring(content) if isinstance(element.tag, str))
    names = (re.fullmatch(r"\{http:///(.*)\.ecore\}(.*)", tag) for tag in tags)
    return Counter(f"{name[1].replace('/', '.')}.{name[2]}" for name in names if name)


def _checked(cas: Any) -> Any:
    for annotation in cas.select_all_annotations():
        if type(annotation.begin) is not int or not 0 <= annotation.begin <= annotation.end <= len(cas.sofa_string):
            raise ValueError(f"{annotation.type.name} at {annotation.begin} to {annotation.end} lies in no text")
    return cas


def _words(cas: Any, report: ReadReport, where: str) -> list[tuple[int, int]]:
    """The tokens; of two that overlap the first."""
    words: list[tuple[int, int]] = []
    for token in _of_type(cas, SEGMENTATION + "Token"):
        text = cas.sofa_string[token.begin : token.end]
        if not text.strip():
            continue
        if words and token.begin < words[-1][1]:
            report.ignore("token inside another", f"{where}: {short(text)}")
        else:
            words.append((token.begin, token.end))
    return words


def _starts(cas: Any, words: Sequence[tuple[int, int]]) -> list[int] | None:
    """Where the sentences begin; not inside a word."""
    inside = {position for start, end in words for position in range(start + 1, end)}
    starts = sorted({sentence.begin for sentence in _of_type(cas, SEGMENTATION + "Sentence")} - inside)
    return starts or None


def _of_type(cas: Any, name: str) -> list[Any]:
    return list(cas.select(name)) if cas.typesystem.contains_type(name) else []


def _char_spans(
    cas: Any, written: Counter[str], layer: str | None, feature: str | None, report: ReadReport, file: Path
) -> Iterator[CharSpan]:
    name = _layer(cas, layer, file)
    for other in _custom_layers(cas):
        if other != name:
            report.ignore(f"annotation of the layer {other}", str(file), len(_of_type(cas, other)))
    if name is None:
        return
    chosen = _label_feature(cas, name, feature, file)
    beside = written[name] - len(_of_type(cas, name))
    report.lose("annotation that is not in the document's view", f"{file}: {name}", max(0, beside))
    for annotation in _of_type(cas, name):
        label = annotation.get(chosen)
        text = short(cas.sofa_string[annotation.begin : annotation.end])
        if not label or annotation.begin == annotation.end:
            report.lose("annotation without a label or a word", f"{file}: {text}")
            continue
        kind = annotation.get("mention") if annotation.type.get_feature("mention") is not None else None
        where = f"{file}: {name.rpartition('.')[2]} {annotation.xmiID}"
        yield CharSpan(
            annotation.begin, annotation.end, label, where, kind if isinstance(kind, str) and kind else None
        )


def _layer(cas: Any, layer: str | None, file: Path) -> str | None:
    """The type that holds the entities; None if nothing is annotated."""
    custom = _custom_layers(cas)
    if layer is not None:
        if not cas.typesystem.contains_type(layer):
            raise ValueError(f"{file}: its CAS has no layer {layer!r}; it has {', '.join([NAMED_ENTITY, *custom])}.")
        return layer
    if _of_type(cas, NAMED_ENTITY) or not custom:
        return NAMED_ENTITY if cas.typesystem.contains_type(NAMED_ENTITY) else None
    if len(custom) > 1:
        raise ValueError(
            f"{file}: its CAS has no named entities and holds several layers, {', '.join(custom)}; pass layer= with "
            "the one whose annotations are entities."
        )
    return custom[0]


def _custom_layers(cas: Any) -> list[str]:
    """The types of annotations that are there, and not DKPro's or UIMA's own."""
    names = {annotation.type.name for annotation in cas.select_all_annotations()}
    return sorted(name for name in names if not name.startswith(_NO_MENTIONS))


def _label_feature(cas: Any, layer: str, feature: str | None, file: Path) -> str:
    features = [f.name for f in cas.typesystem.get_type(layer).all_features if f.rangeType.name == _STRING]
    chosen = feature or ("value" if "value" in features else features[0] if len(features) == 1 else None)
    if chosen not in features:
        raise ValueError(
            f"{file}: its CAS does not say which feature of {layer} holds the label (feature={feature!r}, features of "
            f"strings: {', '.join(features) or 'none'}); pass feature=."
        )
    return str(chosen)
