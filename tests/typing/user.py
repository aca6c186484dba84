"""What a type checker knows of every public name. Checked by `make quality`, never run."""

from collections.abc import Iterator
from typing import Any

from transformers import PreTrainedTokenizerBase
from typing_extensions import assert_type

import hf_spanner
from hf_spanner import (
    APPROACHES,
    AutoModelForNestedNer,
    Entity,
    NestedNerCollator,
    NestedNerConfig,
    NestedNerDataset,
    NestedNerOutput,
    NestedNerPipeline,
    NestedNerPreTrainedModel,
    NestedNerTrainer,
    NestedNerTrainingArguments,
    evaluate,
    load_metric,
    load_model,
    load_nested_ner,
    load_tokenizer,
    pipeline,
    predict_sentences,
    read_vectors,
    score_entities,
    smooth_targets,
    train_glove,
)
from hf_spanner.modeling.modeling_span_ner import SpanNerForNestedNer
from hf_spanner.modeling.pipeline_nested_ner import EntityDict

ner = pipeline("me/model", batch_size=8)
assert_type(ner, NestedNerPipeline)
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
assert_type(APPROACHES, dict[str, type[NestedNerPreTrainedModel]])
AutoModelForNestedNer.from_pretrained("me/model")

data = load_nested_ner("folder/")
found = predict_sentences(model, tokenizer, data["test"], threshold=0.5)
assert_type(found, list[list[Entity]])
assert_type(found[0][0].label, str)
assert_type(evaluate(model, tokenizer, data["test"]), dict[str, Any])
assert_type(score_entities([[(0, 2, "PER")]], [[]]), dict[str, Any])
load_metric()

arguments = NestedNerTrainingArguments("runs/mine", head_learning_rate=1e-3)
dataset = NestedNerDataset(data["train"], tokenizer, model.config)
batch = NestedNerCollator(tokenizer.pad_token_id)(dataset.items)
output = model(**batch)
trainer = NestedNerTrainer(
    model=model,
    args=arguments,
    train_dataset=data["train"],
    eval_dataset=data["validation"],
    processing_class=tokenizer,
)
assert_type(trainer.reach, dict[str, str])
assert_type(model.decode(NestedNerOutput()), list[list[Entity]])

vectors = read_vectors("vectors.txt")
assert_type(vectors.words, list[str])
train_glove([["New", "York"]]).save("vectors.txt.gz")
targets = smooth_targets
nothing = hf_spanner.nonsense  # type: ignore[attr-defined]
