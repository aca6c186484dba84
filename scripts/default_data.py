"""Put the corpora of the default model together: one inventory of labels, and of each sentence what is known of it.

    python scripts/default_data.py CORPORA --output_dir runs/default_data
    hf-spanner train default.yaml --data runs/default_data --output_dir runs/default

CORPORA holds a folder for each corpus of `scripts/default_corpora.yaml`, which says what its labels are called here
and why. A sentence of the result has `labels`, those it says something about: the corpus', those that such a text
cannot hold, and terms of medicine and biology if none of its words is ever part of one. Text is varied as users send
it: lower case, capitals, no full stop, curly quotes.
"""

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

TERMS = ("disease", "chemical", "species")
RARE = 30  # mentions of one label and kind; fewer are counted to the label's commonest kind
CURRENCY = {"$", "€", "£", "¥", "dollar", "dollars", "euro", "euros", "pound", "pounds", "yen", "cents", "rupees", "Rs."}
KINDS = ("gum", "amalgum")  # corpora that mark every kind of mention; the others mark names
VALIDATION = {"gum": None, "genia": 400, "bc5cdr": 400, "wikigold": None, "uner_en": 300}

Sentence = dict[str, Any]


def read(folder: Path, split: str) -> list[Sentence]:
    """The sentences of a split, packed or not."""
    plain, packed = folder / f"{split}.jsonl", folder / f"{split}.jsonl.gz"
    with plain.open(encoding="utf-8") if plain.exists() else gzip.open(packed, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def words_of(sentence: Sentence, entity: dict[str, Any]) -> str:
    return " ".join(sentence["tokens"][entity["start"] : entity["end"]])


def translate(sentence: Sentence, names: dict[str, str], not_names: set[str]) -> list[dict[str, Any]]:
    """The entities in the default's labels, each with its kind of mention."""
    entities = []
    for e in sentence["entities"]:
        text = words_of(sentence, e)
        label = names.get(e["label"])
        if label in ("organization", "place") and text in not_names:
            continue
        if label in ("abstract", "object") and CURRENCY & set(text.split()) and any(map(str.isdigit, text)):
            label = "money"
        if label is not None:
            entities.append({"start": e["start"], "end": e["end"], "label": label, "mention": e.get("mention", "name")})
    return entities


def common_kinds(sentences: list[Sentence]) -> dict[str, list[str]]:
    """The kinds of mention that each label has examples enough of, the commonest first."""
    counts = Counter((e["label"], e["mention"]) for s in sentences for e in s["entities"])
    kinds: dict[str, list[str]] = {}
    for (label, kind), count in counts.most_common():
        if count >= RARE or label not in kinds:
            kinds.setdefault(label, []).append(kind)
    return kinds


def term_words(sentences: list[Sentence], labels: tuple[str, ...]) -> dict[str, set[str]]:
    """For each label the words that stand in its entities in at least one of four places."""
    inside: dict[str, Counter[str]] = {label: Counter() for label in labels}
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("corpora", help="folder with a folder for each corpus")
    parser.add_argument("--output_dir", default="runs/default_data")
    parser.add_argument("--seed", type=int, default=0, help="of what is left out and varied")
    args = parser.parse_args()
    root, output, draw = Path(args.corpora), Path(args.output_dir), random.Random(args.seed)
    plan = yaml.safe_load(Path(__file__).with_name("default_corpora.yaml").read_text(encoding="utf-8"))
    not_names = {
        words_of(s, e)
        for corpus, label in (("wikigold", "MISC"), ("crossner", "misc"))
        for s in read(root / corpus, "train")
        for e in s["entities"]
        if e["label"] == label and e["end"] - e["start"] == 1
    }
    data: dict[str, dict[str, list[Sentence]]] = {}
    for name, corpus in plan.items():
        data[name] = {}
        for split in ("train", *corpus.get("extra", ()), *(["validation"] if name in VALIDATION else [])):
            kept = [s for s in read(root / name, split) if not {e["label"] for e in s["entities"]} & set(corpus.get("without", ()))]
            for s in kept:
                s["gold"] = not corpus.get("silver")
                s["entities"] = translate(s, corpus["labels"], not_names if name == "redocred" else set())
            data[name][split] = kept
    kinds = common_kinds([s for splits in data.values() for s in splits["train"] if s["gold"]])
    for s in (s for splits in data.values() for part in splits.values() for s in part):
        for e in s["entities"]:
            if e["mention"] not in kinds[e["label"]]:  # too few to learn: the commonest will do
                e["mention"] = kinds[e["label"]][0]
            if kinds[e["label"]] == ["name"]:  # a term: it has no kinds
                del e["mention"]
    medicine = [s for name in ("bc5cdr", "ncbi_disease", "craft") for s in data[name]["train"]]
    words = term_words(medicine, TERMS)
    def classes(labels: list[str], name: str) -> list[str]:
        """Labels with the kinds of mention that a corpus says something about."""
        told = [(label, kind) for label in set(labels) for kind in (kinds[label] if name in KINDS else ["name"])]
        return sorted(label if kinds[label] == ["name"] else f"{label}:{kind}" for label, kind in told)

    train, silver, validation, counts = [], [], [], Counter()
    for name, corpus in plan.items():
        general = "protein" in corpus.get("absent", ())
        known = [*corpus["labels"].values(), *corpus.get("absent", ()), *(["money"] if name in (*KINDS, "fire") else [])]

        def finish(s: Sentence) -> Sentence:
            free = [t for t in TERMS if t not in known and general and not words[t] & {w.lower() for w in s["tokens"]}]
            return {
                "id": s["id"],
                "doc_id": s.get("doc_id") and f"{name}/{s['doc_id']}",
                "tokens": s["tokens"],
                "entities": s["entities"],
                "labels": classes([*known, *free], name),
                "flat": bool(corpus.get("flat")),
                "corpus": name,
            }

        own = [s for split in ("train", *corpus.get("extra", ())) for s in data[name][split]]
        own = [s for s in own if s["entities"] or draw.random() < corpus.get("empty", 1)]
        taken = [vary(finish(s), draw, general) for s in take(own, corpus.get("passes", 1), draw)]
        (silver if corpus.get("silver") else train).extend(taken)
        counts[name] = len(taken)
        if name in VALIDATION:
            for s in data[name]["validation"][: VALIDATION[name]]:
                validation.append({**finish(s), "flat": False})
    general_only = [s for s in validation if s["corpus"] == "gum"]
    for file, sentences in (
        ("silver/train", silver),
        ("silver/validation", general_only),
        ("train", train),
        ("validation", validation),
    ):
        path = output / f"{file}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(s, ensure_ascii=False) + "\n" for s in sentences), encoding="utf-8")
    for label, of in kinds.items():
        print(f"{label}: {', '.join(of)}")
    print(f"{len(silver):,} silver and {len(train):,} gold training sentences ({dict(counts)}); {len(validation):,} to choose by")


if __name__ == "__main__":
    main()
