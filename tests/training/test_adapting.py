"""An encoder that reads text of a domain: whole words hidden, nothing left out, killed and resumed, and then used."""

import json

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, BertConfig, BertForMaskedLM, BertModel

from hf_spanner import APPROACHES, cli
from hf_spanner.building.toy import train_wordpiece
from hf_spanner.training.adapting import Masking, Windows, adapt, hidden_once, load_for_masking

LINES = [
    "the mayor of New York met the head of the Bank of England in London",
    "the receptor gene is expressed in human cells",
    "the head of the office of the mayor is here",
] * 12


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A bare encoder, without a head, whose tokenizer has a mask."""
    folder = tmp_path_factory.mktemp("encoder")
    tokenizer = train_wordpiece(LINES, 80)
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def windows(encoder):
    from hf_spanner import load_tokenizer

    return Windows((line.split() for line in LINES), load_tokenizer(encoder), 24)


def test_windows_hold_every_word_once_and_none_is_cut(windows):
    tokenizer = windows.words.tokenizer
    ids = [item for index in range(len(windows)) for item in windows[index]["input_ids"][1:-1]]
    assert " ".join(tokenizer.convert_ids_to_tokens(ids)).replace(" ##", "") == " ".join(LINES)
    for index in range(len(windows)):
        item = windows[index]
        assert len({len(row) for row in item.values()}) == 1 and len(item["input_ids"]) <= 24
        assert windows.begins[windows.starts[index]] == 1
    assert min(len(windows[index]["input_ids"]) for index in range(len(windows) - 1)) > 12


def test_words_are_hidden_whole(windows):
    tokenizer = windows.words.tokenizer
    torch.manual_seed(0)
    batch = Masking(tokenizer, 0.3)([windows[index] for index in range(len(windows))])
    hidden = batch["labels"] != -100
    assert torch.equal(hidden, batch["input_ids"] == tokenizer.mask_token_id)
    several = 0
    for index in range(len(windows)):
        first, last = windows.starts[index], windows.starts[index + 1]
        row = hidden[index, 1 : 1 + last - first].tolist()
        assert not hidden[index, 0] and not hidden[index, 1 + last - first :].any()
        for place in range(1, last - first):
            if not windows.begins[first + place]:  # the word goes on
                assert row[place] == row[place - 1]
                several += row[place]
    assert several > 5
    assert 0.2 < sum(hidden[batch["attention_mask"] == 1].tolist()) / sum(batch["attention_mask"].flatten()) < 0.4


def test_what_is_measured_stays_the_same(windows):
    items = [windows[0], windows[1]]
    first, again, other = (hidden_once(items, Masking(windows.words.tokenizer, 0.3, seed)) for seed in (3, 3, 4))
    assert first == again != other
    batch = Masking(windows.words.tokenizer, 0.3)(first)
    assert batch["labels"].shape == batch["input_ids"].shape == batch["attention_mask"].shape


def texts():
    return [{"tokens": line.split()} for line in LINES]


SETTINGS = {"window": 24, "mask": 0.3, "batch_size": 4, "learning_rate": 5e-3, "use_cpu": True, "save_steps": 10}


def test_the_encoder_learns_the_text_and_is_an_encoder(encoder, tmp_path):
    record = adapt(encoder, texts(), tmp_path / "out", steps=120, **SETTINGS)
    assert record["head"] == "new" and record["steps"] == 120
    assert record["perplexity"]["after"] < 0.5 * record["perplexity"]["before"]
    assert json.loads((tmp_path / "out" / "adaptation.json").read_text()) == record
    assert not list((tmp_path / "out").glob("checkpoint-*"))
    changed = AutoModel.from_pretrained(tmp_path / "out").embeddings.word_embeddings.weight
    assert not torch.equal(changed, AutoModel.from_pretrained(encoder).embeddings.word_embeddings.weight)
    model = APPROACHES["span_ner"].from_encoder(str(tmp_path / "out"), labels=["PER"])
    assert torch.equal(model.encoder.embeddings.word_embeddings.weight, changed)

    further = adapt(str(tmp_path / "out"), texts(), tmp_path / "further", steps=1, **SETTINGS)
    assert further["head"] == "the encoder's"
    assert further["loss"]["before"] == pytest.approx(record["loss"]["after"], rel=1e-4)

    model.save_pretrained(tmp_path / "ner")  # the encoder of a trained model
    taken, has_head = load_for_masking(str(tmp_path / "ner"))
    assert not has_head and torch.equal(taken.base_model.embeddings.word_embeddings.weight, changed)


def test_who_was_killed_ends_with_the_weights_it_would_have_had(encoder, tmp_path, monkeypatch):
    from hf_spanner.training import adapting

    whole = adapt(encoder, texts(), tmp_path / "whole", steps=30, **SETTINGS)
    plain = adapting._AdaptingTrainer.training_step

    def killed(self, *args, **kwargs):
        if self.state.global_step == 25:
            raise KeyboardInterrupt
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(adapting._AdaptingTrainer, "training_step", killed)
    with pytest.raises(KeyboardInterrupt):
        adapt(encoder, texts(), tmp_path / "killed", steps=30, **SETTINGS)
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "killed").glob("checkpoint-*")] == ["checkpoint-20"]
    again = adapt(encoder, texts(), tmp_path / "killed", steps=30, resume=True, **SETTINGS)
    assert again["loss"] == pytest.approx(whole["loss"], rel=1e-6)
    a, b = (AutoModelForMaskedLM.from_pretrained(tmp_path / name).state_dict() for name in ("whole", "killed"))
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_the_command_adapts_and_says_what_it_gained(encoder, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("\n".join(LINES))
    command = ["adapt", "--encoder", encoder, "--text", str(tmp_path / "text.txt"), "--window", "24", "--mask", "0.3",
               "--use_cpu", "--batch_size", "4", "--output_dir", str(tmp_path / "out")]  # fmt: skip
    assert cli.main([*command, "--minutes", "0.05"]) == 0
    out = capsys.readouterr().out
    assert "before" in out and "perplexity" in out and "is new" in out
    assert cli.main(command) == 2
    assert "--resume goes on, --overwrite begins anew" in capsys.readouterr().err
    assert cli.main([*command, "--resume"]) == 0 and "nothing to resume" in capsys.readouterr().out
    assert cli.main([*command, "--overwrite", "--steps", "2"]) == 0


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--text", "missing"], "There is no text 'missing'"),
        (["--steps", "0"], "steps=0"),
        (["--mask", "1.5"], "mask=1.5"),
        (["--window", "4000"], "window=4000 is more than the 64 positions"),
        (["--overwrite", "--resume"], "leave one of them out"),
    ],
)
def test_a_mistake_is_one_sentence(flags, told, encoder, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("\n".join(LINES))
    command = [
        "adapt",
        "--encoder",
        encoder,
        "--text",
        str(tmp_path / "text.txt"),
        "--output_dir",
        str(tmp_path / "o"),
    ]
    assert cli.main([*command, *flags]) == 2
    assert told in capsys.readouterr().err.strip().splitlines()[-1]


def test_a_tokenizer_without_a_mask_is_refused(encoder_folder, tmp_path):
    with pytest.raises(ValueError, match="no mask token"):
        adapt(encoder_folder, texts(), tmp_path / "out", **SETTINGS)


def test_a_head_that_came_with_the_encoder_is_kept(encoder, tmp_path):
    model, has_head = load_for_masking(encoder)
    assert isinstance(model, BertForMaskedLM) and not has_head
    model.save_pretrained(tmp_path / "with")
    assert load_for_masking(str(tmp_path / "with"))[1]
