import logging

import pytest
import torch
from approaches import ROWS
from conftest import TOKENIZERS
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_spanner.modeling.decoding import Entity
from hf_spanner.modeling.reading import PADDING, Reader, merge_windows, pad_batch, together
from hf_spanner.modeling.subwords import Window, WordEncoder, make_windows


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(5, 30), st.integers(0, 12))
def test_windows_cover_the_text_in_order_and_fit(lengths, capacity, overlap):
    windows = make_windows(lengths, capacity, overlap)
    assert windows[0].start == 0 and windows[-1].end == len(lengths)
    assert all(sum(lengths[w.start : w.end]) <= capacity for w in windows)
    assert all(a.start < b.start <= a.end < b.end for a, b in zip(windows, windows[1:], strict=False))


@given(st.integers(1, 80), st.integers(6, 20), st.integers(1, 6))
def test_every_short_span_lies_whole_in_some_window(num_words, capacity, longest):
    windows = make_windows([1] * num_words, capacity, longest - 1)
    for start in range(num_words):
        for end in range(start + 1, min(start + longest, num_words) + 1):
            assert any(w.start <= start and end <= w.end for w in windows)


@given(st.integers(1, 80), st.integers(6, 20), st.integers(1, 6), st.data())
def test_an_entity_that_every_window_sees_comes_back_once(num_words, capacity, longest, data):
    windows = make_windows([1] * num_words, capacity, longest - 1)
    start = data.draw(st.integers(0, num_words - 1))
    end = data.draw(st.integers(start + 1, min(start + longest, num_words)))
    found = [
        [Entity(start - w.start, end - w.start, "A", 0.9)] if w.start <= start and end <= w.end else []
        for w in windows
    ]
    assert merge_windows(windows, found, "nested") == [Entity(start, end, "A", 0.9)]


def test_where_windows_disagree_the_one_with_more_context_is_believed():
    windows = [Window(0, 10), Window(6, 16)]
    cut_off = [Entity(7, 10, "A", 0.99)]  # ends where the first window ends
    whole = [Entity(1, 6, "B", 0.8)]  # words 7..12 in the second
    assert merge_windows(windows, [cut_off, whole], "flat") == [Entity(7, 12, "B", 0.8)]


def test_special_tokens_surround_every_family(any_tokenizer):
    encoder = WordEncoder(any_tokenizer, 32)
    encoded = encoder.encode(["New", "York"])
    ids = any_tokenizer.convert_tokens_to_ids
    assert encoded["input_ids"][0] == ids("[CLS]") and encoded["input_ids"][-1] == ids("[SEP]")
    assert encoded["word_ids"][0] == encoded["word_ids"][-1] == -1
    assert set(encoded["word_ids"][1:-1]) == {0, 1} and encoded["num_words"] == 2


@settings(deadline=None, max_examples=40)
@given(words=st.lists(st.text(min_size=1, max_size=8), max_size=12))
def test_any_words_can_be_encoded(any_tokenizer, words):
    encoder = WordEncoder(any_tokenizer, 64)
    total = 0
    for window in encoder.windows(words, 3):
        encoded = encoder.encode(words, window)
        assert len(encoded["input_ids"]) == len(encoded["word_ids"]) == len(encoded["attention_mask"]) <= 64
        inner = [i for i in encoded["word_ids"] if i >= 0]
        assert inner == sorted(inner) and all(i < encoded["num_words"] for i in inner)
        total = window.end
    assert total == len(words)


def test_a_word_longer_than_a_window_is_read_from_its_start_and_said(caplog):
    encoder = WordEncoder(TOKENIZERS["byte_bpe"](), 12)
    with caplog.at_level(logging.WARNING):
        (ids,) = encoder.subwords(["q" * 50])
    assert len(ids) == 10 and "more than a whole window" in caplog.text


def test_words_that_are_no_strings_are_named(tokenizer):
    with pytest.raises(TypeError, match="A word must be a string, not 3"):
        WordEncoder(tokenizer, 12).subwords(["a", 3])


