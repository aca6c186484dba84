"""What teachers say: averaged, kept, asked once, of long texts too; and students that learn from it."""

import gzip
import json
import logging

import pytest
import torch
from approaches import ROWS
from tests_support import LABELS, SENTENCES, records

import hf_spanner
from hf_spanner import NestedNerTrainer, NestedNerTrainingArguments, cli, predict_sentences
from hf_spanner.data.plain import read_texts
from hf_spanner.modeling.decoding import span_candidates
from hf_spanner.modeling.imitation import Teaching, teacher_grid
from hf_spanner.modeling.modeling_span_ner import SpanNerConfig
from hf_spanner.modeling.reading import Reader
from hf_spanner.training import teachers
from hf_spanner.training.teachers import Answers, Teacher, entities_of, taught

BY_NAME = {row.name: row for row in ROWS}
LONG = {"tokens": (SENTENCES[0][0] + SENTENCES[4][0]) * 8}  # many windows of 64 sub-words
TEXT = [{"tokens": words} for words, _ in SENTENCES] + [LONG]


def make(name, tokenizer, seed=0, bias=0.0, **settings):
    torch.manual_seed(seed)
    model = BY_NAME[name].make(tokenizer, **settings)
    with torch.no_grad():
        if model.output_bias is not None:
            model.output_bias[1:] += bias
    return model


def ask(models, tokenizer, cache, texts=TEXT, max_span=5, floor=0.0, labels=LABELS, mentions=None, **settings):
    them = [Teacher((model, tokenizer), labels, mentions, "cpu") for model in models]
    return Answers(them, texts, max_span, floor, cache=cache, **settings)


def dense(teaching: Teaching, length: int, max_span: int) -> torch.Tensor:
    """(T, K, m)"""
    grid, _ = teacher_grid(
        teaching.cells[None], torch.tensor([teaching.longest]), torch.tensor([length]), length, max_span
    )
    return grid[0]


def probabilities(model, tokenizer, text, max_span):
    """What a model says of a text that is one window."""
    reader = Reader(model, tokenizer)
    ((_, output),) = reader.run([reader.cut(text["tokens"])])
    labels = output.logits.softmax(-1)[0, :, :max_span, 1:]
    length = len(text["tokens"])
    inside = torch.arange(length)[:, None] + torch.arange(1, labels.size(1) + 1) <= length
    return labels * inside.unsqueeze(-1)


# -------------------------------------------------------------------------------------------------- what teachers say


def test_teachers_are_averaged_before_anything_is_left_out(tokenizer, tmp_path):
    """The floor is one that single teachers' probabilities are under and over; the mean alone decides."""
    models = [make("span_ner", tokenizer), make("biaffine_ner", tokenizer, seed=1)]
    text = TEXT[0]
    mean = sum(probabilities(model, tokenizer, text, 5) for model in models) / 2
    floor = mean.sum(-1)[mean.sum(-1) > 0].median().item()
    (answer,) = ask(models, tokenizer, tmp_path, [text], floor=floor)
    expected = mean.masked_fill((mean.sum(-1) < floor).unsqueeze(-1), 0.0)
    assert answer.longest == 5
    assert 0 < len(answer.cells) < (mean.sum(-1) > 0).sum()
    assert torch.allclose(dense(answer, len(text["tokens"]), 5), expected, atol=1e-6)


def test_the_smallest_cap_decides_how_far_teachers_are_believed(tokenizer, tmp_path):
    models = [make("span_ner", tokenizer, max_span_length=3), make("biaffine_ner", tokenizer)]
    assert {answer.longest for answer in ask(models, tokenizer, tmp_path, max_span=5)} == {1, 2, 3}
    assert {answer.longest for answer in ask(models[:1], tokenizer, tmp_path, max_span=2)} == {1, 2}


