"""Put the corpora of the default model together: one inventory of labels, and of each sentence what is known of it.

    python scripts/default_data.py CORPORA --output_dir runs/default_data

CORPORA holds a folder for each corpus of `scripts/default_corpora.yaml`, which says what its labels are called here
and why; `scripts/train_default.py` trains on the result. A sentence of it has `labels`, those it says something about:
the corpus', those that such a text cannot hold, and terms of medicine and biology if none of its words is ever part of
one. Text is varied as users send it: lower case, capitals, no full stop, curly quotes.
"""

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ordinary_text
import yaml

from hf_spanner.modeling.decoding import with_mention

PLAN = Path(__file__).with_name("default_corpora.yaml")
TERMS = ("disease", "chemical", "species")
MOLECULES = ("protein", "DNA", "RNA", "cell_type", "cell_line")
RARE = 30  # mentions of one label and kind; fewer are counted to the label's commonest kind
CURRENCY = {"$", "€", "£", "¥", "dollar", "dollars", "euro", "euros", "pound", "pounds", "yen", "cents", "rupees"}
CONNECTORS = {  # small words and signs inside a name
    "person": {"de", "da", "del", "der", "den", "di", "la", "von", "van", "bin", "al", "-", "–", ".", "'", "’", "s"},
    "organization": {"of", "and", "for", "the", "&", "de", "-", "–", ".", "'", "’", "'s", "’s", "s", "to"},
    "place": {"of", "the", "de", "la", "-", "–", ".", "'", "’", "'s", "’s", "s"},
}
ENDS = {
    ",",
    "(",
    "[",
    ";",
    ":",
    "who",
    "whom",
    "which",
    "that",
    "where",
    "with",
    "in",
    "at",
    "on",
}  # of a name in a phrase
TITLES = set(
    "mr mrs ms miss dr prof professor president judge justice senator governor minister king queen prince princess "
    "emperor sir lord lady captain colonel general chancellor mayor pope saint reverend chairman secretary".split()
)
AFTER = set(  # what stands behind a name that owns the article before it, and not behind "the US economy"
    ", . ; : ) ( ! ? - – — ' ’ 's ’s \" ” and or in of to for on at by with from as that which who is was are were "
    "has had have will would could can said did does after before since until during into over "
    "under against between".split()
)
VALIDATION = {"gum": None, "genia": 400, "bc5cdr": 400, "wikigold": None, "uner_en": 300}  # sentences to choose by

Sentence = dict[str, Any]
Kinds = Mapping[str, list[str]]  # of mention, by label


@dataclass
class Corpus:
    """One entry of `default_corpora.yaml`."""

    name: str
    labels: dict[str, str]
    general: bool = False  # no text of biology: molecules do not occur
    kinds: bool = False  # every kind of mention is marked; else names alone
    flat: bool = False
    silver: bool = False
    passes: float = 1
    last: float = 0
    names: float = 0
    empty: float = 1
    extra: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)

    @property
    def known(self) -> set[str]:
        """The labels of which a sentence says whether they are there."""
        return set(self.labels.values()) | (set(MOLECULES) if self.general else set())

    def read(self, root: Path, split: str) -> list[Sentence]:
        """The sentences of a split, packed or not, with their entities in the default's labels."""
        plain, packed = root / self.name / f"{split}.jsonl", root / self.name / f"{split}.jsonl.gz"
        with plain.open(encoding="utf-8") if plain.exists() else gzip.open(packed, "rt", encoding="utf-8") as file:
            sentences = [json.loads(line) for line in file]
        return [s for s in sentences if not any(e["label"] in self.without for e in s["entities"])]

    def translate(self, sentence: Sentence, no_names: set[str]) -> list[dict[str, Any]]:
        """The entities in the default's labels, each with its kind of mention."""
        entities = []
        for e in sentence["entities"]:
            label, text = self.labels.get(e["label"]), words_of(sentence, e)
            if label is None or (label in ("organization", "place") and text in no_names):
                continue
            if self.kinds and CURRENCY & set(text.split()) and any(map(str.isdigit, text)):
                label = "money" if label in ("abstract", "object") else label
            entities.append(
                {"start": e["start"], "end": e["end"], "label": label, "mention": e.get("mention", "name")}
            )
        return entities

    def finish(self, sentence: Sentence, kinds: Kinds, term_words: Mapping[str, set[str]]) -> Sentence:
        """The sentence with what is known of it."""
        words = {word.lower() for word in sentence["tokens"]}
        free = {term for term in TERMS if self.general and not term_words[term] & words}
        told = [(label, kind) for label in self.known | free for kind in (kinds[label] if self.kinds else ["name"])]
        entities = [dict(e) for e in sentence["entities"]]
        for e in entities:
            if e["mention"] not in kinds[e["label"]]:  # too few to learn: the commonest will do
                e["mention"] = kinds[e["label"]][0]
            if kinds[e["label"]] == ["name"]:  # a term: it has no kinds
                del e["mention"]
        return {
            "id": sentence["id"],
            "doc_id": sentence.get("doc_id") and f"{self.name}/{sentence['doc_id']}",
            "tokens": sentence["tokens"],
            "entities": entities,
            "labels": sorted(with_mention(label, None if kinds[label] == ["name"] else kind) for label, kind in told),
            "flat": self.flat,
            "corpus": self.name,
        }


