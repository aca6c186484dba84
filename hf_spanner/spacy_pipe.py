"""A spaCy component: the nested entities of a Doc as a group of spans.

```python
import spacy
import hf_spanner.spacy_pipe  # not needed where the package is installed: spaCy finds it by its entry point

nlp = spacy.blank("en")
nlp.add_pipe("hf_spanner", config={"model": "default"})
doc = nlp("The mayor of New York met the head of the bank.")
[(span.text, span.label_) for span in doc.spans["nested"]]
```
"""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import spacy.util
import srsly
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span, SpanGroup

from .data.writers.docbin import SPANS_KEY
from .loading import load_model, pipeline
from .modeling.pipeline_nested_ner import NestedNerPipeline

logger = logging.getLogger(__name__)

ALIGNMENTS = ("expand", "contract", "drop")
MODEL = "model"  # the folder of the model inside the component's own


@Language.factory(
    "hf_spanner",
    assigns=["doc.spans"],
    default_config={
        "model": "default",
        "spans_key": SPANS_KEY,
        "set_ents": False,
        "alignment": "expand",
        "threshold": None,
        "overlap": None,
        "labels": None,
        "mentions": None,
        "batch_size": 32,
        "device": "auto",
    },
    default_score_weights={f"spans_{SPANS_KEY}_f": 1.0, f"spans_{SPANS_KEY}_p": 0.0, f"spans_{SPANS_KEY}_r": 0.0},
)
def make_nested_ner(
    nlp: Language,
    name: str,
    model: str,
    spans_key: str,
    set_ents: bool,
    alignment: str,
    threshold: float | dict[str, float] | None,
    overlap: str | None,
    labels: list[str] | None,
    mentions: list[str] | None,
    batch_size: int,
    device: str,
) -> NestedNer:
    """What `nlp.add_pipe("hf_spanner", config={...})` makes; [`NestedNer`] explains the settings."""
    decoding = {"threshold": threshold, "overlap": overlap, "labels": labels, "mentions": mentions}
    given = {option: value for option, value in decoding.items() if value is not None}
    return NestedNer(
        name, model, spans_key, set_ents=set_ents, alignment=alignment, batch_size=batch_size, device=device, **given
    )


