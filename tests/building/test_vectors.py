"""Word vectors from files of every kind, and what is said about the bad ones."""

import gzip
import json

import numpy as np
import pytest
import torch
from tests_support import LABELS

import hf_spanner
from hf_spanner.building import VectorArguments, build_model
from hf_spanner.building.vectors import WordVectors, read_vectors
from hf_spanner.loading import load_tokenizer
from hf_spanner.modeling.reading import WordEncoder

LINES = ["the 1 2 3", "New 4 5 6", "York -1e-3 0 .5"]
MATRIX = np.array([[1, 2, 3], [4, 5, 6], [-0.001, 0, 0.5]], dtype=np.float32)


def write(path, lines, encoding="utf-8"):
    content = ("\n".join(lines) + "\n").encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize(
    "name, lines",
    [
        ("glove.txt", LINES),
        ("glove.txt.gz", LINES),
        ("word2vec.vec", ["3 3", *LINES]),
        ("trailing.txt", [f"{line} " for line in LINES]),
        ("tabs.txt", [line.replace(" ", "\t") for line in LINES]),
        ("dos.txt", [f"{line}\r" for line in LINES]),
    ],
)
def test_text_files_are_read_with_and_without_header(tmp_path, name, lines):
    vectors = read_vectors(write(tmp_path / name, lines))
    assert vectors.words == ["the", "New", "York"]
    assert np.array_equal(vectors.matrix, MATRIX)
    assert not vectors.skipped


def test_of_duplicate_words_the_first_stays_and_the_others_are_counted(tmp_path, caplog):
    vectors = read_vectors(write(tmp_path / "v.txt", [*LINES, "the 9 9 9", "the 8 8 8"]))
    assert vectors.words == ["the", "New", "York"] and np.array_equal(vectors.matrix, MATRIX)
    assert vectors.skipped.total() == 2
    assert "2 words that came before" in caplog.text


