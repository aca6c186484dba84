"""New models for training: on a pretrained encoder, or on word vectors for approaches that have no encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..auto import approach
from ..default import folder_of
from ..loading import load_tokenizer
from ..modeling.word_inputs import tag_words
from .glove import train_glove
from .vectors import WordVectors, read_vectors


@dataclass
class VectorArguments:
    """Word vectors, for approaches that are built on them (sng) or have a vector_dim (locate_and_label)."""

    vectors: str = field(
        default="train", metadata={"help": "A file of word vectors, or 'train': GloVe trained on the data's own text."}
    )
    vectors_text: list[str] = field(
        default_factory=lambda: ["train"],
        metadata={"help": "What GloVe is trained on: splits of the data, or text files with a sentence a line."},
    )
    vectors_lowercase: bool | None = field(
        default=None, metadata={"help": "Lower-case words; by default if a file of vectors knows no capital letter."}
    )
    vectors_limit: int | None = field(default=None, metadata={"help": "Read the first N vectors of a file only."})
    glove_epochs: int = field(default=25, metadata={"help": "Passes over the co-occurrences."})
    glove_window: int = field(default=10, metadata={"help": "Words to either side that count as co-occurring."})
    glove_min_count: int = field(default=2, metadata={"help": "Rarer words count as unknown."})


def build_model(
    name: str,
    labels: list[str],
    settings: Mapping[str, Any],
    encoder: str,
    data: Mapping[Any, Iterable[Any]],
    vectors: VectorArguments,
    seed: int = 42,
    folder: Path | None = None,
    say: Callable[[str], None] = print,
) -> tuple:
    """A new model of the approach `name`, and its tokenizer.

    Args:
        labels, settings: the entity types and the fields of the approach's configuration.
        encoder: Hub id or folder of an encoder or of a trained model, or "default"; for approaches that have one.
        data, vectors: the splits by name and where word vectors come from, for approaches that read them.
        folder: where trained word vectors are kept (as `vectors.txt.gz`), to be used again with `--vectors`.
    """
    model_class, settings, encoder = approach(name), dict(settings), folder_of(encoder)
    on_vectors = "encoder_config" not in model_class.config_class.sub_configs  # there is no encoder inside
    if fresh := settings.get("fresh_layers"):
        say(f"fresh_layers={fresh}: the last {fresh} of the encoder's layers start at random, not as trained.")
    if settings.get("pos_dim") and "pos_tags" not in settings:
        settings["pos_tags"] = frequent_tags(data, settings.get("pos_tagger"))
        say(f"part-of-speech tags: {', '.join(settings['pos_tags'])}")
    if not on_vectors and not settings.get("vector_dim"):
        return model_class.from_encoder(encoder, labels=labels, **settings), load_tokenizer(encoder)
    words = make_vectors(vectors, data, settings.get("vector_dim"), say, seed)
    if folder is not None and vectors.vectors == "train":
        folder.mkdir(parents=True, exist_ok=True)
        words.save(folder / "vectors.txt.gz")
    for split, sentences in data.items():
        share = words.coverage(sentences, vectors.vectors_lowercase)
        say(f"{split}: {share:.1%} of the words have a vector, the others share that of unknown words.")
    if on_vectors:
        on_table: Any = model_class  # the one approach with `from_vectors`
        model = on_table.from_vectors(words.table(), labels=labels, **settings)
        return model, words.tokenizer(vectors.vectors_lowercase)
    if vectors.vectors_lowercase is not None:
        settings["vectors_lowercase"] = vectors.vectors_lowercase
    return model_class.from_encoder(encoder, labels=labels, vectors=words, **settings), load_tokenizer(encoder)


def frequent_tags(data: Mapping[str, Iterable[Mapping]], tagger: str | None, more_than: int = 15) -> list[str]:
    """The part-of-speech tags frequent enough outside the test data to get an embedding, as in Shen et al. (2021)."""
    counts: Counter[str] = Counter()
    for split in ("train", "validation"):
        for sentence in data.get(split, ()):
            counts.update(tag_words(sentence["tokens"], tagger) if sentence.get("pos") is None else sentence["pos"])
    return sorted(tag for tag, count in counts.items() if count > more_than)


def make_vectors(
    args: VectorArguments,
    data: Mapping[str, Iterable[Mapping]],
    dim: int | None,
    say: Callable[[str], None],
    seed: int,
) -> WordVectors:
    """Read word vectors from a file, or train them on text."""
    if args.vectors != "train":
        vectors = read_vectors(args.vectors, limit=args.vectors_limit)
        if dim is not None and dim != vectors.dim:
            raise ValueError(
                f"vector_dim={dim}, but {args.vectors} has {vectors.dim} dimensions: leave vector_dim out."
            )
        say(f"{args.vectors}: {vectors}")
        return vectors
    sentences = [sentence for source in args.vectors_text for sentence in _text(source, data)]
    if args.vectors_lowercase:
        sentences = [[word.lower() for word in sentence] for sentence in sentences]
    vectors = train_glove(
        sentences,
        dim=dim or 300,
        epochs=args.glove_epochs,
        window=args.glove_window,
        min_count=args.glove_min_count,
        seed=seed,
    )
    say(f"GloVe trained on {', '.join(args.vectors_text)} ({len(sentences):,} sentences): {vectors}")
    return vectors


def _text(source: str, data: Mapping[str, Iterable[Mapping]]) -> list[list[str]]:
    """The words of a split, or of a text file whose words are separated by spaces."""
    if source in data:
        return [sentence["tokens"] for sentence in data[source]]
    if not Path(source).is_file():
        raise FileNotFoundError(
            f"vectors_text names {source!r}, which is neither a split of the data ({', '.join(data)}) nor a text file."
        )
    with Path(source).open(encoding="utf-8") as file:
        return [line.split() for line in file]