@pytest.mark.parametrize("name", ["span_ner", "biaffine_ner"])
def test_of_long_texts_a_span_is_taken_from_the_window_that_sees_most(name, tokenizer, tmp_path):
    """The cells, read as scores, give the very entities that the teacher predicts."""
    model = make(name, tokenizer, bias=0.5, overlap="any")
    reader = Reader(model, tokenizer)
    reading = reader.cut(LONG["tokens"])
    assert len(reading.windows) > 2
    shared = min(a.end - b.start for a, b in zip(reading.windows, reading.windows[1:], strict=False))
    (answer,) = ask([model], tokenizer, tmp_path, [LONG], max_span=12)
    assert answer.longest == min(12, shared + 1)
    labels = dense(answer, len(LONG["tokens"]), answer.longest)
    logits = torch.cat([1 - labels.sum(-1, keepdim=True), labels], dim=-1).clamp(min=1e-9).log()
    (found,) = span_candidates(logits[None], labels[None].sum(-1) > 0, LABELS, [None] * 3)
    (expected,) = predict_sentences(model, tokenizer, [LONG])
    near = [entity for entity in expected if entity.end - entity.start <= answer.longest]
    assert len(near) > 10
    assert sorted(entity[:3] for entity in found) == sorted(entity[:3] for entity in near)


def test_labels_go_by_name(tokenizer, tmp_path):
    """Order is of no matter; what the student does not have is none to it; kinds of mention add up to their type."""
    model = make("span_ner", tokenizer)
    (all_three,) = ask([model], tokenizer, tmp_path, TEXT[:1])
    (two,) = ask([model], tokenizer, tmp_path, TEXT[:1], labels=["ORG", "PER"])
    whole, part = dense(all_three, 15, 5), dense(two, 15, 5)
    assert torch.allclose(part, whole[..., [2, 0]])

    kinds = make("span_ner", tokenizer)
    config = kinds.config
    config.id2label = {0: "PER:name", 1: "PER:nominal", 2: "ORG"}
    config.label2id, config.mentions = {v: k for k, v in config.id2label.items()}, ["name", "nominal"]
    (types,) = ask([kinds], tokenizer, tmp_path, TEXT[:1], labels=["PER", "ORG"])
    assert torch.allclose(dense(types, 15, 5)[..., 0], whole[..., :2].sum(-1), atol=1e-6)


def test_a_teacher_that_lacks_a_label_is_refused(tokenizer):
    with pytest.raises(ValueError, match="does not know VEH, only PER, place name, ORG"):
        Teacher((make("span_ner", tokenizer), tokenizer), ["PER", "VEH"], None)


def test_a_teacher_without_a_grid_teaches_the_entities_that_it_finds(tokenizer, tmp_path):
    model = make("seq_ner", tokenizer)
    answers = list(ask([model], tokenizer, tmp_path, TEXT[:5], max_span=12))
    found = predict_sentences(model, tokenizer, TEXT[:5], threshold=0.0, overlap="any")
    for answer, entities, text in zip(answers, found, TEXT[:5], strict=True):
        labels = dense(answer, len(text["tokens"]), 12)
        expected = torch.zeros_like(labels)
        for start, end, label, score, _ in entities:
            if end - start <= 12:
                expected[start, end - start - 1, LABELS.index(label)] = score
        assert torch.allclose(labels, expected)


# ------------------------------------------------------------------------------------------------------- on the disk


@pytest.fixture
def runs(monkeypatch):
    """How many texts teachers were given."""
    given = []
    plain = Teacher.add
    monkeypatch.setattr(
        Teacher, "add", lambda self, readings, *args: given.append(len(readings)) or plain(self, readings, *args)
    )
    return given


def same(a, b):
    return all(torch.equal(x.cells, y.cells) and x.longest == y.longest for x, y in zip(list(a), list(b), strict=True))


def test_teachers_are_asked_once(tokenizer, tmp_path, runs):
    model = make("span_ner", tokenizer)
    first = list(ask([model], tokenizer, tmp_path))
    assert runs == [6]
    assert same(first, ask([model], tokenizer, tmp_path)) and runs == [6]
    list(ask([model], tokenizer, tmp_path, max_span=4))
    list(ask([model], tokenizer, tmp_path, floor=0.2))
    list(ask([model], tokenizer, tmp_path, [*TEXT[1:], TEXT[0]]))
    list(ask([make("span_ner", tokenizer, seed=1)], tokenizer, tmp_path))
    assert runs == [6, 6, 6, 6, 6]  # another grid, floor, text, teacher


