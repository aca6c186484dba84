"""The diffusion of boundaries and the matching of sets: identities, closed forms, hand-worked cases, oracles."""

import itertools
import math
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests_support import read_oracle

from hf_spanner.modeling.diffusion_ner_matching import HungarianMatcher, set_losses
from hf_spanner.modeling.diffusion_ner_process import (
    STATES,
    SentenceNoise,
    alpha_bars,
    betas,
    ddim_step,
    diffuse,
    random_states,
    sampling_times,
    seeded_noise,
    shares_of_states,
    sinusoid,
    spans_of_states,
    states_of_spans,
)

# ----------------------------------------------------------------------------------------------------------- schedules


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_signal_falls_from_almost_all_to_almost_nothing(schedule):
    left = alpha_bars(schedule, 1000)
    assert left[0] > 0.999 and left[-1] < 1e-4
    assert all(a > b > 0 for a, b in itertools.pairwise(left))
    assert all(0 < beta < 1 for beta in betas(schedule, 1000))


def test_an_unknown_schedule_is_named():
    with pytest.raises(ValueError, match="'sigmoid'"):
        betas("sigmoid", 10)


def test_schedules_are_the_authors():
    for name, expected in read_oracle("diffusion_ner.pt")["schedules"].items():
        schedule, timesteps = name.split("_")
        for mine, key in ((betas, "betas"), (alpha_bars, "alphas_cumprod")):
            values = torch.tensor(mine(schedule, int(timesteps)), dtype=torch.float64)
            assert torch.allclose(values, expected[key], atol=1e-12), name


def test_sampling_visits_evenly_spaced_times_from_the_noisiest():
    assert sampling_times(1000, 5) == [999, 799, 599, 399, 199]
    assert sampling_times(1000, 1) == [999]
    assert sampling_times(100, 3) == [99, 65, 32]
    assert sampling_times(4, 4) == [3, 2, 1, 0]


# -------------------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize("form", STATES)
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_without_noise_every_span_of_every_sentence_comes_back(form, scale):
    """Gold → state → indices is the identity for every span of up to 200 words."""
    for n in range(1, 201):
        spans = torch.triu_indices(n, n).T.unsqueeze(0)  # every left ≤ right
        words = torch.tensor([n])
        states = states_of_spans(spans, words, scale, form)
        assert states.abs().max() <= scale
        assert torch.equal(spans_of_states(states, words, scale, form), spans), n


@given(st.integers(1, 200), st.data())
def test_at_the_first_time_step_noise_hardly_moves_a_span(n, data):
    left = data.draw(st.integers(0, n - 1))
    span = torch.tensor([[[left, data.draw(st.integers(left, n - 1))]]])
    noise = torch.tensor(data.draw(st.lists(st.floats(-3, 3), min_size=2, max_size=2))).view(1, 1, 2)
    x = diffuse(
        states_of_spans(span, torch.tensor([n]), 1.0, "left_right"), torch.tensor(alpha_bars("cosine", 1000)[0]), noise
    )
    back = spans_of_states(x, torch.tensor([n]), 1.0, "left_right")
    assert (back - span).abs().max() <= 0.5 + 0.5 * (n - 1) * 3 * 0.0065  # sqrt(1 - ᾱ_0) = 0.0064


def test_the_released_normalisation_loses_most_spans_even_without_noise():
    n = 20
    spans = torch.triu_indices(n, n).T.unsqueeze(0)
    states = states_of_spans(spans, torch.tensor([n]), 1.0, "left_width", original=True)
    wrong = (spans_of_states(states, torch.tensor([n]), 1.0, "left_width") != spans).any(-1).float().mean()
    assert wrong > 0.5


@given(st.integers(1, 60), st.sampled_from(STATES), st.integers(0, 2**31))
def test_any_noise_is_a_span_inside_its_sentence(n, form, seed):
    x = torch.randn(1, 50, 2, generator=torch.Generator().manual_seed(seed)) * 3
    left, right = spans_of_states(x, torch.tensor([n]), 1.0, form).unbind(-1)
    assert (left >= 0).all() and (left <= right).all() and (right < n).all()


def test_spans_that_stand_for_nothing_are_of_every_size_around_the_middle():
    normal = torch.randn(4000, 2, generator=torch.Generator().manual_seed(0))
    for form in STATES:
        shares = shares_of_states(random_states(normal, 1.0, form), 1.0, form)
        assert (shares[:, 0] <= shares[:, 1]).all()
        assert 0.3 < shares[:, 0].mean() < 0.55 < shares[:, 1].mean()


