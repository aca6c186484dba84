"""Any `AutoModel` encoder will do: each family on a tiny configuration, as a user would build it."""

import pytest
import torch
import transformers
from tests_support import LABELS, encoder_config, make_batch, without_gold
from transformers import AutoModel, BertConfig, BertForTokenClassification

import hf_spanner
from hf_spanner.modeling.configuration_nested_ner import NestedNerConfig
from hf_spanner.modeling.encoders import max_positions
from hf_spanner.modeling.modeling_span_ner import SpanNerConfig, SpanNerForNestedNer

FAMILIES = ["bert", "roberta", "distilbert", "electra", "deberta-v2", "modernbert", "xlm-roberta"]


@pytest.mark.parametrize("family", FAMILIES)
def test_an_encoder_of_this_family_is_loaded_trained_saved_and_loaded(family, tokenizer, tmp_path):
    torch.manual_seed(0)
    source = AutoModel.from_config(encoder_config(family, len(tokenizer)))
    source.save_pretrained(tmp_path / "encoder")
    model = SpanNerForNestedNer.from_encoder(str(tmp_path / "encoder"), labels=LABELS)
    ours, theirs = model.encoder.state_dict(), source.state_dict()
    assert ours and all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert model.config.max_subwords == 128
    assert str(tmp_path) not in model.config.to_json_string()

    batch = make_batch(tokenizer)
    model.train()
    model(**batch).loss.backward()
    assert all(p.grad is not None for p in model.parameters())
    model.eval()
    model.save_pretrained(tmp_path / "model")
    loaded = hf_spanner.AutoModelForNestedNer.from_pretrained(tmp_path / "model").eval()
    with torch.no_grad():
        assert torch.equal(loaded(**without_gold(batch)).logits, model(**without_gold(batch)).logits)


def test_a_text_that_fills_the_position_table_of_roberta_fits(tokenizer, tmp_path):
    encoder = AutoModel.from_config(encoder_config("roberta", len(tokenizer)))
    assert max_positions(encoder) == 128
    encoder(input_ids=torch.full((1, 128), 5))
    with pytest.raises((IndexError, RuntimeError)):
        encoder(input_ids=torch.full((1, 129), 5))


def test_a_half_precision_encoder_becomes_a_single_precision_model(tokenizer, tmp_path):
    AutoModel.from_config(encoder_config("bert", len(tokenizer))).half().save_pretrained(tmp_path)
    model = SpanNerForNestedNer.from_encoder(str(tmp_path), labels=LABELS)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    model.save_pretrained(tmp_path / "m")
    half = SpanNerForNestedNer.from_pretrained(tmp_path / "m", dtype=torch.bfloat16)
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}
    with torch.no_grad():
        assert len(half.decode(half(**without_gold(make_batch(tokenizer))))) == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"overlap": "crossing"}, "Unknown overlap policy 'crossing'"),
        ({"word_pooling": "last"}, "word_pooling='last'"),
        ({"word_splitter": "moses"}, "word_splitter='moses'"),
        ({"max_span_length": 0}, "max_span_length=0"),
        ({"bundle_weight": 2.0}, "bundle_weight=2.0"),
        ({"span_representation": "mean"}, "span_representation='mean'"),
        ({"max_negatives": 0}, "max_negatives=0"),
        ({"labels": []}, "labels is empty"),
        ({"labels": ["A", "A"]}, "'A' is given twice"),
        ({"labels": ["A", ""]}, "Label '' must be"),
    ],
)
def test_a_wrong_setting_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        SpanNerConfig(**{"labels": ["A"], **settings})


def test_labels_given_as_one_string_are_refused():
    with pytest.raises(TypeError, match="not the string 'PER'"):
        SpanNerConfig(labels="PER")


def test_a_model_without_an_encoder_says_how_to_build_one():
    with pytest.raises(ValueError, match="from_encoder"):
        SpanNerForNestedNer(SpanNerConfig(labels=["A"]))


def test_more_subwords_than_positions_are_refused(encoder_folder):
    with pytest.raises(ValueError, match="max_subwords=500 is more than the 128 positions"):
        SpanNerForNestedNer.from_encoder(encoder_folder, labels=["A"], max_subwords=500)


def test_a_batch_without_words_is_refused_with_a_remedy(encoder_folder):
    model = SpanNerForNestedNer.from_encoder(encoder_folder, labels=["A"])
    with pytest.raises(ValueError, match="NestedNerCollator"):
        model(input_ids=torch.tensor([[1, 2]]))


def test_an_unknown_approach_is_named():
    from hf_spanner.auto import approach

    with pytest.raises(ValueError, match="Unknown approach 'crf'"):
        approach("crf")


def test_a_checkpoint_of_another_task_is_refused_by_the_pipeline(tokenizer, tmp_path):
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    BertForTokenClassification(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is a 'bert' checkpoint of another task"):
        hf_spanner.pipeline(str(tmp_path))
    with pytest.raises(ValueError, match="BertForTokenClassification is not a nested NER model"):
        transformers.pipeline("nested-ner", model=str(tmp_path))


def test_a_folder_without_tokenizer_is_refused_with_a_sentence(tokenizer, tmp_path):
    config = SpanNerConfig(encoder_config=encoder_config("bert", len(tokenizer)).to_dict(), labels=LABELS)
    SpanNerForNestedNer(config).save_pretrained(tmp_path)
    with pytest.raises((ValueError, OSError), match="tokenizer"):
        hf_spanner.pipeline(str(tmp_path))


def test_every_configuration_has_the_defaults_of_its_paper():
    from hf_spanner.modeling.modeling_bl_ner import BlNerConfig

    assert (SpanNerConfig().max_negatives, SpanNerConfig().size_embedding_dim, SpanNerConfig().dropout) == (
        100,
        25,
        0.1,
    )
    assert SpanNerConfig().span_representation == "hybrid" and SpanNerConfig().word_pooling == "max"
    assert BlNerConfig().bundle_weight == 0.1 and NestedNerConfig().bundle_weight is None


@pytest.mark.parametrize("other", [transformers.CLIPConfig, transformers.ViTConfig, transformers.Wav2Vec2Config])
def test_what_reads_no_text_is_refused_in_a_sentence(other):
    with pytest.raises(ValueError, match=f"'{other.model_type}' is no encoder of text: name one that is"):
        SpanNerForNestedNer(SpanNerConfig(encoder_config=other().to_dict(), labels=["A"]))
