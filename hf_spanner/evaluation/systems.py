"""Systems: what is compared and reported on, trained models or files of predictions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..analysis.representations import describe_representations, span_representations
from ..loading import load_model
from ..metrics.nested_ner.scoring import EntityLike
from .predicting import predict_sentences
from .predictions import read_predictions


@dataclass
class System:
    """A trained model or a file of predictions, under the name that tables give it."""

    name: str
    place: str
    model: Any = None
    tokenizer: Any = None

    @classmethod
    def named(cls, text: str, **loading: Any) -> System:
        """`name=place` or a place alone: a model's folder or Hub id, or a JSON Lines file of predictions.

        A model is loaded with `loading`: see `load_model`.
        """
        name, equals, place = text.partition("=")
        if not equals:
            name, place = "", text
        system = cls(name or cls.name_of(place), place)
        if not Path(place).is_file():
            system.model, system.tokenizer = load_model(place, **loading)
            if system.model.task == "typing":
                raise ValueError(
                    f"{place} types spans that it is given and finds none: its typing accuracy is what `hf-spanner "
                    "evaluate` says."
                )
        return system

    @classmethod
    def runs_named(cls, text: str) -> tuple[str, list[str]]:
        """The name and the places of a system that was trained several times: `name=run-1,run-2`, or one place."""
        name, equals, places = text.partition("=")
        if not equals:
            name, places = "", text
        listed = [places] if Path(places).exists() else [place.strip() for place in places.split(",")]
        return name or cls.name_of(listed[0]), listed

    @staticmethod
    def name_of(place: str) -> str:
        """What a system is called that has no name."""
        path = Path(place)
        return path.stem if path.is_file() else path.name

    @property
    def splitter(self) -> str | None:
        """How the model cuts text into words; None for a file, whose words are what they are."""
        return None if self.model is None else self.model.config.word_splitter

    def predict(
        self, sentences: Sequence[Mapping[str, Any]], batch_size: int = 32, mentions: Collection[str] | None = None
    ) -> Sequence[Sequence[EntityLike]]:
        """The entities of every sentence: the model's, or those of the file.

        Of a sentence that says which `labels` it is annotated with, entities with these alone; of several kinds of
        mention, those of `mentions` (an entity of a file that does not say its kind is of any).
        """
        if self.model is not None:
            return predict_sentences(
                self.model, self.tokenizer, sentences, batch_size, progress=True, mentions=mentions
            )
        kinds = None if mentions is None else {*mentions, None}
        found: Any = read_predictions(self.place, sentences)
        return [
            [
                e
                for e in entities
                if (sentence.get("labels") is None or e["label"] in sentence["labels"])
                and (kinds is None or e.get("mention") in kinds)
            ]
            for sentence, entities in zip(sentences, found, strict=True)
        ]

    def represent(self, sentences: Sequence[Mapping[str, Any]], batch_size: int = 16) -> dict[str, Any]:
        """What `describe_representations` says of the model."""
        if self.model is None:
            raise ValueError(f"{self.place} is a file of predictions: --representations needs the model.")
        return describe_representations(
            span_representations(self.model, self.tokenizer, sentences, batch_size, progress=True)
        )
