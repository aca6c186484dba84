"""What users of transformers expect of any of its models, asked of every approach."""

import copy
import pickle

import pytest
import torch
from approaches import ROWS, Row
from tests_support import make_batch, without_gold
from transformers import AutoModelForTokenClassification

from hf_spanner import AutoModelForNestedNer
from hf_spanner.modeling.decoding import tensor_to_entities
from hf_spanner.modeling.modeling_span_ner import SpanNerForNestedNer


@pytest.fixture(scope="module", params=ROWS, ids=lambda row: row.name)
def row(request) -> Row:
    return request.param


@pytest.fixture
def model(row, tokenizer):
    torch.manual_seed(0)
    return row.make(tokenizer)


@pytest.fixture(scope="module")
def folder(row, tokenizer, tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("saved")
    row.make(tokenizer).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def batch(tokenizer):
    return make_batch(tokenizer)


def logits_of(model, batch):
    with torch.no_grad():
        return model(**without_gold(batch)).logits


def test_a_resized_vocabulary_is_saved_and_loaded(model, batch, tokenizer, tmp_path):
    before, size = logits_of(model, batch), len(tokenizer)
    table = model.resize_token_embeddings(size + 5)
    assert table.num_embeddings == model.get_input_embeddings().num_embeddings == size + 5
    assert model.config.get_text_config().vocab_size == size + 5
    assert torch.equal(logits_of(model, batch), before), "the new rows change nothing for the old ones"
    model.save_pretrained(tmp_path)
    loaded = AutoModelForNestedNer.from_pretrained(tmp_path)
    assert torch.equal(loaded.get_input_embeddings().weight, model.get_input_embeddings().weight)
    assert torch.equal(logits_of(loaded, batch), before)


def test_input_embeddings_are_there_and_can_be_set(model, batch):
    before, old = logits_of(model, batch), model.get_input_embeddings()
    assert isinstance(old, torch.nn.Embedding)
    new = torch.nn.Embedding.from_pretrained(torch.randn_like(old.weight), freeze=False)
    model.set_input_embeddings(new)
    assert model.get_input_embeddings() is new
    assert not torch.equal(logits_of(model, batch), before), "they are what is read"


def test_embeddings_may_be_given_in_place_of_ids(row, model, batch):
    given = without_gold(batch)
    embedded = {**given, "inputs_embeds": model.get_input_embeddings()(given["input_ids"])}
    with pytest.raises(ValueError, match="`inputs_embeds` .* in their place: give one"):
        model(**embedded)
    del embedded["input_ids"]
    logits = logits_of(model, embedded)
    if row.approach == "diffusion_ner":  # draws a sentence's noise by what it is given of it, and of it alone
        torch.testing.assert_close(logits_of(model, {key: x[1:] for key, x in embedded.items()}), logits[1:])
    else:
        assert torch.equal(logits, logits_of(model, batch))


@torch.no_grad()
def test_a_loss_in_evaluation_is_the_same_every_time(model, batch):
    assert model(**batch).loss == model(**batch).loss


def same(one, other) -> bool:
    """Whether two outputs, or parts of them, are equal."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@torch.no_grad()
def test_a_tuple_says_the_same_as_the_output(model, batch):
    torch.manual_seed(1)
    output = model(**batch)
    torch.manual_seed(1)
    parts = model(**batch, return_dict=False)
    assert isinstance(parts, tuple) and same(parts, output.to_tuple()) and parts[0] is not None
    model.config.return_dict = False
    torch.manual_seed(1)
    assert same(model(**batch), parts)
    assert model(**batch, return_dict=True).loss is not None


@torch.no_grad()
def test_predictions_are_all_that_was_found_with_its_place(row, model, batch):
    """Overlaps are left to whoever has all windows of a text."""
    places = torch.tensor([[7, window] for window in range(len(batch["input_ids"]))])
    output = model(**batch, places=places)
    found = tensor_to_entities(output.predictions[..., 2:], model.config.id2label)
    everything = model.decode(output, overlap="any")
    assert [[e[:3] for e in entities] for entities in found] == [[e[:3] for e in entities] for entities in everything]
    assert torch.equal(output.predictions[:, 0, :2].long(), places)
    if row.name == "span_ner":
        assert everything != model.decode(output), "some of it overlaps"
    assert model(**batch).predictions is None and model.train()(**batch, places=places).predictions is None


@torch.no_grad()
def test_hidden_states_and_attentions_come_if_asked_for_in_any_of_three_ways(row, folder, batch):
    asked = {"output_hidden_states": True, "output_attentions": True}
    by_loading = AutoModelForNestedNer.from_pretrained(folder, attn_implementation="eager", **asked)
    output = by_loading(**without_gold(batch))
    layers = 0 if row.approach == "sng" else 2
    assert len(output.hidden_states) == layers + 1
    assert all(state.shape[:2] == batch["input_ids"].shape for state in output.hidden_states)
    if layers:
        assert len(output.attentions) == layers
        assert all(attention.shape[2:] == 2 * batch["input_ids"].shape[1:] for attention in output.attentions)
    silent = by_loading(**without_gold(batch), output_hidden_states=False, output_attentions=False)
    assert silent.hidden_states is None and silent.attentions is None
    plain = AutoModelForNestedNer.from_pretrained(folder, attn_implementation="eager")
    assert plain(**without_gold(batch)).hidden_states is None
    assert same(plain(**without_gold(batch), **asked), output)
    some = plain(**without_gold(batch), output_hidden_states=[1]).hidden_states
    assert [x is None for x in some] == [True, False][:layers] and same(some[1:], output.hidden_states[2:])
    plain.config.output_hidden_states = True
    assert same(plain(**without_gold(batch)).hidden_states, output.hidden_states)


def test_a_configuration_is_the_same_once_saved_loaded_copied_and_pickled(model, tmp_path):
    config, before = model.config, model.config.to_dict()
    config.save_pretrained(tmp_path)
    assert config.to_dict() == before
    loaded = type(config).from_pretrained(tmp_path)
    unlike = ("_name_or_path", "transformers_version", "dtype", "architectures")
    assert {k: v for k, v in loaded.to_dict().items() if k not in unlike} == {
        k: v for k, v in before.items() if k not in unlike
    }
    for other in (copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert other == config and other.to_dict() == before


def test_a_model_is_the_same_once_copied_and_pickled(model, batch):
    # Before it is run: an encoder that was asked for hidden states keeps hooks, which cannot be pickled.
    others = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    before = logits_of(model, batch)
    for other in others:
        assert other is not model and torch.equal(logits_of(other, batch), before)
        torch.nn.init.zeros_(next(other.parameters()))
    assert torch.equal(logits_of(model, batch), before), "what happens to a copy does not happen to the model"


def test_shards_are_loaded_like_one_file(model, batch, tmp_path):
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    loaded, about = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not about["missing_keys"] and not about["unexpected_keys"] and not about["mismatched_keys"]
    # The last bit of a matrix product may depend on how a file's matrices lie in memory.
    torch.testing.assert_close(logits_of(loaded, batch), logits_of(model, batch))
    for name, weight in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight), name


def test_a_device_map_may_put_the_encoder_aside_and_no_head(row, folder, batch, tmp_path):
    model = AutoModelForNestedNer.from_pretrained(folder, device_map="auto").eval()
    expected, parts = logits_of(model, batch), {name: "cpu" for name, _ in model.named_children()}
    assert model.device.type == "cpu" and not model.put_aside()

    def put_aside(part):
        where = {**parts, part: "disk"}
        return AutoModelForNestedNer.from_pretrained(folder, device_map=where, offload_folder=tmp_path).eval()

    heads = [name for name in parts if name != "encoder"]
    with pytest.raises(ValueError, match=f"no room for '{heads[-1]}'.*says where each part goes"):
        put_aside(heads[-1])
    if model.may_be_put_aside:
        spread = put_aside("encoder")
        assert spread.put_aside() == ["encoder"] and spread.device.type == "cpu"
        assert torch.equal(logits_of(spread, batch), expected)
    else:
        with pytest.raises(ValueError, match="Of a dspert model nothing may be put aside"):
            put_aside("encoder")


def test_all_parameters_start_finite_and_from_the_seed_alone(row, tokenizer):
    models = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        models.append(row.make(tokenizer).state_dict())
    for name, weight in models[0].items():
        assert weight.isfinite().all(), name
        assert torch.equal(weight, models[1][name]), name
    assert any(not torch.equal(weight, models[2][name]) for name, weight in models[0].items())


def test_what_a_checkpoint_lacks_is_initialised_from_the_seed(row, model, folder):
    """A parameter that no file fills must not keep whatever its memory held."""
    config = copy.deepcopy(model.config).with_labels(["one", "two", "three", "four", "five"])
    loaded = []
    for _ in range(2):
        torch.manual_seed(5)
        loaded.append(type(model).from_pretrained(folder, config=config, ignore_mismatched_sizes=True).state_dict())
    for name, weight in loaded[0].items():
        assert weight.isfinite().all() and torch.equal(weight, loaded[1][name]), name


def test_parameters_are_counted(model):
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert model.num_parameters() == counted > 0
    table = model.get_input_embeddings().weight
    is_parameter = any(parameter is table for parameter in model.parameters())
    assert is_parameter and model.num_parameters(exclude_embeddings=True) <= counted


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_a_model_is_loaded_in_the_type_that_was_asked_for(name, folder):
    dtype = getattr(torch, name)
    model = AutoModelForTokenClassification.from_pretrained(folder, dtype=dtype)
    assert model.dtype == model.config.dtype == dtype
    assert AutoModelForTokenClassification.from_pretrained(folder, dtype=name).dtype == dtype


def test_another_type_leaves_a_configuration_that_can_be_saved(model, tmp_path):
    labels = model.config.labels
    model.half().to(torch.float64).to("cpu")
    model.save_pretrained(tmp_path)
    loaded = AutoModelForNestedNer.from_pretrained(tmp_path)
    assert loaded.dtype == torch.float64 and loaded.config.labels == labels


def test_a_folder_of_another_model_is_refused_with_the_way_to_use_it(row, model, encoder_folder, tokenizer):
    with pytest.raises(ValueError, match=f"'bert' checkpoint, not a '{model.config.model_type}' .*from_encoder"):
        type(model).from_pretrained(encoder_folder)


def test_what_follows_from_the_encoder_cannot_be_set_beside_it():
    with pytest.raises(ValueError, match="hidden_size=64 cannot be set: it follows from the other fields"):
        SpanNerForNestedNer.config_class(hidden_size=64)


def test_one_approach_does_not_load_another(tokenizer, tmp_path):
    next(row for row in ROWS if row.name == "dspert").make(tokenizer).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="'dspert' checkpoint, not a 'span_ner' one.*AutoModelForNestedNer"):
        SpanNerForNestedNer.from_pretrained(tmp_path)


def test_a_vocabulary_in_eight_bits_is_resized_once_it_is_restored(tokenizer):
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer)
    model.compact_embeddings()
    with pytest.raises(ValueError, match=r"call `model.restore_embeddings\(\)` before"):
        model.resize_token_embeddings(300)
    model.restore_embeddings()
    assert model.resize_token_embeddings(300).num_embeddings == 300