def test_context_is_read_nearest_first_and_never_predicted_on(tokenizer):
    encoder = WordEncoder(tokenizer, 8)  # room for six
    encoded = encoder.encode(["London"], before="it is not".split(), after="in the head of".split())
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    where = encoded["word_ids"].index(0)
    assert [i for i in encoded["word_ids"] if i >= 0] == [0] * encoded["word_ids"].count(0)
    assert encoded["num_words"] == 1 and len(tokens) == 8
    assert tokens[where - 1] != "[CLS]" and tokens[where + encoded["word_ids"].count(0)] != "[SEP]"


@pytest.mark.parametrize(
    "before, after, expected",
    [
        ("the mayor of New York", "met the head of the", "New York | met the head"),  # the odd place is behind
        ("York", "met the head of the Bank", "York | met the head of"),  # what one side leaves, the other takes
        ("the mayor of New York", "met", "mayor of New York | met"),
        ("the mayor of New York met", "", "mayor of New York met |"),
        ("", "met the head of the Bank", "| met the head of the"),
        ("New York", "met", "New York | met"),
        ("", "", "|"),
    ],
)
def test_context_worked_by_hand(before, after, expected):
    """One sub-word a word, room for six, of which London has one: five for the words nearest to it."""
    tokenizer = TOKENIZERS["wordlevel"]()
    encoded = WordEncoder(tokenizer, 8).encode(["London"], before=before.split(), after=after.split())
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    assert tokens == ["[CLS]", *expected.replace("|", "London").split(), "[SEP]"]
    assert encoded["word_ids"] == [0 if token == "London" else -1 for token in tokens]


@pytest.mark.parametrize(
    "before, after, expected",
    [
        ("the mayor of New York", "met the head of the", "York [SEP] | [SEP] met the"),  # the odd place is behind
        ("the mayor of New York met", "", "of New York met [SEP] |"),
        ("", "met the head of the Bank", "| [SEP] met the head of"),
        ("York", "met", "York [SEP] | [SEP] met"),
        ("", "", "|"),
    ],
)
def test_a_separator_stands_between_a_sentence_and_its_context(before, after, expected):
    """As above: room for six, of which London has one."""
    tokenizer = TOKENIZERS["wordlevel"]()
    encoder = WordEncoder(tokenizer, 8, separate_context=True)
    encoded = encoder.encode(["London"], before=before.split(), after=after.split())
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    assert tokens == ["[CLS]", *expected.replace("|", "London").split(), "[SEP]"]
    assert encoded["word_ids"] == [0 if token == "London" else -1 for token in tokens]


def test_a_separator_alone_is_no_context():
    encoder = WordEncoder(TOKENIZERS["wordlevel"](), 5, separate_context=True)  # room for three
    encoded = encoder.encode(["New", "York"], before=["the"], after=["met"])
    assert encoded["word_ids"] == [-1, 0, 1, -1]


def test_a_tokenizer_without_a_separator_cannot_separate():
    tokenizer = TOKENIZERS["wordlevel"]()
    tokenizer.sep_token = None
    with pytest.raises(ValueError, match="needs a tokenizer with a separator"):
        WordEncoder(tokenizer, 8, separate_context=True)


def test_of_a_word_so_many_subwords_are_read_and_that_is_said(caplog):
    tokenizer = TOKENIZERS["byte_bpe"]()
    whole = WordEncoder(tokenizer, 64).subwords(["q" * 9, "London"])
    encoder = WordEncoder(tokenizer, 64, max_word_subwords=5)
    with caplog.at_level(logging.WARNING):
        cut = encoder.subwords(["q" * 9, "London", "q" * 8])
    assert [cut[0], cut[1]] == [whole[0][:5], whole[1][:5]] and len(whole[0]) == 10
    assert encoder.cut >= {"q" * 9, "q" * 8}
    assert caplog.text.count("only the first 5 sub-words are read (max_word_subwords)") == 1  # once, not for each


def test_the_configuration_says_how_words_and_context_are_read(tokenizer):
    model = next(row for row in ROWS if row.name == "span_ner").make(
        tokenizer, max_word_subwords=1, context_separator=True, context_sentences=1
    )
    sentences = [{"doc_id": "d", "tokens": [word], "entities": []} for word in ("Größenwahn", "London")]
    item = Reader(model, tokenizer).cut_sentences(sentences)[0].items[0]
    assert item["word_ids"] == [-1, 0, -1, -1, -1]  # [CLS] Grö [SEP] Lon [SEP]
    assert tokenizer.convert_ids_to_tokens(item["input_ids"])[2] == "[SEP]"


