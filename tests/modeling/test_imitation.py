"""Learning from teachers' probabilities: by hand, by properties, and by every approach that scores the span grid."""

import math

import pytest
import torch
from approaches import ROWS
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import LABELS, SENTENCES, make_batch

from hf_spanner.modeling.imitation import UNSURE, Teaching, imitation_loss, soften, teacher_grid, with_none
from hf_spanner.modeling.losses import Gold, classification_loss, grid_loss
from hf_spanner.modeling.spans import span_mask, span_targets
from hf_spanner.training.teachers import in_steps, sparse

GRID_ROWS = [row for row in ROWS if row.approach in ("span_ner", "bl_ner", "dspert", "biaffine_ner", "cnn_ner", "sng")]
FINITE = st.floats(-5, 5)
ALL = torch.ones(1, dtype=torch.bool)


def cells(*rows, padding=1):
    return torch.tensor([[*map(list, rows), *[[-1.0] * 4] * padding]])


# ---------------------------------------------------------------------------------------------------- the grid by hand


def test_cells_stand_where_their_spans_are_and_other_spans_are_none():
    grid, taught = teacher_grid(
        cells((0, 2, 0.75, 0.25), (2, 1, 0.5, 0.0)), torch.tensor([2]), torch.tensor([3]), length=4, max_span=3
    )
    assert grid.shape == (1, 4, 3, 2) and grid.sum() == 1.5
    assert grid[0, 0, 1].tolist() == [0.75, 0.25] and grid[0, 2, 0].tolist() == [0.5, 0.0]
    # Three words: (0,1) (1,2) (2,3) and (0,2) (1,3); the teachers look at no more than two.
    assert taught[0].tolist() == [[True, True, False], [True, True, False], [True, False, False], [False] * 3]


def test_a_student_of_fewer_words_leaves_longer_cells_out():
    grid, taught = teacher_grid(
        cells((0, 3, 0.9, 0.1), (1, 1, 0.2, 0.3)), torch.tensor([3]), torch.tensor([3]), length=3, max_span=2
    )
    assert grid.sum().item() == pytest.approx(0.5) and taught.sum() == 5


def test_an_unsure_span_and_an_unseen_text_take_no_part():
    both = torch.cat([cells((0, 1, UNSURE, UNSURE)), cells((0, 1, 0.5, 0.5))])
    grid, taught = teacher_grid(both, torch.tensor([2, 0]), torch.tensor([2, 2]), length=2, max_span=2)
    assert not taught[0, 0, 0] and taught[0].sum() == 2 and not taught[1].any()
    assert (grid >= 0).all()


def test_a_window_has_the_cells_that_lie_whole_in_it():
    teaching = Teaching(torch.tensor([[0.0, 2, 0.5], [2, 2, 0.25], [3, 2, 0.125]]), 4)
    assert teaching.within(2, 4).tolist() == [[0, 2, 0.25], [-1, -1, -1]]
    assert teaching.within(5, 9).tolist() == [[-1, -1, -1]]


# ---------------------------------------------------------------------------------------------------- the loss by hand


def test_by_hand():
    """Student [1/2, 1/2], teacher [1/4, 3/4]: KL = 1/4 ln 1/2 + 3/4 ln 3/2."""
    loss = imitation_loss(torch.zeros(1, 2), torch.tensor([[0.75]]), ALL)
    assert loss.item() == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))


def test_by_hand_with_temperature():
    """T = 2 softens [1/10, 9/10] to [1/4, 3/4], and the loss counts four times."""
    loss = imitation_loss(torch.zeros(1, 2), torch.tensor([[0.9]]), ALL, temperature=2.0)
    assert loss.item() == pytest.approx(4 * (0.25 * math.log(0.5) + 0.75 * math.log(1.5)))


def test_by_hand_with_several_labels_a_span():
    """Two labels, 3/4 and 1/2, student 1/2 each: the second costs nothing."""
    loss = imitation_loss(torch.zeros(1, 2), torch.tensor([[0.75, 0.5]]), ALL, multi_label=True)
    assert loss.item() == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))


def test_what_labels_have_beyond_one_is_shared():
    assert with_none(torch.tensor([[0.5, 0.25], [1.5, 0.5]])).tolist() == [[0.25, 0.5, 0.25], [0.0, 0.75, 0.25]]


def test_a_span_that_the_student_cannot_say_costs_nothing():
    never = torch.full((1, 3), torch.finfo(torch.float32).min)
    never[:, 0] = 0.0
    loss = imitation_loss(never.requires_grad_(), torch.tensor([[0.5, 0.5]]), ALL)
    loss.backward()
    assert loss == 0 and not never.grad.any()