def read_plan() -> list[Corpus]:
    plan = yaml.safe_load(PLAN.read_text(encoding="utf-8"))
    return [Corpus(name, **entry) for name, entry in plan.items()]


def words_of(sentence: Sentence, entity: dict[str, Any]) -> str:
    return " ".join(sentence["tokens"][entity["start"] : entity["end"]])


def has_article(sentence: Sentence) -> bool:
    """Whether an article stands before an entity: GUM's names begin with it, those of flat corpora behind it."""
    return any(e["start"] and sentence["tokens"][e["start"] - 1].lower() == "the" for e in sentence["entities"])


def is_name(words: list[str], label: str) -> bool:
    """Whether the words are a name and nothing else: capitals, and the small words between them."""
    small = CONNECTORS[label]
    if not words or words[0] in small - {"'", "’"} or words[-1] in small - {".", "s", "'s", "’s"}:
        return False
    if label == "person" and words[0].lower() in TITLES:
        return False
    return all(word[:1].isupper() or word[:1].isdigit() or word in small for word in words)


def name_in(words: list[str], label: str) -> tuple[int, int] | None:
    """Where the name stands in a phrase that GUM calls one ("the writer [Mark Twain], who ..."), if it can be seen."""
    small, ends, titles = CONNECTORS[label], ENDS, set()
    if label == "person":
        ends, titles = ENDS | {"of", "for"}, TITLES
    end = next((i for i, word in enumerate(words) if word in ends), len(words))
    start = end
    while start and (words[start - 1][:1].isupper() or words[start - 1] in small):
        start -= 1
    while start < end and (words[start] in small or words[start].lower() in titles):
        start += 1
    return (start, end) if is_name(words[start:end], label) else None


def with_bare_names(sentence: Sentence) -> Sentence:
    """The sentence with names that are names: a phrase with a name at its heart is a nominal that holds a name."""
    entities, taken = [], {(e["start"], e["end"], e["label"]) for e in sentence["entities"]}
    for e in sentence["entities"]:
        words = sentence["tokens"][e["start"] : e["end"]]
        article = len(words) > 1 and words[0].lower() == "the"
        if e["mention"] == "name" and e["label"] in CONNECTORS and not is_name(words[article:], e["label"]):
            found = name_in(words, e["label"])
            if found is not None and "and" not in words:
                name = {"start": e["start"] + found[0], "end": e["start"] + found[1], "label": e["label"]}
                e = {**e, "mention": "nominal"}
                if tuple(name.values()) not in taken:
                    taken.add(tuple(name.values()))
                    entities.append({**name, "mention": "name"})
        entities.append(e)
    return {**sentence, "entities": entities}


def with_articles(sentence: Sentence) -> Sentence | None:
    """The sentence with the article as a part of the name, as GUM has it; none if one may belong to another word."""
    entities, tokens = [], sentence["tokens"]
    for e in sentence["entities"]:
        if e["start"] and tokens[e["start"] - 1].lower() == "the" and e["label"] in ("organization", "place"):
            if e["end"] < len(tokens) and tokens[e["end"]].lower() not in AFTER:
                return None
            e = {**e, "start": e["start"] - 1}
        entities.append(e)
    return {**sentence, "entities": entities}


def common_kinds(sentences: list[Sentence]) -> dict[str, list[str]]:
    """The kinds of mention that each label has examples enough of, the commonest first."""
    counts = Counter((e["label"], e["mention"]) for s in sentences for e in s["entities"])
    kinds: dict[str, list[str]] = {}
    for (label, kind), count in counts.most_common():
        if count >= RARE or label not in kinds:
            kinds.setdefault(label, []).append(kind)
    return kinds


def words_of_terms(sentences: list[Sentence]) -> dict[str, set[str]]:
    """For each term's label the words that stand in its entities in at least one of four places."""
    inside: dict[str, Counter[str]] = {label: Counter() for label in TERMS}
    anywhere: Counter[str] = Counter()
    for sentence in sentences:
        words = [word.lower() for word in sentence["tokens"]]
        anywhere.update(words)
        for e in sentence["entities"]:
            if e["label"] in inside:
                inside[e["label"]].update(words[e["start"] : e["end"]])
    return {
        label: {word for word, count in counts.items() if len(word) > 1 and count >= anywhere[word] / 4}
        for label, counts in inside.items()
    }


