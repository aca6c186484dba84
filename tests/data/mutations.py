"""Annotated files of every format, made at random and then damaged, and a count of what they hold that is made without
the readers: what a file annotates has to come out of its reader or be counted as lost."""

import csv
import gzip
import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

from data.corpus_formats import ANNOTATIONS, CORPUS_FORMATS, COUNTS, in_characters

WORDS = [
    "The",
    "mayor",
    "of",
    "Bonn",
    "IL-2",
    "anti-Russian",
    "Köln",
    "e\u0301",
    "🎉",
    "U.S.",
    "3.5",
    "#tag",
    "a",
    "O",
]
LABELS = ["PER", "GPE", "B-cell", "Ä_x", "O"]


def documents(draw: random.Random) -> list[dict]:
    """Some sentences: words, and spans that nest, cross and now and then occur twice."""
    result = []
    for _ in range(draw.randint(1, 5)):
        words = draw.choices(WORDS, k=draw.randint(1, 8))
        spans = []
        for _ in range(draw.randint(0, 4)):
            start = draw.randrange(len(words))
            spans.append((start, draw.randint(start + 1, len(words)), draw.choice(LABELS)))
        result.append({"words": words, "spans": spans})
    return result


# One function a format: the documents as a file (or a folder); returns what to read.


def word_records(docs: list[dict], draw: random.Random) -> list[dict]:
    key, as_list = draw.choice(["entities", "ner", "spans"]), draw.random() < 0.3
    name = draw.choice(["label", "type"])
    records = []
    for doc in docs:
        spans = [
            list(s) if as_list else {"start": s[0], "end": s[1], name: s[2], "mention": "n"} for s in doc["spans"]
        ]
        records.append({draw.choice(["tokens", "words"]): doc["words"], key: spans})
    return records


def text_records(docs: list[dict], draw: random.Random) -> list[dict]:
    key, form = draw.choice(["entities", "spans", "label"]), draw.randrange(3)
    names = [("start", "end", "label"), ("start_offset", "end_offset", "label")][form % 2]
    records = []
    for doc in docs:
        text, spans = in_characters(doc)
        items = [list(span) if form == 2 else dict(zip(names, span, strict=True)) for span in spans]
        records.append({"text": text, key: items})
    return records


def studio_records(docs: list[dict], draw: random.Random) -> list[dict]:
    minimal, records = draw.random() < 0.4, []
    for doc in docs:
        text, spans = in_characters(doc)
        regions = [{"start": s, "end": e, "labels": [label], "text": text[s:e]} for s, e, label in spans]
        results = [{"type": "labels", "value": region} for region in regions]
        further = [{"result": results[:1]}] if draw.random() < 0.2 else []
        full = {"data": {"text": text}, "annotations": [{"result": results}, *further]}
        records.append({"text": text, "label": regions, "annotator": 1} if minimal else full)
    return records


def as_lines(records: list[dict], path: Path) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def as_list(records: list[dict], path: Path, indent: int | None) -> Path:
    path.write_text(json.dumps(records, ensure_ascii=False, indent=indent), encoding="utf-8")
    return path