class NestedNer:
    """Reads the text of a Doc with a nested NER model and sets `doc.spans[spans_key]`.

    The model reads the text by its own words. An entity that begins or ends inside a token of spaCy's is moved to a
    border by `alignment`; how often that was done, `moved` counts, and the first time it is said.

    Args:
        name: the component's in its pipeline.
        model: a folder, a Hub id, or "default". It is loaded when the first text is read, or with `nlp.from_disk`.
        spans_key: the group's name. Scores are in `attrs["scores"]`, as of spaCy's span categorizer, kinds of mention,
            if the model tells them apart, in `attrs["mentions"]`: one for each span, in its order.
        set_ents: set the outermost in `doc.ents`, too, as far as entities that are there already leave room.
        alignment: "expand" takes the whole token, "contract" leaves it out, "drop" the entity.
        batch_size: windows of text that the model reads at once.
        device: "auto", "cpu", "cuda:1".
        decoding: what a call of the pipeline takes: `threshold`, `overlap`, `labels`, `mentions`.
    """

    def __init__(
        self,
        name: str = "hf_spanner",
        model: str = "default",
        spans_key: str = SPANS_KEY,
        *,
        set_ents: bool = False,
        alignment: str = "expand",
        batch_size: int = 32,
        device: str = "auto",
        **decoding: Any,
    ) -> None:
        if alignment not in ALIGNMENTS:
            raise ValueError(f"alignment={alignment!r} is unknown; choose one of {', '.join(map(repr, ALIGNMENTS))}.")
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} must be at least 1.")
        self.name, self.model, self.spans_key = name, model, spans_key
        self.set_ents, self.alignment, self.batch_size, self.device = set_ents, alignment, batch_size, device
        self.decoding = decoding
        self.moved: Counter[str] = Counter()
        self._ner: NestedNerPipeline | None = None

    @property
    def ner(self) -> NestedNerPipeline:
        """The pipeline that reads; loaded when it is first asked for."""
        if self._ner is None:
            self._load(self.model)
        assert self._ner is not None
        return self._ner

    def _load(self, name: str) -> None:
        model, tokenizer = load_model(name, device=self.device)
        self._ner = pipeline(model, tokenizer, device=model.device)

    @property
    def labels(self) -> tuple[str, ...]:
        """The entity types that the model knows; none before it is loaded, for spaCy asks for them while it loads the
        pipeline, where the model that was named at first may be gone."""
        return () if self._ner is None else tuple(self._ner.model.config.types)

    # --------------------------------------------------------------------------------------------------------- reading

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """The Docs with their entities, in order; the texts of `batch_size` of them are read together."""
        for docs in spacy.util.minibatch(stream, batch_size):
            found = self.ner([doc.text for doc in docs], batch_size=self.batch_size, **self.decoding)
            for doc, entities in zip(docs, found, strict=True):
                self.set_annotations(doc, entities)
                yield doc

    def set_annotations(self, doc: Doc, entities: Iterable[Mapping[str, Any]]) -> None:
        """Set what the pipeline found in the text of this Doc; a group of this name that was there is replaced."""
        best: dict[tuple[int, int, str], tuple[Span, Mapping[str, Any]]] = {}
        for entity in entities:
            span = self._aligned(doc, entity)
            if span is None:
                continue
            key = (span.start, span.end, span.label_)
            if key in best:
                self._count("merged with another entity, which is the same in tokens", doc, entity)
            if key not in best or best[key][1]["score"] < entity["score"]:
                best[key] = (span, entity)
        group = SpanGroup(doc, name=self.spans_key, spans=[span for span, _ in best.values()])
        group.attrs["scores"] = np.array([entity["score"] for _, entity in best.values()], dtype=np.float32)
        if any("mention" in entity for _, entity in best.values()):
            group.attrs["mentions"] = [entity.get("mention") for _, entity in best.values()]
        doc.spans[self.spans_key] = group
        if self.set_ents:
            taken = {token for entity in doc.ents for token in range(entity.start, entity.end)}
            free = [span for span in group if taken.isdisjoint(range(span.start, span.end))]
            doc.set_ents([*doc.ents, *spacy.util.filter_spans(free)], default="unmodified")

    def _aligned(self, doc: Doc, entity: Mapping[str, Any]) -> Span | None:
        """The entity in tokens; None if it has none."""
        start, end, label = entity["start"], entity["end"], entity["entity_group"]
        exact = doc.char_span(start, end, label=label)
        if exact is not None:
            return exact
        span = None
        if self.alignment != "drop":
            span = doc.char_span(start, end, label=label, alignment_mode=self.alignment)
        done = {"expand": "expanded to whole tokens", "contract": "contracted to whole tokens"}
        self._count("dropped" if span is None else done[self.alignment], doc, entity)
        return span

    def _count(self, what: str, doc: Doc, entity: Mapping[str, Any]) -> None:
        if not self.moved[what]:
            logger.warning(
                "An entity does not fit spaCy's tokens, and was %s: %s %r in %r. Others like it are counted in "
                "`nlp.get_pipe(%r).moved`.",
                what,
                entity["entity_group"],
                entity["word"],
                doc.text[max(0, entity["start"] - 20) : entity["end"] + 20],
                self.name,
            )
        self.moved[what] += 1

    def score(self, examples: Iterable[Any], **options: Any) -> dict[str, Any]:
        """Precision, recall and F1 of the group, for `nlp.evaluate`."""
        key = f"spans_{self.spans_key}"

        def group(doc: Doc, _: str) -> Any:
            return doc.spans.get(self.spans_key, [])

        options = {"allow_overlap": True, "has_annotation": lambda doc: self.spans_key in doc.spans, **options}
        return Scorer.score_spans(examples, **{**options, "attr": key, "getter": group})

    # ---------------------------------------------------------------------------------------------------------- saving

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the model, so that `nlp.from_disk` needs nothing else."""
        self.ner.save_pretrained(str(Path(path) / MODEL))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> NestedNer:
        """Load the model that `to_disk` saved."""
        self._load(str(Path(path) / MODEL))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The files of the model in one string of bytes."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder)
            files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
            content: bytes = srsly.msgpack_dumps({f.relative_to(folder).as_posix(): f.read_bytes() for f in files})
        return content

    def from_bytes(self, content: bytes, *, exclude: Iterable[str] = ()) -> NestedNer:
        """Load the model from what `to_bytes` gave."""
        with tempfile.TemporaryDirectory() as folder:
            for name, data in srsly.msgpack_loads(content).items():
                file = (Path(folder) / name).resolve()
                if Path(folder).resolve() not in file.parents:
                    raise ValueError(
                        f"The bytes of the component {self.name!r} name a file outside, {name!r}: refused."
                    )
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            return self.from_disk(folder)
