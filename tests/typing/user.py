"""What a type checker knows of every public name. Checked by `make quality`, never run."""

from collections.abc import Iterator
from typing import Any

import torch
from datasets import Dataset, DatasetDict
from evaluate import EvaluationModule
from huggingface_hub import CommitInfo
from transformers import PreTrainedTokenizerBase
from transformers.trainer_utils import TrainOutput
from typing_extensions import assert_type

import hf_spanner
from hf_spanner import (
    APPROACHES,
    AutoModelForNestedNer,
    Entity,
    NestedNerCollator,
    NestedNerConfig,
    NestedNerDataset,
    NestedNerMetrics,
    NestedNerOutput,
    NestedNerPipeline,
    NestedNerPreTrainedModel,
    NestedNerTrainer,
    NestedNerTrainingArguments,
    Predictor,
    evaluate,
    load_metric,
    load_model,
    load_nested_ner,
    load_tokenizer,
    pipeline,
    predict_sentences,
    read_vectors,
    render,
    score_entities,
    show,
    smooth_targets,
    train_glove,
)
from hf_spanner.building.vectors import WordVectors
from hf_spanner.modeling.modeling_span_ner import SpanNerConfig, SpanNerForNestedNer
from hf_spanner.modeling.pipeline_nested_ner import EntityDict
from hf_spanner.rendering.notebook import View

ner = pipeline("me/model", batch_size=8)
assert_type(ner, NestedNerPipeline)
assert_type(render("New York", ner("New York"), "svg"), str)
assert_type(show(ner("New York"), "New York"), View)
assert_type(Predictor("me/model")({"text": ["New York"]}), dict[str, Any])
assert_type(ner("one text"), list[EntityDict])
assert_type(ner(["one", "two"]), list[list[EntityDict]])
assert_type(ner(["New", "York"], is_split_into_words=True), list[EntityDict])
assert_type(ner([["New", "York"], ["London"]], is_split_into_words=True), list[list[EntityDict]])
assert_type(ner(["one", "two"], is_document=True), list[list[EntityDict]])
assert_type(ner(text for text in ("one", "two")), Iterator[list[EntityDict]])
assert_type(ner("one", before="zero", nesting=True), list[EntityDict])
entity = ner("one text")[0]
assert_type(entity["start"], int)
assert_type(entity["entity_group"], str)
entity["nonsense"]  # type: ignore[typeddict-item]

model, tokenizer = load_model("me/model")
assert_type(model, NestedNerPreTrainedModel)
assert_type(tokenizer, PreTrainedTokenizerBase)
assert_type(model.config, NestedNerConfig)
assert_type(model.config.labels, list[str])
assert_type(model.reach().longest, int | None)
assert_type(model.heads, tuple[str, ...])
assert_type(load_tokenizer("me/model"), PreTrainedTokenizerBase)
assert_type(SpanNerForNestedNer.from_encoder("bert-base-cased", labels=["PER"]), SpanNerForNestedNer)
assert_type(SpanNerForNestedNer.from_pretrained("me/model"), SpanNerForNestedNer)
assert_type(SpanNerForNestedNer.from_pretrained("me/model").config, SpanNerConfig)
assert_type(SpanNerForNestedNer.from_pretrained("me/model").config.max_span_length, int)
assert_type(NestedNerConfig(id2label={0: "PER"}, max_span_length=None).max_span_length, int | None)
NestedNerConfig(max_span_lenght=8)  # type: ignore[call-arg]
assert_type(APPROACHES, dict[str, type[NestedNerPreTrainedModel]])
assert_type(AutoModelForNestedNer.from_pretrained("me/model"), NestedNerPreTrainedModel)
assert_type(AutoModelForNestedNer.from_config(model.config), NestedNerPreTrainedModel)

data = load_nested_ner("folder/")
assert_type(data, DatasetDict)
assert_type(data["test"], Dataset)
found = predict_sentences(model, tokenizer, data["test"], threshold=0.5)
assert_type(found, list[list[Entity]])
assert_type(found[0][0], Entity)
assert_type(found[0][0].label, str)
assert_type(found[0][0].score, float)
predict_sentences(model, tokenizer, data["test"], threshold="high")  # type: ignore[arg-type]
assert_type(evaluate(model, tokenizer, data["test"], groups=True), dict[str, Any])
assert_type(score_entities([[(0, 2, "PER")]], [[{"start": 0, "end": 2, "label": "PER"}]]), dict[str, Any])
assert_type(load_metric(), EvaluationModule)

arguments = NestedNerTrainingArguments("runs/mine", head_learning_rate=1e-3)
assert_type(arguments.head_learning_rate, float | None)
NestedNerTrainingArguments("runs/mine", head_lr=1e-3)  # type: ignore[call-arg]
dataset = NestedNerDataset(data["train"], tokenizer, model.config)
assert_type(dataset[0], dict[str, Any])
assert_type(dataset.gold(), list[list[Entity]])
batch = NestedNerCollator(tokenizer.pad_token_id)(dataset.items)
assert_type(batch, dict[str, torch.Tensor])
assert_type(NestedNerMetrics(model.config, dataset).found, list[list[Entity]])
output = model(**batch)
assert_type(output, NestedNerOutput)
assert_type(output.losses, dict[str, torch.Tensor] | None)
assert_type(model.decode(output), list[list[Entity]])
trainer = NestedNerTrainer(
    model=model,
    args=arguments,
    train_dataset=data["train"],
    eval_dataset=data["validation"],
    processing_class=tokenizer,
)
assert_type(trainer.args, NestedNerTrainingArguments)
assert_type(trainer.reach, dict[str, str])
assert_type(trainer.train(), TrainOutput)
assert_type(trainer.evaluate(data["test"], metric_key_prefix="test"), dict[str, float])
assert_type(trainer.results, dict[str, dict[str, Any]])
assert_type(trainer.push_to_hub(language="en"), CommitInfo | None)

assert_type(read_vectors("vectors.txt"), WordVectors)
assert_type(read_vectors("vectors.txt").words, list[str])
assert_type(train_glove([["New", "York"]]), WordVectors)
entities, num_words = torch.tensor([[[0, 2, 0]]]), torch.tensor([3])
assert_type(smooth_targets(entities, num_words, length=3, max_span=2, num_labels=1, epsilon=0.1), torch.Tensor)

assert_type(hf_spanner.__version__, str)
nothing = hf_spanner.nonsense  # type: ignore[attr-defined]
