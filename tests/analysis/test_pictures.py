"""What a model thinks of the gold entities, as numbers for every approach and as pictures that name what they show."""

import sys

import numpy as np
import pytest
import torch
from approaches import ROWS
from tests_support import LABELS, SENTENCES, make_batch, records, without_gold

from hf_spanner import cli
from hf_spanner.analysis.figures import require_matplotlib
from hf_spanner.analysis.pictures import (
    PICTURES,
    discrepancy,
    draw_pictures,
    principal_components,
)
from hf_spanner.analysis.probabilities import NONE, GoldProbabilities, gold_probabilities
from hf_spanner.cli import pictures
from hf_spanner.data import write_jsonl
from hf_spanner.modeling.modeling_sng import SngForNestedNer

GOLD = sum(len(entities) for _, entities in SENTENCES)


def thoughts_of(rows, gold, classes=("A", "B", NONE), **kwargs) -> GoldProbabilities:
    return GoldProbabilities(list(classes), np.array(rows, dtype=np.float32), np.array(gold), **kwargs)


THOUGHTS = thoughts_of([[0.9, 0.1, 0], [0.2, 0.8, 0], [0.3, 0.1, 0.6], [0.7, 0.2, 0.1]], [0, 1, 0, 1])


# -------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_approach_has_probabilities_for_the_gold_spans(row, tokenizer):
    torch.manual_seed(0)
    model = row.make(tokenizer)
    thoughts = gold_probabilities(model, tokenizer, records(), batch_size=2)
    assert thoughts.classes == [*LABELS, NONE]
    assert len(thoughts) + thoughts.out_of_reach == GOLD
    assert thoughts.probabilities.shape == (len(thoughts), len(LABELS) + 1)
    assert np.allclose(thoughts.probabilities.sum(1), 1, atol=1e-5)
    if not thoughts.out_of_reach:
        assert np.bincount(thoughts.gold).tolist() == [4, 7, 3]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_sentences_of_joined_corpora_have_probabilities_too(row, tokenizer):
    torch.manual_seed(0)
    model = row.make(tokenizer)
    plain = gold_probabilities(model, tokenizer, records())
    joined = gold_probabilities(model, tokenizer, [{**sentence, "labels": LABELS} for sentence in records()])
    assert np.array_equal(joined.probabilities, plain.probabilities) and np.array_equal(joined.gold, plain.gold)


def test_probabilities_of_the_grid_are_those_that_decode_reports(tokenizer):
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer)
    sentence = {"tokens": ["New", "York"], "entities": [{"start": 0, "end": 2, "label": "PER"}]}
    thoughts = gold_probabilities(model, tokenizer, [sentence])
    output = model(**without_gold(make_batch(tokenizer, [(["New", "York"], [])])))
    expected = output.logits[0, 0, 1].softmax(-1)  # none first
    assert np.allclose(thoughts.probabilities[0], expected.roll(-1).detach().numpy(), atol=1e-6)


def test_an_entity_of_a_long_text_counts_once(tokenizer):
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer, max_subwords=16, max_span_length=4)
    words = "the mayor of New York met the head of the Bank of England in London".split()
    entities = [{"start": i, "end": i + 1, "label": "PER"} for i in range(len(words))]
    thoughts = gold_probabilities(model, tokenizer, [{"tokens": words, "entities": entities}])
    assert len(thoughts) == len(words) and thoughts.out_of_reach == 0


def test_entities_beyond_the_span_cap_are_left_out_and_counted(tokenizer):
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer, max_span_length=4)
    thoughts = gold_probabilities(model, tokenizer, records())
    longer = sum(end - start > 4 for _, entities in SENTENCES for start, end, _ in entities)
    assert thoughts.out_of_reach == longer > 0


def test_typing_of_given_spans_has_no_none(tokenizer):
    table = torch.randn(len(tokenizer), 8)
    model = SngForNestedNer.from_vectors(table, LABELS, spans="gold", lstm_size=4, word_pooling="mean")
    thoughts = gold_probabilities(model, tokenizer, records())
    assert thoughts.classes == LABELS and len(thoughts) == GOLD and not thoughts.missed.any()


def test_data_without_entities_cannot_be_analysed(tokenizer):
    model = ROWS[2].make(tokenizer)
    with pytest.raises(ValueError, match="no gold entity"):
        gold_probabilities(model, tokenizer, [{"tokens": ["it", "is"], "entities": []}])


def test_right_wrong_and_missed():
    assert THOUGHTS.right.tolist() == [True, True, False, False]
    assert THOUGHTS.missed.tolist() == [False, False, True, False]
    assert np.allclose(THOUGHTS.of_gold, [0.9, 0.8, 0.3, 0.2])