def test_who_was_killed_goes_on_behind_the_last_block(tokenizer, tmp_path, runs, monkeypatch):
    monkeypatch.setattr(teachers, "BLOCK_TEXTS", 2)
    model = make("span_ner", tokenizer)
    whole = list(ask([model], tokenizer, tmp_path / "whole"))
    assert runs == [2, 2, 2]
    killed = iter(ask([model], tokenizer, tmp_path / "killed"))
    next(killed)
    killed.close()
    again = ask([model], tokenizer, tmp_path / "killed")
    assert same(whole, again) and runs == [2, 2, 2, 2, 2, 2]
    assert len(list(again.folder.glob("*.safetensors"))) == 3


def test_a_damaged_block_is_asked_for_again(tokenizer, tmp_path, runs, monkeypatch, caplog):
    monkeypatch.setattr(teachers, "BLOCK_TEXTS", 2)
    answers = ask([make("span_ner", tokenizer)], tokenizer, tmp_path)
    whole = list(answers)
    file = answers.folder / "00001.safetensors"
    for spoilt in (file.read_bytes()[:-3], b"", (answers.folder / "00002.safetensors").read_bytes()[:40]):
        file.write_bytes(spoilt)
        with caplog.at_level(logging.WARNING):
            assert same(whole, answers)
    assert caplog.text.count("is damaged: the teachers are asked again") == 3 and runs == [2] * 6