def test_batches_are_padded_on_the_right(tokenizer):
    encoder = WordEncoder(tokenizer, 32)
    batch = pad_batch(
        [encoder.encode(["London"]), encoder.encode("the mayor of London".split())], tokenizer.pad_token_id
    )
    assert batch["word_ids"][0].tolist()[-1] == -1 and batch["attention_mask"][0].tolist()[-1] == 0
    assert batch["num_words"].tolist() == [1, 4] and "entities" not in batch


def test_the_word_memory_is_bounded(tokenizer, monkeypatch):
    monkeypatch.setattr(WordEncoder, "cache_size", 3)
    encoder = WordEncoder(tokenizer, 32)
    for words in (["a", "b"], ["c", "d"], ["a", "e", "f", "g"]):
        assert len(encoder.subwords(words)) == len(words)
    assert len(encoder._known) <= 4


class Greedy:
    """Makes a model run out of memory on more than so many windows at once."""

    def __init__(self, model, most: int, error: Exception):
        self.most, self.error, self.sizes = most, error, []
        model.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, module, args, kwargs):
        self.sizes.append(len(kwargs["input_ids"]))
        if self.sizes[-1] > self.most:
            raise self.error


def test_short_windows_are_not_padded_to_long_ones(tokenizer):
    reader = Reader(next(row for row in ROWS if row.name == "span_ner").make(tokenizer), tokenizer)
    readings = [reader.cut(["New"] * number) for number in (1, 40, 2, 35, 1, 18)]
    batches = [[place.text for place in places] for places, _ in reader.run(readings, batch_size=4)]
    assert batches == [[1, 3, 5], [2, 0, 4]]
    assert [len(places) for places, _ in reader.run(readings, batch_size=2)] == [2, 2, 2]


@given(st.lists(st.integers(1, 300), min_size=1, max_size=70))
def test_a_batch_is_as_large_as_its_padding_allows(sizes):
    sizes.sort(reverse=True)
    number = together(sizes, on_cpu=True)

    def padding(n):
        return n * sizes[0] - sum(sizes[:n])

    assert padding(number) <= PADDING and (number == len(sizes) or padding(number + 1) > PADDING)
    on_gpu = together(sizes, on_cpu=False)
    assert 2 * sizes[on_gpu - 1] >= sizes[0] and all(2 * size < sizes[0] for size in sizes[on_gpu:])


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."),
        RuntimeError("MPS backend out of memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory"),
    ],
    ids=str,
)
def test_a_batch_that_does_not_fit_into_memory_is_read_in_halves_and_that_is_said_once(error, tokenizer, caplog):
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer)
    words = "the mayor of New York met the head of the Bank".split()
    texts = [{"tokens": words[i % 9 :] + words[: i % 9]} for i in range(40)]
    reader = Reader(model, tokenizer)

    def found(**how):  # scores but for the last digits, which hang on what else is in a batch
        entities = reader.read(reader.cut_sentences(texts), **how)
        return [{e[:3]: pytest.approx(e.score, abs=1e-5) for e in sorted(row)} for row in entities]

    before = [{span: score.expected for span, score in row.items()} for row in found()]
    greedy = Greedy(model, 5, error)
    assert found(batch_size=32, look_ahead=20) == before
    assert greedy.sizes[:4] == [20, 10, 5, 5] and set(greedy.sizes[4:]) == {5}, "what fits is remembered"
    assert [record.message for record in caplog.records] == [
        "20 windows at once do not fit into memory: 5 are read at once."
    ]


def test_a_window_that_does_not_fit_alone_and_other_errors_are_what_they_are(tokenizer):
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer)
    reader = Reader(model, tokenizer)
    greedy = Greedy(model, 0, torch.OutOfMemoryError("CUDA out of memory."))
    with pytest.raises(torch.OutOfMemoryError):
        list(reader.read([reader.cut(["London"])] * 4))
    assert greedy.sizes == [4, 2, 1]
    with pytest.raises(ValueError, match="batch_size=0 must be at least 1"):
        list(reader.read([reader.cut(["London"])], batch_size=0))
    greedy.error = RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError, match="mat1"):
        list(Reader(model, tokenizer).read([reader.cut(["London"])] * 4))
    assert greedy.sizes == [4, 2, 1, 4]