def test_noisy_spans_are_the_authors_given_their_draws():
    """Both of what expands by repetition and what the model trains on, with their division by n."""
    for case in read_oracle("diffusion_ner.pt")["expand"]:
        noise, gold = dict(case["draws"])["randn"], case["gt_lw"]
        if case["n_gt"] == 0:
            gold = torch.tensor([[0.0, 1.0]])  # their stand-in
        elif case["n_gt"] not in (1, len(noise)):
            continue  # how often each of several is repeated was drawn too
        alpha_bar = torch.tensor(alpha_bars("cosine", 20)[int(case["result"]["t"])])
        x = diffuse((2 * gold.expand(len(noise), 2) - 1).unsqueeze(0), alpha_bar, noise)
        shares = shares_of_states(x, 1.0, "left_width")[0].double()
        assert torch.allclose(shares, case["result"]["spans_lr"], atol=1e-5), case["n_gt"]
    model = read_oracle("diffusion_ner.pt")["models"]["lrconcat_cosine"]
    schedule = torch.tensor(alpha_bars("cosine", 100))
    words = model["batch"]["token_masks"].sum(1)
    x0 = states_of_spans(model["batch"]["entity_spans"], words, 1.0, "left_width", original=True)
    for case in model["prepare_targets"]:
        x = diffuse(x0, schedule[case["t"].flatten()].view(-1, 1, 1), case["noise"])
        assert torch.allclose(shares_of_states(x, 1.0, "left_width").double(), case["diffused_lr"], atol=1e-5)


# ------------------------------------------------------------------------------------------------------ there and back


def test_noise_has_the_moments_of_equation_4():
    x0, alpha_bar = torch.full((20000, 2), 0.5), torch.tensor(0.36)
    x = diffuse(x0, alpha_bar, torch.randn(x0.shape, generator=torch.Generator().manual_seed(0)))
    assert x.mean().item() == pytest.approx(0.6 * 0.5, abs=0.02)
    assert x.var().item() == pytest.approx(0.64, abs=0.02)


@given(st.sampled_from(["cosine", "linear"]), st.integers(1, 99), st.floats(-1, 1), st.floats(-3, 3))
def test_with_eta_1_a_step_to_the_time_before_is_the_posterior(schedule, t, x0, x):
    """μ̃ = √ᾱ_{t-1} β_t / (1 - ᾱ_t) x_0 + √α_t (1 - ᾱ_{t-1}) / (1 - ᾱ_t) x_t and β̃ = (1 - ᾱ_{t-1}) / (1 - ᾱ_t) β_t."""
    beta, bar, before = betas(schedule, 100)[t], alpha_bars(schedule, 100)[t], alpha_bars(schedule, 100)[t - 1]
    mean, sigma = ddim_step(
        torch.tensor(x, dtype=torch.float64), torch.tensor(x0, dtype=torch.float64), bar, before, 1.0
    )
    expected = (before**0.5 * beta * x0 + (1 - beta) ** 0.5 * (1 - before) * x) / (1 - bar)
    assert mean.item() == pytest.approx(expected, abs=1e-9)
    assert sigma**2 == pytest.approx((1 - before) / (1 - bar) * beta, abs=1e-12)