@pytest.mark.parametrize("multi_label", [False, True])
def test_a_teacher_that_is_sure_is_the_gold(multi_label):
    """At T = 1 one-hot probabilities give the hard loss of the grid, in value and in gradient."""
    torch.manual_seed(0)
    entities = torch.tensor([[[0, 2, 1], [1, 2, 0], [-1, -1, -1]]])
    classes = 2 if multi_label else 3
    logits = torch.randn(1, 4, 3, classes, requires_grad=True)
    targets, mask = span_targets(entities, 4, 3, 2), span_mask(torch.tensor([3]), 4, 3)
    hard = classification_loss(logits, targets, multi_label, chosen=mask)
    grid, taught = teacher_grid(
        cells((0, 2, 0.0, 1.0), (1, 1, 1.0, 0.0)), torch.tensor([3]), torch.tensor([3]), length=4, max_span=3
    )
    soft = imitation_loss(logits, grid, taught, multi_label)
    assert soft.item() == pytest.approx(hard.item(), rel=1e-6)
    (a,), (b,) = (torch.autograd.grad(loss, logits) for loss in (hard, soft))
    assert torch.allclose(a, b, atol=1e-6)


# ------------------------------------------------------------------------------------------------------- properties

LOGITS = st.lists(st.lists(FINITE, min_size=3, max_size=3), min_size=1, max_size=4)


@settings(deadline=None)
@given(LOGITS, LOGITS, st.floats(0.5, 4.0), st.booleans())
def test_it_is_never_negative_and_zero_with_zero_gradient_where_both_say_the_same(mine, theirs, temperature, multi):
    number = min(len(mine), len(theirs))
    logits = torch.tensor(mine[:number], dtype=torch.float64).float().requires_grad_()
    teacher = torch.tensor(theirs[:number])
    all_spans = torch.ones(number, dtype=torch.bool)

    def labels(z):
        return z.sigmoid() if multi else z.softmax(-1)[..., 1:]

    assert imitation_loss(logits, labels(teacher), all_spans, multi, temperature) >= -1e-4
    same = imitation_loss(logits, labels(logits.detach()), all_spans, multi, temperature)
    same.backward()
    assert same.item() == pytest.approx(0, abs=1e-3) and logits.grad.abs().max() < 1e-3


@settings(deadline=None)
@given(st.lists(FINITE, min_size=2, max_size=5), st.floats(0.5, 8))
def test_softening_probabilities_is_dividing_logits(logits, temperature):
    z = torch.tensor(logits, dtype=torch.float64)
    assert torch.allclose(soften(z.softmax(-1), temperature), (z / temperature).softmax(-1))


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.floats(0, 0.9))
def test_what_is_below_the_floor_goes_to_none_and_the_rest_stays(values, floor):
    grid = torch.tensor(values).view(3, 1, 2) / 2  # (T, K, m), labels of a span sum to at most 1
    kept = sparse(grid, floor)
    again, _ = teacher_grid(kept[None], torch.tensor([1]), torch.tensor([3]), length=3, max_span=1)
    for cell, back in zip(grid[:, 0], again[0, :, 0], strict=True):
        expected = cell if cell.sum() >= max(floor, 1e-12) else torch.zeros(2)
        assert torch.equal(back, expected)
        assert with_none(back)[0] == pytest.approx(1 - expected.sum().item(), abs=1e-6)


def test_entities_in_place_of_probabilities():
    rows = torch.tensor([[0, 1, 0.9, 0.05], [1, 1, 0.5, 0.3], [2, 1, 0.1, 0.1], [3, 1, 0.2, 0.7]])
    steps = in_steps(Teaching(rows, 2), sure=0.7).cells
    assert torch.equal(steps, torch.tensor([[0, 1, 1.0, 0.0], [1, 1, UNSURE, UNSURE], [3, 1, 0.0, 1.0]]))


# ------------------------------------------------------------------------------------------------------- the matrix


def teacher_of(model, batch):
    """Everything that a model says of a batch, as a teacher would say it."""
    with torch.no_grad():
        logits = model.eval()(**{k: v for k, v in batch.items() if k != "entities"}).logits.float()
    labels = logits.sigmoid() if model.config.multi_label else logits.softmax(-1)[..., 1:]
    rows = [sparse(grid, 0.0) for grid in labels * span_mask(batch["num_words"], *labels.shape[1:3]).unsqueeze(-1)]
    number = max(map(len, rows))
    padded = [torch.cat([row, row.new_full((number - len(row), row.size(1)), -1.0)]) for row in rows]
    return {"teacher": torch.stack(padded), "teacher_longest": torch.full((len(rows),), labels.size(2))}


