"""Flat taggers of transformers as seq_ner: the same entities as in their own pipeline, or a sentence."""

import unicodedata

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import hf_spanner
from hf_spanner import cli
from hf_spanner.building.flat import import_tagger, own_splitter, read_tags
from hf_spanner.building.toy import train_wordpiece
from hf_spanner.data.tags import decode_tags
from hf_spanner.modeling.words import split_words

TEXTS = [
    "The mayor of New York met the head of the Bank of England in London.",
    "Jane Roe's sister-in-law (of Köln) paid 5€ to U.S. officials!",
    "Rain; 北京 is, 3.5 % anti-Russian 😀 state_of things™.",
    "a  b\n\nc — “d”",
    " ".join(["word"] * 20),
    "",
]
BIO = ["O", "B-PER", "I-PER", "B-place name", "I-place name"]
SCHEMES = {
    "BIO": BIO,
    "another order": [*BIO[:0:-1], "O"],
    "IO": ["I-PER", "O", "I-LOC"],
    "plain": ["PER", "LOC", "O"],
    "B alone": ["O", "B-PER", "I-PER", "B-LOC"],
    "plain beside BIO": ["O", "B-PER", "I-PER", "E-mail", "MISC"],
}
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 140,
    "relative_attention": True,
    "type_vocab_size": 1,
}
DISTIL = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "max_position_embeddings": 140}
ARCHITECTURES = {
    "Bert": "wordpiece",
    "DistilBert": "wordpiece",
    "Electra": "lowercase wordpiece",
    "Roberta": "bytes",
    "XLMRoberta": "unigram",
    "Deberta": "bytes",
    "DebertaV2": "spaces",
}


def make_tokenizer(kind, add_prefix_space=True):
    if "wordpiece" in kind:
        tokenizer = train_wordpiece(TEXTS, 115)
        if "lowercase" in kind:
            tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        return tokenizer
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    initials = sorted({word[0] for text in TEXTS for word in text.split()})
    if kind == "bytes":
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
        backend.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=350,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        # As in any large vocabulary, a space is part of the token behind it.
        backend.train_from_iterator([*TEXTS, *(f" {letter}" for letter in initials * 100)], trainer)
        backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    else:
        letters = sorted(set("".join(TEXTS)) - {" ", "\n"})
        pieces = [*(f"▁{letter}" for letter in initials), *letters, "an", "or", "ing", "▁of", "▁London"]
        backend = Tokenizer(models.Unigram([*((s, 0.0) for s in special), *((p, -float(len(p))) for p in pieces)], 3))
        metaspace = pre_tokenizers.Metaspace()
        splits = [pre_tokenizers.WhitespaceSplit(), metaspace]
        backend.pre_tokenizer = metaspace if kind == "spaces" else pre_tokenizers.Sequence(splits)
        backend.decoder = decoders.Metaspace()
        ends = [(token, backend.token_to_id(token)) for token in ("<s>", "</s>")]
        backend.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def make_tagger(folder, architecture="Bert", tags=BIO, seed=0, tokenizer=None, **settings):
    """A folder with a tagger whose random head is large enough to find something of every kind."""
    tokenizer = tokenizer or make_tokenizer(ARCHITECTURES[architecture])
    tokenizer.model_max_length = 128
    sizes = DISTIL if architecture == "DistilBert" else SMALL
    config = getattr(transformers, f"{architecture}Config")(
        **{**sizes, **settings},
        vocab_size=len(tokenizer),
        id2label=dict(enumerate(tags)),
        label2id={name: number for number, name in enumerate(tags)},
    )
    torch.manual_seed(seed)
    model = getattr(transformers, f"{architecture}ForTokenClassification")(config).eval()
    with torch.no_grad():
        model.classifier.weight.normal_()
        model.classifier.bias.normal_()
        for name, parameter in model.named_parameters():
            if "embeddings" in name and parameter.ndim == 2:
                parameter.mul_(10)  # so that words differ, and their tags
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def own_pipeline(folder, strategy="first"):
    return transformers.pipeline("token-classification", model=folder, aggregation_strategy=strategy)


