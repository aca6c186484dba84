"""What a push leaves on the Hub: card, recipe, record and results; data sets and the metric likewise."""

import json

import pytest
import yaml
from huggingface_hub import ModelCard

pytestmark = pytest.mark.xdist_group("hub trouble")

TRAIN = """
import json, os, sys
sys.argv = ["train"]
import hf_spanner
from hf_spanner import NestedNerTrainer, NestedNerTrainingArguments, cli, load_nested_ner, load_tokenizer
from tests_support import LABELS, records
data = {"train": records() * 2, "validation": records(), "test": records()}
os.makedirs("data")
for split, rows in data.items():
    with open(f"data/{split}.jsonl", "w") as file:
        file.writelines(json.dumps(row) + "\\n" for row in rows)
quick = dict(num_train_epochs=1, use_cpu=True, disable_tqdm=True, report_to="none")
trainer = NestedNerTrainer(
    model=hf_spanner.APPROACHES["span_ner"].from_encoder(ENCODER, labels=LABELS),
    args=NestedNerTrainingArguments("by-hand", hub_model_id="me/by-trainer", **quick),
    train_dataset=data["train"], eval_dataset=data["validation"], processing_class=load_tokenizer(ENCODER),
)
trainer.train()
trainer.evaluate(data["test"], metric_key_prefix="test")
trainer.push_to_hub(language="en", license="mit", datasets="me/corpus", tags=["mine"])
flags = [f for key, value in quick.items() for f in (f"--{key}", str(value))]
with open("mine.yaml", "w") as file:
    file.write(f"approach: bl_ner\\nencoder: acme/{os.path.basename(ENCODER)}\\nmax_span_length: 12\\n")
paths = ["--data", os.path.abspath("data"), "--encoder", ENCODER, "--output_dir", "run"]
assert cli.main(["train", "mine.yaml", *paths, *flags]) == 0
about = ["--language", "en", "de", "--limits", "Not for court."]
assert cli.main(["push", "run", "me/by-command", "--private", *about]) == 0
assert cli.main(["push", "run", "me/by-command", "--dry-run", "dry"]) == 0
answer = sorted(os.listdir("dry"))
with open("run/README.md", "w") as file:
    file.write("My own words.")
assert cli.main(["push", "run", "me/by-command"]) == 0
from huggingface_hub import HfApi
HfApi().upload_file(path_or_fileobj=b"Words of the Hub.", path_in_repo="README.md", repo_id="me/by-trainer")
trainer.push_to_hub()
"""

DATA = """
import evaluate, json, os
from datasets import load_dataset
from huggingface_hub import HfApi
from hf_spanner import cli, load_nested_ner
from hf_spanner.data import features
from hf_spanner.metrics import METRIC_FOLDER
from tests_support import LABELS, records

with open("corpus.jsonl", "w") as file:
    file.writelines(json.dumps(row) + "\\n" for row in records())
assert cli.main(["convert", "corpus.jsonl", "brat", "--to", "brat"]) == 2  # brat has no labels with spaces
assert cli.main(["convert", "corpus.jsonl", "converted.jsonl"]) == 0
data = load_nested_ner("converted.jsonl")
data.push_to_hub("me/corpus")
typed = data.cast(features(LABELS))
typed.push_to_hub("me/typed")
back = load_dataset("me/corpus")
assert back["train"].features == features() and back["train"].to_list() == records()
assert load_dataset("me/typed")["train"].features == features(LABELS)
for name in ("me/corpus", "me/typed"):
    assert load_nested_ner(name)["train"].to_list() == records()
assert next(iter(load_dataset("me/corpus", split="train", streaming=True)))["tokens"] == records()[0]["tokens"]

api = HfApi()
api.create_repo("me/nested_ner", repo_type="space", space_sdk="static")
space = dict(repo_id="me/nested_ner", repo_type="space")
api.upload_folder(**space, folder_path=METRIC_FOLDER, ignore_patterns=["__pycache__/*"])
metric = evaluate.load("me/nested_ner")
gold = [[{"start": 0, "end": 5, "label": "PER"}, {"start": 3, "end": 5, "label": "ORG"}]]
found = [[{"start": 0, "end": 5, "label": "PER"}, {"start": 3, "end": 5, "label": "PER"}]]
scores = metric.compute(predictions=found, references=gold)
answer = [scores["f1"], scores["locate_f1"], scores["type_f1"]]
"""


@pytest.fixture(scope="module")
def pushed(run, encoder_folder, tmp_path_factory):
    home = tmp_path_factory.mktemp("author")
    return run(TRAIN.replace("ENCODER", repr(encoder_folder)), home / "cache"), home


def texts(repo, revision="main"):
    return {
        name: content.decode() for name, content in repo.files(revision).items() if not name.endswith(".safetensors")
    }


def commits(repo):
    return [sha for sha, files in repo.commits.items() if files]


def test_the_trainer_pushes_everything_that_belongs_to_the_model(hub, pushed):
    repo = hub.repo("me/by-trainer")
    files = texts(repo, commits(repo)[0])
    assert "training_args.bin" not in files  # a pickle
    card = ModelCard(files["README.md"])
    assert card.data.language == "en" and card.data.license == "mit" and card.data.datasets == ["me/corpus"]
    assert card.data.library_name == "transformers" and card.data.pipeline_tag == "token-classification"
    assert {"nested-ner", "span_ner", "mine"} <= set(card.data.tags)
    record = json.loads(files["training.json"])
    assert record["seed"] == 42 and set(record["results"]) == {"validation", "test"}
    measured = {(r.dataset_split, r.metric_name): r.metric_value for r in card.data.eval_results}
    for split, scores in record["results"].items():
        assert measured[split, "f1"] == pytest.approx(scores["f1"], abs=1e-4)
        assert measured[split, "f1 (PER)"] == pytest.approx(scores["per_type"]["PER"]["f1"], abs=1e-4)
    (entry,) = yaml.safe_load(files[".eval_results/nested_ner_test.yaml"])
    assert entry["dataset"] == {"id": "me/corpus", "task_id": "nested_ner_test"}
    assert entry["value"] == pytest.approx(100 * record["results"]["test"]["f1"], abs=0.01)


def test_the_command_pushes_recipe_and_train_command_without_paths_of_the_machine(hub, pushed):
    dry, home = pushed
    repo = hub.repo("me/by-command")
    files = texts(repo, commits(repo)[0])
    assert repo.private
    assert yaml.safe_load(files["recipe.yaml"])["max_span_length"] == 12
    record = json.loads(files["training.json"])
    assert record["command"].startswith("hf-spanner train mine.yaml --data data --encoder ")
    for name, text in files.items():
        assert str(home) not in text and "/tmp/" not in text, name
    card = ModelCard(files["README.md"])
    assert card.data.language == ["en", "de"] and "Not for court." in card.text and record["command"] in card.text
    assert card.data.base_model == record["base_model"] and record["base_model"].startswith("acme/")
    assert set(dry) == {name.split("/")[0] for name in files} | {"model.safetensors"}


def test_a_card_written_by_hand_is_kept(hub, pushed):
    assert texts(hub.repo("me/by-command"))["README.md"] == "My own words."
    assert texts(hub.repo("me/by-trainer"))["README.md"] == "Words of the Hub."


def test_data_sets_and_the_metric_come_back_from_the_hub(run, hub, tmp_path):
    assert run(DATA, tmp_path / "cache") == [0.5, 1.0, 0.5]
    assert "nested_ner.py" in hub.repo("me/nested_ner", "space").files()