def test_discrepancy_is_zero_where_the_model_is_right():
    ratio, d_value = discrepancy(THOUGHTS)
    assert np.allclose(ratio, [0, 0, 1, np.log2(3.5)])
    assert d_value[3] == pytest.approx(np.var([0.7, 0.2, 0.1]) / 0.2)
    ratio, d_value = discrepancy(thoughts_of([[1.0, 0.0, 0.0]], [1]))  # a gold label with probability 0
    assert np.isfinite(ratio).all() and np.isfinite(d_value).all()


def test_principal_components_keep_distances_of_three_classes():
    """Three classes lie on a plane: two components hold everything, and corners are where certainty is."""
    points, corners, shares = principal_components(THOUGHTS)
    assert shares.sum() == pytest.approx(1)
    p = THOUGHTS.probabilities
    assert np.linalg.norm(points[0] - points[3]) == pytest.approx(np.linalg.norm(p[0] - p[3]), abs=1e-6)
    assert np.linalg.norm(corners[0] - corners[1]) == pytest.approx(2**0.5)
    assert principal_components(thoughts_of([[1.0], [1.0]], [0, 0], classes=["A"]))[0].shape == (2, 2)


# -------------------------------------------------------------------------------------------------------- pictures


def text_of(file) -> str:
    """What an SVG says: text is drawn as paths, with a comment that holds it."""
    return file.read_text(encoding="utf-8")


def test_pictures_are_written_with_counts_and_names(tmp_path):
    pytest.importorskip("matplotlib")
    files = draw_pictures(THOUGHTS, tmp_path / "new", title="a model on data")
    names = {file.name for file in files}
    assert names == {f"{kind}.{format}" for kind in ("pca", "violin", "volcano") for format in ("png", "svg")}
    assert all(file.stat().st_size > 5_000 for file in files)
    pca, violin, volcano = (text_of(tmp_path / "new" / f"{kind}.svg") for kind in ("pca", "violin", "volcano"))
    assert all("a model on data" in picture for picture in (pca, violin, volcano))
    assert "A: 2 gold, 50% right" in pca and "wrong: 2" in pca and "of the variance" in pca
    assert "1 right" in violin and "probability of the gold label" in violin
    assert "missed: the favourite is none: 1" in volcano and "D-value" in volcano


@pytest.mark.parametrize(
    "thoughts",
    [
        thoughts_of([[1.0, 0.0, 0.0]], [0]),  # one entity, right
        thoughts_of([[0.0, 1.0, 0.0]] * 3, [0] * 3, out_of_reach=7),  # all wrong and alike, a label without entities
        thoughts_of([[1.0], [1.0]], [0, 0], classes=["A"]),  # one class
        thoughts_of(np.eye(30), range(30), classes=[f"label {i}" for i in range(30)]),  # many labels
    ],
)
def test_odd_data_can_be_drawn(tmp_path, thoughts):
    pytest.importorskip("matplotlib")
    files = draw_pictures(thoughts, tmp_path, formats=["svg"])
    assert len(files) == 3


def test_what_is_left_out_is_said_below_the_picture():
    pytest.importorskip("matplotlib")
    for draw in PICTURES.values():
        below = draw(thoughts_of([[0.0, 1.0, 0.0]], [0], out_of_reach=7)).get_supxlabel()
        assert "7 gold entities that the model cannot look at are left out" in " ".join(below.split())


def test_an_unknown_picture_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no picture 'pie'"):
        draw_pictures(THOUGHTS, tmp_path, kinds=["pie"])


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'hf_spanner\[plots\]'"):
        require_matplotlib()
    assert cli.main(["pictures", "--data", "data", "--model", "m", "--output", str(tmp_path)]) == 2
    assert "hf_spanner[plots]" in capsys.readouterr().err


def test_the_command_draws_a_saved_model(tmp_path, tokenizer, capsys):
    pytest.importorskip("matplotlib")
    next(row for row in ROWS if row.name == "span_ner").make(tokenizer, max_span_length=6).save_pretrained(
        tmp_path / "model"
    )
    tokenizer.save_pretrained(tmp_path / "model")
    sentences = records()
    sentences[3]["entities"] = [{"start": 0, "end": 1, "label": "other"}]
    write_jsonl(sentences, tmp_path / "test.jsonl")
    code = pictures.main(
        [str(tmp_path / "test.jsonl"), "--model", str(tmp_path / "model"), "--output", str(tmp_path / "out"),
         "--pictures", "violin", "--formats", "svg"]
    )  # fmt: skip
    said = capsys.readouterr().out
    assert code == 0 and (tmp_path / "out" / "violin.svg").exists() and not (tmp_path / "out" / "pca.svg").exists()
    assert "1 entities have labels that the model does not know" in said
    assert "out of the model's reach" in said