def rows(entities, text):
    """(start, end, label, score) of each; some tokenizers' offsets begin at the space before a word."""
    result = []
    for e in entities:
        word = text[e["start"] : e["end"]]
        start = e["end"] - len(word.lstrip())
        result.append((start, e["end"], e["entity_group"], pytest.approx(float(e["score"]), abs=1e-4)))
    return result


def both(folder, texts, strategy="first"):
    """What the imported model finds in each text, and what the tagger's own pipeline does."""
    model, tokenizer, _ = import_tagger(folder)
    ner, own = hf_spanner.pipeline(model, tokenizer), own_pipeline(folder, strategy)
    return [rows(ner(text), text) for text in texts], [rows(own(text), text) for text in texts]


@pytest.mark.filterwarnings("ignore:Tokenizer does not support real words")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_entities_and_scores_are_those_of_the_taggers_own_pipeline(architecture, tmp_path):
    folder = make_tagger(tmp_path, architecture)
    # Where tokenizers do not mark sub-words, its pipeline knows one border between words: one space.
    texts = TEXTS if "piece" in ARCHITECTURES[architecture] else [text for text in TEXTS if "\n" not in text]
    found, own = both(folder, texts)
    assert found == own
    assert len({label for entities in found for _, _, label, _ in entities}) == 2  # both are found somewhere


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_that_the_pipeline_groups_has_its_groups(scheme, tmp_path):
    folder = make_tagger(tmp_path, tags=SCHEMES[scheme], seed=2)
    found, own = both(folder, TEXTS)
    if scheme == "plain beside BIO":  # the pipeline cuts E-mail at its hyphen when it names what it found
        found = [[(*row[:2], row[2].split("-")[-1], row[3]) for row in entities] for entities in found]
    assert found == own
    assert sum(map(len, found)) > 2