@pytest.mark.parametrize("row", GRID_ROWS, ids=str)
def test_every_grid_approach_learns_from_a_teacher(row, tokenizer):
    """Without a word of gold the loss falls, and the student comes to say of new texts what it was taught."""
    torch.manual_seed(0)
    taught_by = next(other for other in GRID_ROWS if other.name == "biaffine_ner").make(
        tokenizer, max_span_length=4, multi_label=row.settings.get("multi_label", False)
    )
    with torch.no_grad():
        taught_by.output_bias.fill_(-1.0)
    batch = make_batch(tokenizer)
    said = teacher_of(taught_by, batch)
    student = row.make(tokenizer, distil_weight=1.0, distil_temperature=2.0).train()
    nothing = {"annotated_labels": torch.zeros(len(SENTENCES), len(LABELS), dtype=torch.bool)}
    batch["entities"] = torch.full_like(batch["entities"], -1)
    optimizer = torch.optim.AdamW(student.parameters(), row.learning_rate)
    losses = []
    for _ in range(40):
        output = student(**batch, **said, **nothing)
        assert "teacher" in output.losses
        losses.append(output.losses["teacher"].item())
        optimizer.zero_grad()
        output.loss.backward()
        optimizer.step()
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


@pytest.mark.parametrize("row", GRID_ROWS, ids=str)
def test_a_sentence_without_annotation_teaches_a_grid_approach_nothing_by_itself(row, tokenizer):
    model = row.make(tokenizer, distil_weight=0.25).train()
    batch = make_batch(tokenizer)
    batch["entities"] = torch.full_like(batch["entities"], -1)
    nothing = torch.zeros(len(SENTENCES), len(LABELS), dtype=torch.bool)
    unseen = {"teacher": torch.full((len(SENTENCES), 1, 5), -1.0), "teacher_longest": torch.zeros(len(SENTENCES))}
    output = model(**batch, annotated_labels=nothing, **unseen)
    assert {name: loss.item() for name, loss in output.losses.items()} == pytest.approx(
        dict.fromkeys(output.losses, 0.0), abs=1e-4
    )


@pytest.mark.parametrize("row", [row for row in GRID_ROWS if row.name in ("span_ner-ffn", "bl_ner")], ids=str)
def test_the_terms_are_weighted(row, tokenizer):
    """(1 - w) of the own loss and w of the teacher's; of a bundled model both are the span head's, 1 - α."""
    terms = {}
    for weight in (0.0, 0.25, 1.0):
        torch.manual_seed(0)
        model = row.make(tokenizer, distil_weight=weight, max_negatives=None)
        said = teacher_of(row.make(tokenizer), make_batch(tokenizer)) | {"teacher_longest": torch.full((5,), 12)}
        torch.manual_seed(0)
        terms[weight] = model(**make_batch(tokenizer), **said).losses
    assert terms[0.0]["teacher"] == 0 and terms[1.0]["spans"] == 0
    assert terms[0.25]["spans"].item() == pytest.approx(0.75 * terms[0.0]["spans"].item())
    assert terms[0.25]["teacher"].item() == pytest.approx(0.25 * terms[1.0]["teacher"].item())
    if model.is_bundled:
        assert terms[0.25]["tags"].item() == pytest.approx(terms[0.0]["tags"].item())


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.name in ("seq_ner", "locate_and_label", "diffusion_ner")], ids=str
)
def test_an_approach_without_a_grid_says_so(row, tokenizer):
    said = {"teacher": torch.full((5, 1, 5), -1.0), "teacher_longest": torch.ones(5)}
    with pytest.raises(ValueError, match="does not score all spans"):
        row.make(tokenizer)(**make_batch(tokenizer), **said)


def test_a_share_and_a_temperature_that_are_none_are_refused(tokenizer):
    row = next(row for row in ROWS if row.name == "span_ner")
    with pytest.raises(ValueError, match="distil_weight=2"):
        row.make(tokenizer, distil_weight=2)
    with pytest.raises(ValueError, match="distil_temperature=0"):
        row.make(tokenizer, distil_temperature=0)


def test_gold_of_the_grid_is_as_it_was(tokenizer):
    """Without a teacher nothing changes, whatever the weight is."""
    row = next(row for row in ROWS if row.name == "biaffine_ner")
    torch.manual_seed(0)
    model = row.make(tokenizer, distil_weight=0.9)
    batch = make_batch(tokenizer)
    output = model(**batch)
    total, _ = grid_loss(output.logits, batch["num_words"], Gold(batch["entities"]), model.config)
    assert set(output.losses) == {"spans"}
    assert output.loss.item() == pytest.approx(total.item() / len(SENTENCES), rel=1e-5)