def test_the_posterior_has_the_authors_coefficients():
    weights = read_oracle("diffusion_ner.pt")["models"]["lrconcat_cosine"]["state_dict"]
    bars = alpha_bars("cosine", 100)
    one, zero = torch.tensor(1.0, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    for t in range(1, 100):
        of_x0, sigma = ddim_step(zero, one, bars[t], bars[t - 1], 1.0)
        of_x, _ = ddim_step(one, zero, bars[t], bars[t - 1], 1.0)
        assert of_x0.item() == pytest.approx(weights["posterior_mean_coef1"][t].item(), abs=1e-9)
        assert of_x.item() == pytest.approx(weights["posterior_mean_coef2"][t].item(), abs=1e-9)
        assert sigma**2 == pytest.approx(weights["posterior_variance"][t].item(), abs=1e-9)


def test_without_chance_a_step_keeps_the_noise_it_saw():
    x0, noise = torch.tensor([0.4, -0.2]), torch.tensor([1.0, -2.0])
    x = diffuse(x0, torch.tensor(0.25), noise)
    step, sigma = ddim_step(x, x0, 0.25, 0.81)
    assert sigma == 0 and torch.allclose(step, diffuse(x0, torch.tensor(0.81), noise), atol=1e-6)


# -------------------------------------------------------------------------------------------------------------- chance


def test_noise_belongs_to_the_text_and_the_seed_alone():
    one = seeded_noise(1, [[5, 6], [7]]).normal(4, 2)
    assert torch.equal(one.flip(0), seeded_noise(1, [[7], [5, 6]]).normal(4, 2))
    assert torch.equal(one[:1], seeded_noise(1, [[5, 6]]).normal(4, 2))
    assert not torch.equal(one[0], one[1])
    assert not torch.equal(one, seeded_noise(2, [[5, 6], [7]]).normal(4, 2))


def test_noise_of_training_is_torchs_own():
    torch.manual_seed(3)
    noise = SentenceNoise([None, None])
    drawn = noise.normal(2, 2)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.stack([torch.randn(2, 2), torch.randn(2, 2)]))
    assert all(0 <= t < 7 for t in SentenceNoise([None] * 50).times(7))
    assert sorted(noise.order(5)[0].tolist()) == [0, 1, 2, 3, 4]


def test_the_sinusoid_of_zero_is_zeros_and_ones():
    assert sinusoid(torch.tensor([0]), 6).tolist() == [[0, 0, 0, 1, 1, 1]]
    assert sinusoid(torch.tensor([2.0]), 4)[0].tolist() == pytest.approx([0.9093, 0.0002, -0.4161, 1.0], abs=1e-4)


# --------------------------------------------------------------------------------------------------- matching and loss


def test_each_target_gets_the_prediction_that_finds_it_most_probable():
    """Three predictions on two words; the targets are (0, 0, class 1) and (1, 1, class 2)."""
    logits = torch.tensor([[[9.0, 0, 0], [0, 0, 9.0], [0, 9.0, 0]]])
    left = torch.tensor([[[0.0, 0.0], [-9.0, 9.0], [9.0, -9.0]]])
    targets = [torch.tensor([[0, 0, 1], [1, 1, 2]])]
    ((chosen, of),) = HungarianMatcher()(logits, left, left, targets)
    assert dict(zip(of.tolist(), chosen.tolist(), strict=True)) == {0: 2, 1: 1}


@pytest.mark.parametrize("which", ["left", "right", "class"])
def test_each_boundary_and_the_type_alone_can_decide_a_match(which):
    """Two targets that differ in one thing only, and two predictions that differ in the same."""
    targets = torch.tensor([[1, 1, 1], [1, 1, 1]])
    targets[1, ["left", "right", "class"].index(which)] = 2
    logits, left, right = torch.zeros(1, 2, 3), torch.zeros(1, 2, 3), torch.zeros(1, 2, 3)
    {"left": left, "right": right, "class": logits}[which][0] = torch.tensor([[0.0, -1, 1], [0, 1, -1]])
    ((chosen, of),) = HungarianMatcher()(logits, left, right, [targets])
    assert dict(zip(of.tolist(), chosen.tolist(), strict=True)) == {0: 1, 1: 0}


def test_one_prediction_is_never_matched_twice():
    """The second best target of a prediction must be content with another prediction."""
    logits, pointer = torch.zeros(1, 2, 2), torch.tensor([[[5.0, 4.0], [-5.0, -5.0]]])
    ((chosen, of),) = HungarianMatcher()(logits, pointer, pointer, [torch.tensor([[0, 0, 1], [1, 1, 1]])])
    assert sorted(chosen.tolist()) == [0, 1] and sorted(of.tolist()) == [0, 1]


def test_predictions_that_are_all_alike_answer_for_the_nearest_entity_if_distance_counts():
    logits, pointer = torch.zeros(1, 3, 2), torch.zeros(1, 3, 10)
    targets = [torch.tensor([[0, 1, 1], [4, 5, 1], [8, 9, 1]])]
    spans, num_words = torch.tensor([[[7, 9], [0, 2], [3, 5]]]), torch.tensor([10])
    matcher = HungarianMatcher(distance_weight=0.1)
    ((chosen, of),) = matcher(logits, pointer, pointer, targets, spans, num_words)
    assert dict(zip(chosen.tolist(), of.tolist(), strict=True)) == {0: 2, 1: 0, 2: 1}
    logits[0, 0, 1] = pointer[0, 0, 0] = pointer[0, 0, 1] = 9.0  # but what a prediction says weighs more
    ((chosen, of),) = matcher(logits, pointer, pointer, targets, spans, num_words)
    assert dict(zip(chosen.tolist(), of.tolist(), strict=True))[0] == 0