def first_tags(folder, words):
    """The tag of each word's first sub-word, by the tagger itself."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder)
    inputs = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    best = model(**inputs).logits[0].argmax(-1).tolist()
    ids = inputs.word_ids()
    return [model.config.id2label[best[ids.index(number)]] for number in range(len(words))]


@pytest.mark.parametrize("prefixes, scheme", [("BIES", "BIOES"), ("BILU", "BILOU"), ("BMES", "BMES")])
@pytest.mark.parametrize("seed", range(3))
def test_tags_that_say_where_entities_end_are_read_as_what_they_say(prefixes, scheme, seed, tmp_path):
    """The pipeline of transformers cannot: to it E-PER and S-PER go on with nothing."""
    names = ["O", *(f"{prefix}-{label}" for label in ("PER", "LOC") for prefix in prefixes)]
    folder = make_tagger(tmp_path, tags=names, seed=seed)
    model, tokenizer, tags = import_tagger(folder)
    assert tags.scheme == scheme and model.config.tag_scheme == "BIOES"
    words = [word for text in TEXTS[:2] for word in text.split()]
    found = hf_spanner.pipeline(model, tokenizer)(words, is_split_into_words=True)
    own = [tag.replace("M-", "I-") for tag in first_tags(folder, words)]
    expected = decode_tags(own, "BILOU" if scheme == "BILOU" else "BIOES")[0]
    assert [(e["start_word"], e["end_word"], e["entity_group"]) for e in found] == expected
    assert len(expected) > 3


@pytest.mark.filterwarnings("ignore:Tokenizer does not support real words")
def test_a_byte_level_tagger_without_prefix_space_reads_the_first_word_alone_otherwise(tmp_path):
    """Ours reads every word as behind a space. Texts that begin with one have no such word."""
    folder = make_tagger(tmp_path, "Roberta", tokenizer=make_tokenizer("bytes", add_prefix_space=False))
    found, own = both(folder, [" " + text for text in TEXTS[:2]])
    assert found == own
    found, own = both(folder, TEXTS[:2])
    assert found != own
    assert [[e for e in entities if e[0] > 10] for entities in found]


def test_simple_aggregation_tears_words_where_ours_does_not(tmp_path):
    folder = make_tagger(tmp_path)
    found, simple = both(folder, TEXTS, "simple")
    words = [{border for span in split_words(text, "bert") for border in span} for text in TEXTS]
    assert all(set(e[:2]) <= borders for borders, entities in zip(words, found, strict=True) for e in entities)
    torn = [e for borders, entities in zip(words, simple, strict=True) for e in entities if not set(e[:2]) <= borders]
    assert torn


# Characters that Unicode has long had: of the newest every library knows as many as its edition has.
OLD = st.characters(exclude_categories=["Cs", "Cc", "Cf", "Mn", "Co", "Cn"]).filter(
    lambda character: unicodedata.ucd_3_2_0.category(character) != "Cn"
)


@settings(max_examples=300)
@given(st.text(OLD, max_size=20))
def test_the_words_of_the_bert_splitter_are_those_of_berts_tokenizer(text):
    text = unicodedata.normalize("NFC", text)
    spaced = normalizers.BertNormalizer(lowercase=False, strip_accents=False).normalize_str(text)
    words = [word for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(spaced)]
    assert [text[start:end] for start, end in split_words(text, "bert")] == words


def test_the_words_are_chosen_by_the_tokenizer_unless_they_are_named(tmp_path):
    assert own_splitter(make_tokenizer("wordpiece")) == "bert"
    assert own_splitter(make_tokenizer("bytes")) == own_splitter(make_tokenizer("unigram")) == "whitespace"
    model, _, _ = import_tagger(make_tagger(tmp_path), word_splitter="compound")
    assert model.config.word_splitter == "compound"


def test_dropout_comes_along_and_pooling_is_by_the_first_subword(tmp_path):
    model, _, _ = import_tagger(make_tagger(tmp_path, classifier_dropout=0.25))
    assert model.config.dropout == 0.25 == model.tagger.dropout.p
    assert model.config.word_pooling == "first"


@pytest.mark.parametrize(
    "tags, expected",
    [
        (["LABEL_0", "LABEL_1"], "no O"),
        (["O"], "finds nothing"),
        (["O", "B_PER", "I_PER"], "'B_PER' is not written as 'B-PER'"),
        (["O", "PER-B", "PER-I"], "'PER-B' is not written as 'B-PER'"),
        (["O", "B-PER", "E-PER", "L-PER"], "means the same"),
        (["O", "B-PER", "B-PER"], "Two of its tags"),
    ],
)
def test_tags_that_seq_ner_cannot_say_are_refused_with_a_sentence(tags, expected):
    with pytest.raises(ValueError, match=expected) as refusal:
        read_tags(dict(enumerate(tags)))
    assert str(refusal.value).endswith(".")


def test_what_is_no_such_tagger_is_refused_with_a_sentence(tmp_path):
    tokenizer = make_tokenizer("wordpiece")
    encoder = transformers.BertModel(transformers.BertConfig(**SMALL, vocab_size=len(tokenizer)))
    encoder.save_pretrained(tmp_path / "encoder")
    with pytest.raises(ValueError, match="no trained tagger: its weights lack 'classifier.bias'"):
        import_tagger(str(tmp_path / "encoder"))
    with pytest.raises(ValueError, match="already"):
        import_tagger(str(hf_spanner.default.folder_of("default")))
    config = transformers.ModernBertConfig(
        **{name: SMALL[name] for name in list(SMALL)[:5]},
        vocab_size=len(tokenizer),
        id2label=dict(enumerate(BIO)),
        pad_token_id=0,
    )
    transformers.ModernBertForTokenClassification(config).save_pretrained(tmp_path / "modern")
    tokenizer.save_pretrained(tmp_path / "modern")
    with pytest.raises(ValueError, match="its head is ModernBertPredictionHead, Linear"):
        import_tagger(str(tmp_path / "modern"))
    with pytest.raises(FileNotFoundError):
        import_tagger(str(tmp_path / "nowhere"))


def test_the_command_writes_a_model_that_every_other_command_reads(tmp_path, capsys):
    folder = make_tagger(tmp_path / "flat")
    assert cli.main(["import", folder, str(tmp_path / "ours")]) == 0
    assert "BIO tags of 2 labels: PER, place name" in capsys.readouterr().out
    assert cli.main(["predict", "--model", str(tmp_path / "ours"), "--format", "jsonl", TEXTS[0]]) == 0
    assert '"entity_group"' in capsys.readouterr().out
    assert cli.main(["import", folder, str(tmp_path / "ours")]) == 2
    assert "not an empty folder" in capsys.readouterr().err