def test_blocks_are_bounded_by_what_is_in_memory(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(teachers, "BLOCK_NUMBERS", 300)
    answers = ask([make("span_ner", tokenizer)], tokenizer, tmp_path)
    blocks = list(answers.blocks())
    assert [index for block in blocks for index in block] == list(range(len(TEXT)))
    for block in blocks:
        numbers = sum(len(TEXT[i]["tokens"]) * min(5, len(TEXT[i]["tokens"])) * 3 for i in block)
        assert len(block) == 1 or numbers <= 300
    assert len(blocks) > 2


# ------------------------------------------------------------------------------------------------------------- lessons


def lessons_for(name, by, tokenizer, cache, unlabelled=TEXT, **settings):
    student = make(name, tokenizer, seed=5)
    models = [(make(other, tokenizer, bias=0.5), tokenizer) for other in by]
    return student, taught(records(), models, student, tokenizer, unlabelled, cache=cache, device="cpu", **settings)


def test_sentences_keep_their_gold_and_texts_have_none(tokenizer, tmp_path):
    _, lessons = lessons_for("span_ner", ["biaffine_ner"], tokenizer, tmp_path)
    gold, texts = lessons.sentences[:5], lessons.sentences[5:]
    assert [s["entities"] for s in gold] == [s["entities"] for s in records()]
    assert all(s["labels"] == LABELS for s in gold)
    assert len(texts) == 6 and all(s["entities"] == [] and s["labels"] == [] for s in texts)
    assert all(isinstance(s["teacher"], Teaching) for s in lessons.sentences)
    assert lessons.record == {
        "teachers": ["teacher"], "by": "probabilities", "texts": 6, "floor": 0.001, "weight": 0.5, "temperature": 1.0
    }  # fmt: skip


def test_where_a_teacher_has_no_grid_its_entities_are_taught(tokenizer, tmp_path):
    _, lessons = lessons_for("span_ner", ["biaffine_ner", "seq_ner"], tokenizer, tmp_path)
    values = {v for s in lessons.sentences for v in s["teacher"].cells[:, 2:].flatten().tolist()}
    assert values <= {0.0, 1.0, -1.0} and lessons.record["by"] == "entities"


@pytest.mark.parametrize("name", ["seq_ner", "locate_and_label", "diffusion_ner", "bl_ner-seq-crf"])
def test_a_student_without_a_grid_learns_the_entities_of_texts(name, tokenizer, tmp_path):
    student, lessons = lessons_for(name, ["biaffine_ner"], tokenizer, tmp_path)
    gold, texts = lessons.sentences[:5], lessons.sentences[5:]
    assert [s["entities"] for s in gold] == [s["entities"] for s in records()]
    assert any(text["entities"] for text in texts) and not any("teacher" in s for s in lessons.sentences)
    data = hf_spanner.NestedNerDataset(lessons.sentences, tokenizer, student.config)
    batch = hf_spanner.NestedNerCollator(tokenizer.pad_token_id)(data.items[:8])
    batch.pop("places")
    assert student.train()(**batch).loss.isfinite()
    with pytest.raises(ValueError, match="text without annotation alone"):
        lessons_for(name, ["biaffine_ner"], tokenizer, tmp_path, unlabelled=())


def test_entities_are_those_that_beat_none():
    config = SpanNerConfig(labels=["A", "B"])
    rows = torch.tensor([[0, 2, 0.4, 0.35], [1, 2, 0.1, 0.8], [4, 1, 0.3, 0.3], [6, 1, 0.2, 0.3]])
    found = entities_of(Teaching(rows, 2), config)
    # [0, 2) crosses [1, 3), which is surer; [4, 5) has 0.3 of A and 0.4 of none.
    assert found == [{"start": 1, "end": 3, "label": "B"}]


@pytest.mark.parametrize(
    ("settings", "told"), [({"floor": 1.0}, "teacher_floor=1.0"), ({"sure": 0.4}, "teacher_sure=0.4")]
)
def test_shares_out_of_range_are_refused(settings, told, tokenizer, tmp_path):
    with pytest.raises(ValueError, match=told):
        lessons_for("span_ner", ["biaffine_ner"], tokenizer, tmp_path, **settings)


# ------------------------------------------------------------------------------------------------------------ training


def arguments(folder, **settings):
    return NestedNerTrainingArguments(
        str(folder), report_to="none", disable_tqdm=True, use_cpu=True, eval_strategy="no", save_strategy="no",
        load_best_model_at_end=False, per_device_train_batch_size=4, logging_steps=1,
        **{"learning_rate": 3e-3, "num_train_epochs": 12, **settings},
    )  # fmt: skip


@pytest.fixture(scope="module")
def expert(tokenizer, tmp_path_factory):
    """A teacher that knows the sentences."""
    torch.manual_seed(0)
    model = BY_NAME["biaffine_ner"].make(tokenizer, loss_reduction="sentence")
    folder = tmp_path_factory.mktemp("expert")
    NestedNerTrainer(
        model=model,
        args=arguments(folder, num_train_epochs=120),
        train_dataset=records(),
        processing_class=tokenizer,
    ).train()
    assert hf_spanner.evaluate(model, tokenizer, records())["f1"] > 0.75  # of two labels on a span it finds one
    return model


@pytest.mark.parametrize("name", ["span_ner", "bl_ner", "seq_ner"])
def test_a_student_of_texts_alone_finds_what_its_teacher_finds(name, tokenizer, tmp_path, expert):
    """The gold is one empty sentence; entities of the others come from the teacher. With gradient accumulation."""
    torch.manual_seed(1)
    student = BY_NAME[name].make(tokenizer, loss_reduction="sentence")
    trainer = NestedNerTrainer(
        model=student,
        args=arguments(
            tmp_path, num_train_epochs=120, gradient_accumulation_steps=2, teacher_cache=str(tmp_path / "cache")
        ),
        train_dataset=records()[3:4],
        processing_class=tokenizer,
        teachers=[(expert, tokenizer)],
        unlabelled=records() * 2,
    )
    trainer.train()
    assert len(trainer.train_dataset.sentences) == 11 and trainer.teaching["texts"] == 10
    found, expected = (predict_sentences(model, tokenizer, records()) for model in (student, expert))
    f1 = hf_spanner.score_entities(found, expected)["f1"]
    assert f1 > (0.5 if name == "seq_ner" else 0.8)  # which finds outermost entities alone
    if name != "seq_ner":
        assert any("loss_teacher" in entry for entry in trainer.state.log_history)


def test_what_cannot_be_taught_is_said(tokenizer, tmp_path):
    student = make("span_ner", tokenizer)
    common = {"model": student, "args": arguments(tmp_path), "processing_class": tokenizer}
    with pytest.raises(ValueError, match="teaches nothing by itself"):
        NestedNerTrainer(**common, train_dataset=records(), unlabelled=TEXT)
    encoded = hf_spanner.NestedNerDataset(records(), tokenizer, student.config).items
    with pytest.raises(ValueError, match="Teachers read sentences"):
        NestedNerTrainer(**common, train_dataset=encoded, teachers=[(student, tokenizer)])


def test_the_command_learns_from_teachers_and_says_so(encoder_folder, tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    for split, times in (("train", 4), ("validation", 1)):
        (data / f"{split}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records() * times))
    text = tmp_path / "text"
    text.mkdir()
    (text / "lines.txt").write_text("The mayor of London .\n\nShe met the head of the bank .\n")
    with gzip.open(text / "more.jsonl.gz", "wt") as file:
        file.write(json.dumps({"text": "It is in New York."}) + "\n")
    common = ["--data", str(data), "--encoder", encoder_folder, "--use_cpu", "True", "--disable_tqdm", "True",
              "--num_train_epochs", "2", "--learning_rate", "3e-3", "--report_to", "none"]  # fmt: skip
    for approach, name in (("biaffine_ner", "big"), ("cnn_ner", "bigger")):
        assert cli.main(["train", *common, "--approach", approach, "--output_dir", str(tmp_path / name)]) == 0
    student = ["train", *common, "--approach", "span_ner", "--output_dir", str(tmp_path / "small")]
    taught_by = ["--teacher", str(tmp_path / "big"), str(tmp_path / "bigger"), "--unlabelled", str(text),
                 "--distil_weight", "0.7", "--teacher_cache", str(tmp_path / "cache")]  # fmt: skip
    capsys.readouterr()
    assert cli.main([*student, *taught_by]) == 0
    out = capsys.readouterr().out
    assert "teach by their probabilities: 20 training sentences and 3 texts without annotation" in out
    record = json.loads((tmp_path / "small" / "training.json").read_text())
    assert record["sentences"]["train"] == 20 and record["labels"]["PER"]["count"] == 16
    assert record["teaching"]["weight"] == 0.7 and record["teaching"]["texts"] == 3
    card = (tmp_path / "small" / "README.md").read_text()
    assert "Distilled from the probabilities of big and bigger, also of 3 texts without annotation" in card
    assert str(tmp_path / "big") not in card


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--unlabelled", "text.txt"], "name trained models with --teacher"),
        (["--teacher", "default", "--unlabelled", "missing"], "There is no text 'missing'"),
        (["--teacher", "runs/missing"], "There is no folder runs/missing"),
        (["--teacher", "default", "--distil_weight", "3"], "distil_weight=3 must lie between 0 and 1"),
        (["--teacher", "default", "--labels", "robot"], "does not know robot"),
    ],
)
def test_a_wrong_lesson_is_one_sentence(given, told, encoder_folder, tmp_path, capsys):
    common = ["train", "--data", "sample", "--encoder", encoder_folder, "--use_cpu", "True"]
    if "robot" in given:
        (tmp_path / "train.jsonl").write_text(
            "".join(
                json.dumps({"tokens": [word], "entities": [{"start": 0, "end": 1, "label": "robot"}]}) + "\n"
                for word in ("one", "two", "three")
            )
        )
        common[2] = str(tmp_path)
    assert cli.main([*common, "--output_dir", str(tmp_path / "x"), *given]) == 2
    assert told in capsys.readouterr().err.strip().splitlines()[-1]


def test_texts_come_from_files_of_any_kind(tmp_path):
    (tmp_path / "b.txt").write_text("IL-2 binds.\n   \nIt does.\n")
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"tokens": ["x"], "entities": [{"start": 0, "end": 1, "label": "A"}], "pos": ["NN"]}) + "\n"
    )
    (tmp_path / "c.conll").write_text("New B-LOC\nYork I-LOC\n\n")
    texts = list(read_texts(tmp_path))
    assert [text["tokens"] for text in texts] == [
        ["x"], ["IL-2", "binds", "."], ["It", "does", "."], ["New", "York"]
    ]  # fmt: skip
    assert not any("entities" in text for text in texts) and texts[0]["pos"] == ["NN"]
    assert list(read_texts(tmp_path / "b.txt", splitter="fine"))[0]["tokens"] == ["IL", "-", "2", "binds", "."]
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(ValueError, match="holds no text"):
        list(read_texts(tmp_path / "empty.txt"))
