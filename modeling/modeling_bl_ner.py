"""BL-NER (Ji et al., 2022): SpanNER bundled with SeqNER on one encoder, L = α·L_seq + (1 − α)·L_span."""

from .modeling_span_ner import SpanNerConfig, SpanNerForNestedNer


class BlNerConfig(SpanNerConfig):
    """SpanNER with a tagging head beside it: the paper's BL-SpanNER, or BL-SeqNER with `predict_from="seq"`."""

    model_type = "bl_ner"

    bundle_weight: float | None = 0.1


class BlNerForNestedNer(SpanNerForNestedNer):
    """Bundling is a property of the base class; this is SpanNER with the paper's α = 0.1."""

    config_class = BlNerConfig