def in_layers(doc: dict) -> list[list[str]]:
    """Two layers of BIO tags; spans that fit into neither are taken out of the document."""
    layers, kept = [["O"] * len(doc["words"]) for _ in range(2)], []
    for start, end, label in doc["spans"]:
        for layer in layers:
            if set(layer[start:end]) == {"O"}:
                layer[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
                kept.append((start, end, label))
                break
    doc["spans"] = kept
    return layers


def write_conll(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    rows = []
    for doc in docs:
        outer, inner = in_layers(doc)
        rows += ["\t".join(row) for row in zip(doc["words"], outer, inner, strict=True)] + [""]
    path = folder / "a.conll"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def write_brat(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    for number, doc in enumerate(docs):
        place = folder / "brat" / ("sub" if number % 2 else "")
        place.mkdir(parents=True, exist_ok=True)
        text, spans = in_characters(doc)
        lines = [f"T{n}\t{label} {s} {e}\t{text[s:e]}" for n, (s, e, label) in enumerate(spans)]
        (place / f"d{number}.txt").write_text(text, encoding="utf-8")
        (place / f"d{number}.ann").write_text("\n".join(lines), encoding="utf-8")
    return folder / "brat"


def write_csv(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    rows: list[list[str]]
    form = draw.randrange(3)
    if form == 0:
        rows = [["sentence_id", "word", "tag"]]
        for number, doc in enumerate(docs):
            layer, _ = in_layers(doc)
            doc["spans"] = [
                (s, e, la) for s, e, la in doc["spans"] if layer[s] == f"B-{la}" and layer[e - 1][2:] == la
            ]
            doc["spans"] = flat(layer)
            rows += [[str(number), word, tag] for word, tag in zip(doc["words"], layer, strict=True)]
    elif form == 1:
        rows = [["tokens", "entities"]]
        rows += [[json.dumps(doc["words"]), json.dumps([list(span) for span in doc["spans"]])] for doc in docs]
    else:
        rows = [["text", "entities"]]
        rows += [[text, json.dumps([list(span) for span in spans])] for text, spans in map(in_characters, docs)]
    path = folder / "a.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def flat(layer: list[str]) -> list[tuple[int, int, str]]:
    starts = [position for position, tag in enumerate(layer) if tag[:2] == "B-"]
    ends = [next((e for e in range(s + 1, len(layer)) if layer[e][:2] != "I-"), len(layer)) for s in starts]
    return [(s, e, layer[s][2:]) for s, e in zip(starts, ends, strict=True)]


def dataset(docs: list[dict], draw: random.Random):
    import datasets

    names = ("start", "end", "label")
    by_words = draw.random() < 0.5
    rows = []
    for doc in docs:
        text, spans = in_characters(doc)
        entities = [dict(zip(names, span, strict=True)) for span in (doc["spans"] if by_words else spans)]
        rows.append({"tokens" if by_words else "text": doc["words"] if by_words else text, "entities": entities})
    value, words = datasets.Value("string"), datasets.List(datasets.Value("string"))
    entity = {"start": datasets.Value("int32"), "end": datasets.Value("int32"), "label": value}
    first = {"tokens": words} if by_words else {"text": value}
    return datasets.Dataset.from_list(rows, features=datasets.Features(first | {"entities": datasets.List(entity)}))


def write_parquet(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(dataset(docs, draw).data.table, folder / "a.parquet")
    return folder / "a.parquet"


def write_arrow(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    import pyarrow as pa

    (folder / "saved").mkdir()
    data = dataset(docs, draw)
    with (
        pa.OSFile(str(folder / "saved" / "data.arrow"), "wb") as file,
        pa.ipc.new_stream(file, data.features.arrow_schema) as stream,
    ):
        stream.write_table(data.data.table)
    state = {"_data_files": [{"filename": "data.arrow"}], "_fingerprint": "f", "_format_columns": None}
    state |= {"_format_kwargs": {}, "_format_type": None, "_output_all_columns": False, "_split": None}
    (folder / "saved" / "state.json").write_text(json.dumps(state))
    (folder / "saved" / "dataset_info.json").write_text(json.dumps({"features": data.features.to_dict()}))
    return folder / "saved"


def as_sentences(docs: list[dict]) -> list[dict]:
    names = ("start", "end", "label")
    return [
        {
            "id": str(number),
            "doc_id": str(number),
            "tokens": doc["words"],
            "entities": [dict(zip(names, span, strict=True)) for span in doc["spans"]],
        }
        for number, doc in enumerate(docs)
    ]


def write_docbin(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    from hf_spanner.data import write_docbin

    write_docbin(as_sentences(docs), folder / "a.spacy")
    return folder / "a.spacy"


def write_cas(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    from hf_spanner.data import write_cas

    write_cas(as_sentences(docs), folder / "cas")
    return folder / "cas"


Writer = Callable[[list[dict], Path, random.Random], Path]
FORMATS: dict[str, Writer] = {
    "jsonl": lambda docs, folder, draw: as_lines(word_records(docs, draw), folder / "a.jsonl"),
    "spert": lambda docs, folder, draw: as_list(word_records(docs, draw), folder / "a.json", draw.choice([None, 1])),
    "jsonl-chars": lambda docs, folder, draw: as_lines(text_records(docs, draw), folder / "a.jsonl"),
    "doccano": lambda docs, folder, draw: as_list(text_records(docs, draw), folder / "a.json", draw.choice([None, 1])),
    "label-studio": lambda docs, folder, draw: as_list(studio_records(docs, draw), folder / "a.json", 1),
    "conll": write_conll,
    "brat": write_brat,
    "csv": write_csv,
    "parquet": write_parquet,
    "arrow": write_arrow,
    "docbin": write_docbin,
    "cas": write_cas,
    **CORPUS_FORMATS,
}
BINARY = {"parquet", "arrow", "docbin"}


# What a file annotates, counted without the readers. A file that makes no sense to these is an error to the readers.


def count(format: str, path: Path) -> int:
    if format == "brat":
        return sum(count_brat(file) for file in path.rglob("*.ann"))
    if format == "cas":
        return sum(len(re.findall(r"<[a-z0-9]+:NamedEntity ", xml_text(file))) for file in path.rglob("*.xmi"))
    if format == "docbin":
        return count_docbin(path)
    if format in BINARY:
        return count_table(format, path)
    if format in ANNOTATIONS:
        return sum(COUNTS[format](file, plain_text(file)) for file in path.rglob(ANNOTATIONS[format]))
    if format in COUNTS:
        return COUNTS[format](path, plain_text(path))
    text = plain_text(path)
    return {"conll": count_conll, "csv": count_csv}.get(format, count_json)(text)


def plain_text(path: Path) -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8-sig")


def xml_text(path: Path) -> str:
    content = path.read_bytes()
    return content.decode("utf-16") if content[:2] in (b"\xff\xfe", b"\xfe\xff") else plain_text(path)


def count_json(text: str) -> int:
    records = (
        json.loads(text)
        if text.lstrip().startswith("[")
        else [json.loads(li) for li in text.split("\n") if li.strip()]
    )
    return sum(count_record(record) for record in records)


def count_record(record: dict) -> int:
    if "annotations" in record and "data" in record:
        valid = [annotation for annotation in record["annotations"] if not annotation.get("was_cancelled")]
        values = [result.get("value") for annotation in valid for result in annotation.get("result") or ()]
        return sum(count_labels(value) for value in values)
    if "data" in record:  # the task is counted as lost
        return 0
    lists = [
        record[key] for key in ("entities", "ner", "spans", "label", "labels") if isinstance(record.get(key), list)
    ]
    return sum(count_labels(item) for items in lists for item in items if isinstance(item, dict | list))


def count_labels(value: object) -> int:
    labels = value.get("labels") if isinstance(value, dict) else None
    return len(labels) if isinstance(labels, list) else 1


def count_conll(text: str) -> int:
    """The words in a layer that are not `O`, once for each layer."""
    rows = [line.rstrip("\r").split("\t") for line in text.split("\n") if line.strip()]
    return sum(cell.strip() != "O" for row in rows for cell in row[1:])


def count_brat(path: Path) -> int:
    return len(re.findall(r"^[^\t\n]*\t\S+ [0-9]+ [0-9]+(?=[\t;\r\n]|\Z)", plain_text(path), re.M))


def count_csv(text: str) -> int:
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if any(map(str.strip, row))]
    if not rows:
        return 0
    names = [name.strip().lower() for name in rows[0]]
    if "word" in names:
        return sum(row[names.index("tag")].strip() != "O" for row in rows[1:])
    return sum(len(json.loads(row[1])) for row in rows[1:])


def count_docbin(path: Path) -> int:
    import zlib

    import srsly

    content = path.read_bytes()
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    groups = srsly.msgpack_loads(zlib.decompressobj().decompress(content))["span_groups"]
    return sum(len(srsly.msgpack_loads(group)["spans"]) for of_doc in groups for group in srsly.msgpack_loads(of_doc))


def count_table(format: str, path: Path) -> int:
    import datasets
    import pyarrow.parquet as pq

    table = pq.read_table(path) if format == "parquet" else datasets.load_from_disk(path).data.table
    return sum(len(entities or ()) for entities in table.column("entities").to_pylist())


# Damage


def flip(content: bytes, draw: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(draw.randint(1, 3) if data else 0):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randint(0, len(content))]


def on_lines(change: Callable[[list[bytes], int, random.Random], None]) -> Callable[[bytes, random.Random], bytes]:
    def damage(content: bytes, draw: random.Random) -> bytes:
        lines = content.split(b"\n")
        change(lines, draw.randrange(len(lines)), draw)
        return b"\n".join(lines)

    return damage


def swap_fields(lines: list[bytes], index: int, draw: random.Random) -> None:
    separator = b"\t" if b"\t" in lines[index] else b","
    fields = lines[index].split(separator)
    draw.shuffle(fields)
    lines[index] = separator.join(fields)


def join_lines(lines: list[bytes], index: int, draw: random.Random) -> None:
    lines[index : index + 2] = [b"".join(lines[index : index + 2])]


def drop_field(lines: list[bytes], index: int, draw: random.Random) -> None:
    separator = b"\t" if b"\t" in lines[index] else b","
    fields = lines[index].split(separator)
    fields.pop(draw.randrange(len(fields)))
    lines[index] = separator.join(fields)


def insert(*pieces: bytes) -> Callable[[bytes, random.Random], bytes]:
    def damage(content: bytes, draw: random.Random) -> bytes:
        at = draw.randint(0, len(content))
        return content[:at] + draw.choice(pieces) + content[at:]

    return damage


def replace_value(content: bytes, draw: random.Random) -> bytes:
    """Another value in place of one number, string or word: of a wrong type, too large, too deep, or nothing."""
    values = [
        b"null", b"NaN", b"-Infinity", b"1e999", b"-1", b"0.5", b"true", b"[]", b"{}", b'""', b'"PER"',
        b"9" * 30, b"9" * 5000, b"[" * 3000, b"[" * 1200 + b"]" * 1200, b"[" * 100_000,
        b'{"a":' * 900 + b"1" + b"}" * 900, b'"\\ud800"', b'"\\u0000"', b"99999999999",
        b"O", b"B_PER", b"U-PER", b"E-X", b"I-", b"-DOCSTART-", "\u0663".encode(),
    ]  # fmt: skip
    places = list(re.finditer(rb'"[^"\n]*"|-?[0-9]+|\b[BI]-\S+', content))
    if not places:
        return content + draw.choice(values)
    place = draw.choice(places)
    return content[: place.start()] + draw.choice(values) + content[place.end() :]


def rename_field(content: bytes, draw: random.Random) -> bytes:
    names = [
        b"tokens",
        b"words",
        b"entities",
        b"ner",
        b"spans",
        b"label",
        b"labels",
        b"type",
        b"start",
        b"end",
        b"text",
    ]
    names += [b"data", b"annotations", b"result", b"value", b"ner_tags", b"id", b"doc_id", b"relations", b"pos"]
    there = [name for name in names if b'"' + name + b'"' in content] or names
    old, new = draw.choice(there), draw.choice(names)
    return content.replace(b'"' + old + b'"', b'"' + new + b'"', draw.choice([1, -1]))


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flip bits": flip,
    "cut": cut,
    "cut the front": lambda content, draw: content[draw.randint(0, len(content)) :],
    "double a line": on_lines(lambda lines, index, draw: lines.insert(index, lines[index])),
    "drop a line": on_lines(lambda lines, index, draw: lines.pop(index) and None),
    "shuffle lines": on_lines(lambda lines, index, draw: draw.shuffle(lines)),
    "join lines": on_lines(join_lines),
    "swap fields": on_lines(swap_fields),
    "drop a field": on_lines(drop_field),
    "replace a value": replace_value,
    "rename a field": rename_field,
    "insert": insert(
        b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b'"', b"[", b"}", b",", b"\xed\xa0\x80",
        b"\xc2\x85", b"\x1a", b"\x1b[31m",
    ),  # fmt: skip
    "latin-1": lambda content, draw: content.decode("utf-8", "replace").encode("latin-1", "replace"),
    "utf-16": lambda content, draw: content.decode("utf-8", "replace").encode("utf-16"),
    "byte order mark": lambda content, draw: b"\xef\xbb\xbf" + content,
    "windows": lambda content, draw: content.replace(b"\n", b"\r\n"),
    "twice": lambda content, draw: content + content,
    "nothing": lambda content, draw: b"",
    "gzip": lambda content, draw: gzip.compress(content, mtime=0),
    "broken gzip": lambda content, draw: flip(gzip.compress(content, mtime=0), draw),
    "cut gzip": lambda content, draw: gzip.compress(content, mtime=0)[:-5],
}  # fmt: skip


def damage(path: Path, draw: random.Random) -> str:
    """Damage one file at this path; returns how."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    file, name = draw.choice(files), draw.choice(list(DAMAGES))
    file.write_bytes(DAMAGES[name](file.read_bytes(), draw))
    return f"{name} ({file.name})"
