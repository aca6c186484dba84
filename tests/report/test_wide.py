"""Reports of many labels and many systems: they fit their page, and no legend has a colour twice."""

import re

import pytest
from chromium import Page, find_chromium

from hf_spanner.evaluation import compare, list_mentions, summarise
from hf_spanner.report import comparison_page, report_page
from hf_spanner.report.svg import key

LABELS = [f"label-{chr(97 + i)}" for i in range(20)]


def data():
    """Twenty labels, each sometimes taken for its neighbour."""
    sentences, found = [], []
    for i, label in enumerate(LABELS):
        for turn in range(4):
            entity = {"start": 0, "end": 2, "label": label}
            sentences.append({"id": f"{label} {turn}", "tokens": ["New", "York", "today"], "entities": [entity]})
            found.append([(0, 2, label if turn else LABELS[(i + 1) % 20], 0.9)])
    return sentences, found


def wide_report():
    sentences, found = data()
    summary = summarise(found, sentences, resamples=20)
    keys = ("norm", "within", "between", "to_negatives", "weight_norm", "weight_cosine", "weight_cosine_between")
    points = [[float(i % 7), float(i % 5)] for i in range(80)]
    pca = {"points": points, "labels": [LABELS[i // 4] for i in range(80)], "shares": [0.7, 0.2]}
    cosines = {name: {"cosine": 0.5, "pairs": 3} for name in ("none", "weak", "strong")}
    figures = {**dict.fromkeys(keys, 1.25), "weight_cosine_to_none": None, "overlap": cosines, "pca": pca}
    summary["representations"] = {**figures, "entities": 80, "out_of_reach": 0}
    return report_page("Twenty labels", list_mentions(found, [s["entities"] for s in sentences]), sentences, summary)


def wide_comparison(number=8):
    sentences, found = data()
    gold = [s["entities"] for s in sentences]
    systems = {f"system {i}": [f if j % (i + 2) else [] for j, f in enumerate(found)] for i in range(number)}
    result = compare(systems, sentences, resamples=20)
    mentions = {name: list_mentions(f, gold) for name, f in systems.items()}
    return comparison_page("Eight systems", mentions, sentences, result)


def test_legends_do_not_repeat_a_look():
    looks = {re.sub("<title>.*?</title>", "", str(key(label, LABELS))) for label in LABELS}
    assert len(looks) == len(LABELS)
    legend = re.findall(r'<span class="key"><i class="swatch ([^"]*)"', wide_comparison())
    assert len(legend) == len(set(legend)) == 8


@pytest.mark.skipif(find_chromium() is None, reason="chromium is not installed (apt-get install chromium)")
def test_twenty_labels_fit_on_screens_and_phones_and_can_be_reached_by_keyboard(tmp_path):
    files = {"report": wide_report(), "comparison": wide_comparison()}
    with Page(tmp_path / "profile") as page:
        for name, html in files.items():
            file = tmp_path / f"{name}.html"
            file.write_text(html, encoding="utf-8")
            page.open(file)
            for width in (1280, 390):
                page.size(width, 900)
                assert page.run("document.documentElement.scrollWidth") <= width, (name, width)
                small = (
                    "[...document.querySelectorAll('svg:not(.wide)')].filter((s) => s.clientWidth > innerWidth).length"
                )
                assert page.run(small) == 0
                fonts = (
                    "Math.min(...[...document.querySelectorAll('main svg text')].map((t) => "
                    "parseFloat(getComputedStyle(t).fontSize) * (t.ownerSVGElement.getScreenCTM()?.a ?? 1)))"
                )
                assert page.run(fonts) >= 8.5, (name, width)
            if name == "report":
                page.size(1280, 900)
                box = page.run("[(t = document.querySelector('.confusion')).offsetWidth, t.parentElement.clientWidth]")
                assert box[0] <= box[1]  # all columns at once
        loose = "[...document.querySelectorAll('.scroll')].filter((s) => s.tabIndex !== 0).length"
        assert page.run(loose) == 0 and page.complaints == []
        assert page.run("[...document.querySelectorAll('svg[role=img]')].every((s) => s.querySelector('title'))")