@pytest.mark.parametrize(
    "bad, message",
    [
        ("short 1 2", "v.txt:3: expected a word and 3 numbers, found 2"),
        ("long 1 2 3 4", "v.txt:3: expected a word and 3 numbers, found 4"),
        ("word 1 x 3", "v.txt:3: the last 3 fields must be numbers"),
        ("word nan 1 1", "v.txt:3: the vector of 'word' is not finite"),
        ("", "v.txt:3: expected a word and 3 numbers, found 0"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_or_counted(tmp_path, bad, message):
    file = write(tmp_path / "v.txt", [*LINES[:2], bad, LINES[2]])
    with pytest.raises(ValueError, match=message):
        read_vectors(file)
    vectors = read_vectors(file, skip_bad_lines=True)
    assert vectors.words == ["the", "New", "York"]
    assert vectors.skipped == {"lines that cannot be read": 1}


def test_a_header_of_another_dimension_is_an_error_at_the_first_line(tmp_path):
    with pytest.raises(ValueError, match="v.txt:2: expected a word and 5 numbers, found 3"):
        read_vectors(write(tmp_path / "v.txt", ["3 5", *LINES]))


def test_words_that_a_header_counts_and_a_file_lacks_are_counted(tmp_path):
    vectors = read_vectors(write(tmp_path / "v.txt", ["7 3", *LINES]))
    assert vectors.skipped == {"words that the header counts but the file does not hold": 4}


def test_words_may_hold_spaces_digits_and_any_script(tmp_path):
    lines = ["the 1 2 3", ". . . 1 2 3", "2 1 2 3", "東京 1 2 3", "\u2028x 1 2 3", "\xa0 1 2 3"]
    assert read_vectors(write(tmp_path / "v.txt", lines)).words == ["the", ". . .", "2", "東京", "\u2028x", "\xa0"]


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    file = write(tmp_path / "v.txt", ["caf\xe9 1 2 3"], encoding="latin-1")
    with pytest.raises(ValueError, match="v.txt:1: the line is not UTF-8"):
        read_vectors(file)


def test_empty_missing_and_broken_files_are_explained(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        read_vectors(tmp_path / "nowhere.txt")
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(ValueError, match="holds no word vectors"):
        read_vectors(tmp_path / "empty.txt")
    whole = write(tmp_path / "v.txt.gz", LINES * 1000).read_bytes()
    (tmp_path / "cut.txt.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cut.txt.gz cannot be unpacked"):
        read_vectors(tmp_path / "cut.txt.gz")
    with pytest.raises(ValueError, match="not that of packaged vectors"):
        read_vectors(tmp_path)


def test_limit_reads_the_first_words(tmp_path):
    assert read_vectors(write(tmp_path / "v.txt", ["3 3", *LINES]), limit=2).words == ["the", "New"]


def test_a_matrix_with_a_parquet_of_words_is_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    np.save(tmp_path / "glove_6B_50d_emb.npy", MATRIX)
    pandas.DataFrame({"index": ["the", "new", "york"]}).to_parquet(tmp_path / "glove_6B_index.parquet")
    vectors = read_vectors(tmp_path)
    assert vectors.words == ["the", "new", "york"] and np.array_equal(vectors.matrix, MATRIX)
    assert vectors.lowercase


def test_the_json_of_wink_is_read(tmp_path):
    rows = {word: [*row, 1.0, i] for i, (word, row) in enumerate(zip(["a", "b", "c"], MATRIX.tolist(), strict=True))}
    content = {"size": 3, "dimensions": 3, "words": ["a", "b", "c"], "vectors": rows}
    (tmp_path / "wink.json").write_text(json.dumps(content))
    vectors = read_vectors(tmp_path / "wink.json")
    assert vectors.words == ["a", "b", "c"] and np.array_equal(vectors.matrix, MATRIX)
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ValueError, match="not word vectors of wink"):
        read_vectors(tmp_path / "other.json")


def test_saved_vectors_are_read_back(tmp_path):
    vectors = WordVectors(["the", "New York"], MATRIX[:2], unknown=MATRIX[2])
    for name in ("v.txt", "v.txt.gz"):
        vectors.save(tmp_path / name)
        again = read_vectors(tmp_path / name)
        assert again.words == vectors.words
        assert np.allclose(again.matrix, vectors.matrix) and np.allclose(again.unknown, vectors.unknown)


def test_the_table_and_the_tokenizer_have_the_same_rows(tmp_path):
    vectors = WordVectors(["the", "<unk>", "[PAD]", "York"], np.arange(12, dtype=np.float32).reshape(4, 3))
    assert vectors.words == ["the", "York"]
    table, tokenizer = vectors.table(), vectors.tokenizer()
    assert table.tolist() == [[0, 0, 0], [3, 4, 5], [0, 1, 2], [9, 10, 11]]
    tokenizer.save_pretrained(tmp_path)
    for words in (tokenizer, load_tokenizer(tmp_path)):
        encoder = WordEncoder(words, 16)
        ids = encoder.subwords(["the", "York", "york", "New York", "", "<unk>"])
        assert ids == [[2], [3], [1], [1], [], [1]]


def test_unknown_words_are_the_mean_of_the_rarest_where_a_file_says_nothing():
    assert np.allclose(WordVectors(["a", "b", "c"], MATRIX).unknown, MATRIX.mean(0))


def test_words_are_lower_cased_if_the_vectors_know_no_capitals():
    small = WordVectors(["the", "york"], MATRIX[:2])
    assert WordEncoder(small.tokenizer(), 8).subwords(["THE", "York"]) == [[2], [3]]
    assert WordEncoder(small.tokenizer(lowercase=False), 8).subwords(["THE", "york"]) == [[1], [3]]
    assert small.coverage([{"tokens": ["The", "York", "x", "y"]}]) == 0.5


def test_words_and_matrix_must_agree():
    with pytest.raises(ValueError, match="2 words do not go with a matrix of shape"):
        WordVectors(["a", "b"], MATRIX)


# ------------------------------------------------------------------------------------------- a model on vectors


DATA = {
    "train": [{"tokens": "the mayor of New York".split()}] * 3,
    "test": [{"tokens": "the mayor of London".split()}],
}


def test_a_model_is_built_on_a_file_of_vectors(tmp_path):
    said, file = [], write(tmp_path / "v.txt", LINES)
    arguments = VectorArguments(vectors=str(file))
    model, tokenizer = build_model("sng", LABELS, {"lstm_size": 4}, "", DATA, arguments, say=said.append)
    assert torch.equal(model.encoder.vectors[2:], torch.from_numpy(MATRIX)) and len(tokenizer) == 5
    assert any("test: 25.0% of the words have a vector" in line for line in said)
    with pytest.raises(ValueError, match="vector_dim=50, but .* has 3 dimensions"):
        build_model("sng", LABELS, {"vector_dim": 50}, "", DATA, arguments, say=said.append)


def test_a_model_is_built_on_vectors_trained_on_splits_and_files(tmp_path):
    text = tmp_path / "more.txt"
    text.write_text("the mayor of London\nthe mayor of London\n")
    arguments = VectorArguments(vectors_text=["train", str(text)], glove_epochs=2)
    settings = {"lstm_size": 4, "vector_dim": 6}
    model, _ = build_model("sng", LABELS, settings, "", DATA, arguments, say=lambda _: None, folder=tmp_path / "out")
    assert model.config.vector_dim == 6 and model.config.vocab_size == 2 + 6
    assert "London" in read_vectors(tmp_path / "out" / "vectors.txt.gz").words
    with pytest.raises(FileNotFoundError, match="'dev', which is neither a split"):
        build_model("sng", LABELS, settings, "", DATA, VectorArguments(vectors_text=["dev"]), say=lambda _: None)


def test_other_approaches_are_built_on_their_encoder(encoder_folder):
    model, _ = build_model("span_ner", LABELS, {"max_span_length": 4}, encoder_folder, DATA, VectorArguments())
    assert isinstance(model, hf_spanner.APPROACHES["span_ner"])
