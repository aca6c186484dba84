"""SeqNER (Ji et al., 2022): nested NER's flat baseline, one BIO tag a word."""

from .configuration_nested_ner import NestedNerConfig, Reach
from .losses import Gold
from .modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel, WordStates
from .tagging import TaggingHead


class SeqNerConfig(NestedNerConfig):
    """SeqNER: an affine map from each word to BIO tags (`tag_scheme="BIOES"`: to these), with softmax or
    (`use_crf=True`) a linear-chain CRF.

    Tags cannot say nesting: the outermost entities are learnt and found, inner ones are out of reach. Any length is
    in reach.
    """

    model_type = "seq_ner"

    overlap: str = "flat"
    predict_from: str = "seq"

    @property
    def heads(self) -> tuple[str, ...]:
        return ("seq",)

    def reach(self) -> Reach:
        return Reach()


class SeqNerForNestedNer(NestedNerPreTrainedModel):
    """Words e_1..e_T → Linear(d → 2m + 1) → BIO tags (Eq. 5 of Ji et al., 2022)."""

    config: SeqNerConfig
    config_class = SeqNerConfig
    tagger: TaggingHead

    def __init__(self, config: SeqNerConfig):
        super().__init__(config)
        self.post_init()

    def recognise(self, states: WordStates, gold: Gold | None) -> NestedNerOutput:
        logits = self.tagger(states.words)
        losses = None
        if gold is not None:
            losses = {"tags": self.tagger.loss(logits, gold, states.mask, self.config.loss_reduction)}
        return NestedNerOutput(losses=losses, logits=logits, tag_logits=logits)