def vary(sentence: Sentence, draw: random.Random, general: bool) -> Sentence:
    """The sentence as a user might send it."""
    tokens, entities = list(sentence["tokens"]), sentence["entities"]
    if len(tokens) > 3 and tokens[-1] == "." and draw.random() < 0.1 and all(e["end"] < len(tokens) for e in entities):
        tokens.pop()
    if draw.random() < 0.5:
        opened = False
        for i, token in enumerate(tokens):
            if token == '"':
                opened = not opened
                tokens[i] = "“" if opened else "”"
            elif token.startswith("'") and len(token) < 4:
                tokens[i] = "’" + token[1:]
    fate = draw.random()
    if fate < (0.05 if general else 0.02):
        tokens = [token.lower() for token in tokens]
    elif general and fate < 0.08:
        tokens = [token.upper() for token in tokens]
    elif general and fate < 0.09:
        tokens = [token[:1].upper() + token[1:] for token in tokens]
    return {**sentence, "tokens": tokens}


def take(sentences: list[Sentence], passes: float, draw: random.Random) -> Iterator[Sentence]:
    """The sentences so many times over; of a last part of a pass, whole documents drawn at random."""
    for _ in range(int(passes)):
        yield from sentences
    documents: dict[str, list[Sentence]] = {}
    for i, sentence in enumerate(sentences):
        documents.setdefault(sentence.get("doc_id") or str(i), []).append(sentence)
    names, wanted = list(documents), round((passes - int(passes)) * len(sentences))
    draw.shuffle(names)
    for name in names:
        if wanted <= 0:
            return
        yield from documents[name]
        wanted -= len(documents[name])


def write(sentences: list[Sentence], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(s, ensure_ascii=False) + "\n" for s in sentences), encoding="utf-8")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("corpora", help="folder with a folder for each corpus")
    parser.add_argument("--output_dir", default="runs/default_data")
    parser.add_argument("--seed", type=int, default=0, help="of what is left out and varied")
    parser.add_argument("--ordinary", type=int, default=8000, help="sentences of our own (ordinary_text.yaml)")
    args = parser.parse_args(argv)
    root, output, draw = Path(args.corpora), Path(args.output_dir), random.Random(args.seed)
    corpora = read_plan()

    no_names = {  # "American", "Christian": neither a place nor an organization, whatever Re-DocRED says
        words_of(s, e)
        for name, label in (("wikigold", "MISC"), ("crossner", "misc"))
        for s in Corpus(name, {}).read(root, "train")
        for e in s["entities"]
        if e["label"] == label and e["end"] - e["start"] == 1
    }
    data: dict[str, dict[str, list[Sentence]]] = {}
    for corpus in corpora:
        splits = ["train", *corpus.extra, *(["validation"] if corpus.name in VALIDATION else [])]
        data[corpus.name] = {split: corpus.read(root, split) for split in splits}
        for s in (s for part in data[corpus.name].values() for s in part):
            s["entities"] = corpus.translate(s, no_names if corpus.name == "redocred" else set())
    gold = [s for corpus in corpora if not corpus.silver for s in data[corpus.name]["train"]]
    medicine = [s for corpus in corpora if set(TERMS) & corpus.known for s in data[corpus.name]["train"]]
    kinds, term_words = common_kinds(gold), words_of_terms(medicine)

    train: dict[str, list[Sentence]] = {"silver": [], "gold": [], "last": [], "names": []}
    validation: list[Sentence] = []
    for corpus in corpora:
        own = [s for split in ("train", *corpus.extra) for s in data[corpus.name][split]]
        own = [s for s in own if s["entities"] or draw.random() < corpus.empty]
        first = "silver" if corpus.silver else "gold"
        for training, passes in ((first, corpus.passes), ("last", corpus.last), ("names", corpus.names)):
            used = own
            if corpus.flat and corpus.general and training == "last":
                used = [s for s in own if not has_article(s)]
            elif corpus.flat and corpus.general and training == "names":
                used = [s for s in map(with_articles, own) if s is not None]
            elif corpus.kinds and training == "names":
                used = [with_bare_names(s) for s in own]
            taken = [vary(corpus.finish(s, kinds, term_words), draw, corpus.general) for s in take(used, passes, draw)]
            train[training] += taken
            print(f"{corpus.name}, {training}: {len(taken):,} sentences")
        if corpus.name in VALIDATION:
            chosen = data[corpus.name]["validation"][: VALIDATION[corpus.name]]
            validation += [{**corpus.finish(s, kinds, term_words), "flat": False} for s in chosen]
    ours = Corpus("ordinary", {}, general=True)
    ours.labels = {label: label for label in ("person", "organization", "place", "disease", "chemical")}
    written = ordinary_text.sentences(args.ordinary, draw)
    train["names"] += [vary(ours.finish(s, kinds, term_words), draw, True) for s in written]
    for training, sentences in train.items():
        write(sentences, output / training / "train.jsonl")
        write(
            [s for s in validation if training != "silver" or s["corpus"] == "gum"],
            output / training / "validation.jsonl",
        )
    for label, of in kinds.items():
        print(f"{label}: {', '.join(of)}")
    print({training: len(sentences) for training, sentences in train.items()}, f"{len(validation):,} to choose by")


if __name__ == "__main__":
    main()