def test_the_loss_of_a_hand_worked_case():
    """Certain boundaries cost nothing; of two uniform types over three classes each costs log 3."""
    logits = torch.zeros(1, 2, 3)
    pointer = torch.tensor([[[50.0, -50.0], [50.0, -50.0]]])
    targets, matches = [torch.tensor([[0, 0, 1]])], [(torch.tensor([1]), torch.tensor([0]))]
    mask = torch.ones(1, 2, dtype=torch.bool)
    types, boundaries = set_losses(logits, pointer, pointer, mask, targets, matches, none_weight=0.5)
    assert boundaries.item() == pytest.approx(0, abs=1e-6)
    assert types.item() == pytest.approx((0.5 + 1) / 2 * torch.log(torch.tensor(3.0)).item())


def test_words_that_do_not_exist_cost_nothing():
    logits, pointer = torch.zeros(1, 1, 2), torch.zeros(1, 1, 3)
    targets, matches = [torch.tensor([[0, 1, 1]])], [(torch.tensor([0]), torch.tensor([0]))]
    mask = torch.tensor([[True, True, False]])
    _, boundaries = set_losses(logits, pointer, pointer, mask, targets, matches)
    assert boundaries.item() == pytest.approx(4 * torch.log(torch.tensor(2.0)).item())


def test_the_papers_objective_is_the_likelihood_of_the_right_words_alone():
    """-log sigmoid(log 3) = -log 0.75 of the left word and -log sigmoid(0) = log 2 of the right one, as they are
    matched; what the other words have is nobody's business."""
    logits = torch.zeros(1, 2, 2)
    left, right = torch.full((1, 2, 3), 7.0), torch.full((1, 2, 3), -7.0)
    left[0, 1, 0], right[0, 1, 2] = torch.log(torch.tensor(3.0)), 0.0
    targets, matches = [torch.tensor([[0, 2, 1]])], [(torch.tensor([1]), torch.tensor([0]))]
    mask = torch.ones(1, 3, dtype=torch.bool)
    _, boundaries = set_losses(logits, left, right, mask, targets, matches, boundary_loss="likelihood")
    assert boundaries.item() == pytest.approx(-math.log(0.75) + math.log(2), rel=1e-5)


def test_matching_loss_and_gradients_are_the_authors():
    for case in read_oracle("diffusion_ner_loss.pt")["cases"]:
        logits, left, right = (
            case[name].clone().requires_grad_() for name in ("pred_logits", "pred_left", "pred_right")
        )
        of = case["targets"]
        targets = torch.stack([of["gt_left"], of["gt_right"], of["labels"]], dim=1).split(of["sizes"])
        matcher = HungarianMatcher(case["weights"]["match_class"], case["weights"]["match_boundary"])
        pointers = left.logit(eps=1e-7), right.logit(eps=1e-7)  # padding has probability 0
        matches = matcher(logits, *pointers, list(targets))
        for rows, mine, theirs in zip(targets, matches, case["indices"], strict=True):  # copies may be exchanged
            assert torch.equal(mine[0], theirs[0]) and torch.equal(rows[mine[1]], rows[theirs[1]]), case["name"]
        types, boundaries = set_losses(logits, *pointers, case["token_mask"], list(targets), matches)
        loss = case["weights"]["loss_class"] * types + case["weights"]["loss_boundary"] * boundaries
        assert loss.item() == pytest.approx(case["total"].item(), rel=1e-5), case["name"]
        loss.backward()
        for tensor, key in ((logits, "grad_logits"), (left, "grad_left"), (right, "grad_right")):
            assert torch.allclose(tensor.grad, case[key], atol=1e-4), (case["name"], key)


def test_without_scipy_training_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        HungarianMatcher()(
            torch.zeros(1, 1, 2), torch.zeros(1, 1, 1), torch.zeros(1, 1, 1), [torch.tensor([[0, 0, 1]])]
        )
