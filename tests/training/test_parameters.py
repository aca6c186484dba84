"""Parameters under wrappers, and trainings by several processes."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from approaches import ROWS
from tests_support import records

from hf_spanner import NestedNerTrainer, NestedNerTrainingArguments
from hf_spanner.auto import APPROACHES
from hf_spanner.training.parameters import model_of, parameter_groups, unwrapped_name

ROOT = Path(__file__).resolve().parents[2]
BY_NAME = {row.name: row for row in ROWS}


class Wrapper(torch.nn.Module):
    """What data parallelism, compilation and LoRA do: the model is inside, under a name of theirs."""

    def __init__(self, name: str, inside: torch.nn.Module):
        super().__init__()
        self.add_module(name, inside)


def wrapped(model, path: str):
    for name in reversed(path.split(".")):
        model = Wrapper(name, model)
    return model


@pytest.mark.parametrize("name", ["span_ner", "dspert", "locate_and_label", "sng"])
@pytest.mark.parametrize(
    "path", ["module", "_fsdp_wrapped_module", "base_model.model", "_orig_mod", "_orig_mod.module.base_model.model"]
)
def test_encoder_and_head_keep_their_rates_under_any_wrapper(path, name, tokenizer):
    model = BY_NAME[name].make(tokenizer)
    outside = wrapped(model, path)
    assert model_of(outside) is model
    inside, rates = dict(model.named_parameters()), {}
    for group in parameter_groups(outside, 1e-5, head_learning_rate=1e-3, weight_decay=0.1):
        rates |= {id(parameter): (group["lr"], group["weight_decay"]) for parameter in group["params"]}
    assert len(rates) == len(inside)
    for name, parameter in inside.items():
        in_encoder = name.startswith(("encoder.", "span_transformer.blocks."))
        assert rates[id(parameter)] == (1e-5 if in_encoder else 1e-3, 0.1 if parameter.ndim > 1 else 0.0), name


@pytest.mark.parametrize(
    "name, own",
    [
        ("module.encoder.embeddings.weight", "encoder.embeddings.weight"),
        ("_orig_mod.module.encoder.layer.0.bias", "encoder.layer.0.bias"),
        ("encoder.layer._checkpoint_wrapped_module.0.weight", "encoder.layer.0.weight"),
        ("_fsdp_wrapped_module.encoder.layer.0._fsdp_wrapped_module.weight", "encoder.layer.0.weight"),
        ("base_model.model.encoder.layer.0.lora_A.default.weight", "encoder.layer.0.lora_A.default.weight"),
        ("classifier.weight", "classifier.weight"),
    ],
)
def test_a_parameter_has_its_own_name_again(name, own):
    assert unwrapped_name(name) == own


def test_flat_parameters_with_two_rates_are_refused():
    class Flat(torch.nn.Module):
        pretrained_prefixes = ("encoder.",)

        def __init__(self):
            super().__init__()
            self._flat_param = torch.nn.Parameter(torch.zeros(3))

    with pytest.raises(ValueError, match="head_learning_rate=0.001 needs .* set fsdp_use_orig_params"):
        parameter_groups(Flat(), 1e-5, 1e-3)
    assert len(parameter_groups(Flat(), 1e-5)) == 1


# ----------------------------------------------------------------------------------------------------------- launching


@pytest.mark.parametrize(
    "name, kind, processes",
    [("cpu", "NO", 1), ("gpu", "NO", 1), ("ddp_8gpu", "MULTI_GPU", 8), ("fsdp_8gpu", "FSDP", 8)],
)
def test_accelerate_reads_its_configurations(name, kind, processes):
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(ROOT / "scripts" / "accelerate" / f"{name}.yaml"))
    assert (config.distributed_type.value, config.num_processes) == (kind, processes)
    assert config.use_cpu == (name == "cpu")


def test_every_configuration_of_accelerate_is_tested():
    files = {file.stem for file in (ROOT / "scripts" / "accelerate").iterdir()}
    assert files == {"cpu", "gpu", "ddp_8gpu", "fsdp_8gpu"}


def run_curve(folder, wrapper, row):
    launcher = [] if wrapper == "one" else ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELERATE_USE_CPU": "true",
    }
    script = str(Path(__file__).with_name("curve.py"))
    command = [sys.executable, *launcher, script, str(folder), str(folder / "tokenizer"), wrapper, row]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / f"{wrapper}.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["span_ner-boundary", "seq_ner-crf", *sorted({*APPROACHES} - {"span_ner", "seq_ner"})]
)
def test_two_processes_have_the_losses_of_one_with_the_double_batch(name, tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    one, ddp, fsdp = (run_curve(tmp_path, wrapper, name) for wrapper in ("one", "ddp", "fsdp"))
    assert (one["processes"], ddp["processes"], fsdp["processes"]) == (1, 2, 2)
    assert one["rates"] == ddp["rates"] == fsdp["rates"] == [1e-3, 3e-3]
    assert one["support"] == ddp["support"] == 14 and fsdp["found"]
    if name == "diffusion_ner":  # the noise of a step hangs on how sentences are shared out
        assert all(math.isfinite(loss) for loss in (*one["loss"], *ddp["loss"], *fsdp["loss"]))
        return
    assert ddp["loss"] == pytest.approx(one["loss"], rel=1e-3) and one["loss"][-1] < one["loss"][0]
    assert fsdp["loss"] == pytest.approx(one["loss"], rel=1e-3)
    assert one["predicted"] == ddp["predicted"]


def test_where_the_model_is_shared_out_one_process_alone_reads_with_what_was_saved(tokenizer, tmp_path):
    """A forward pass on the first process alone would wait for the others for ever."""
    trainer = NestedNerTrainer(
        model=BY_NAME["span_ner"].make(tokenizer),
        args=NestedNerTrainingArguments(str(tmp_path), use_cpu=True, report_to="none"),
        train_dataset=records(),
        processing_class=tokenizer,
    )
    assert trainer.whole_model() is trainer.model
    trainer.save_model()
    trainer.is_fsdp_enabled = True
    alone = trainer.whole_model()
    assert alone is not trainer.model and alone.config.labels == trainer.model.config.labels
    for name, weight in trainer.model.state_dict().items():
        assert torch.equal(alone.state_dict()[name], weight)
