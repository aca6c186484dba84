"""The report as a page: well formed, self-contained, escaped, and in Chromium legible and filterable."""

import json

import pytest
from chromium import Page, find_chromium
from tests_support import Checker, records

from hf_spanner.evaluation import compare, list_errors, list_mentions, summarise
from hf_spanner.report import comparison_markdown, comparison_page, report_markdown, report_page

EVIL = "<script>alert(1)</script>"


def data():
    """Sentences nested four deep with every kind of error, a crossing entity, and words and labels that are markup."""
    sentences = records()
    sentences.append(
        {
            "id": f"evil {EVIL}",
            "tokens": [EVIL, "&amp;", '"quoted"', "a' onclick='x", "the", "Bank", "of", "England", "today", "</span>"],
            "entities": [
                {"start": 0, "end": 3, "label": "PER"},
                {"start": 2, "end": 8, "label": "ORG"},
                {"start": 7, "end": 8, "label": "place name"},
            ],
        }
    )
    found = [[(e["start"], e["end"], e["label"], 0.9) for e in s["entities"]] for s in sentences]
    found[0][1] = (3, 5, "PER", 0.6)  # wrong type
    found[2] = []  # missed
    found[3] = [(0, 1, "PER", 0.4)]  # spurious
    found[4][1] = (2, 11, "ORG", 0.7)  # wrong boundary, in the sentence that nests four deep
    found[5].append((8, 10, '<b class="x">', 0.3))
    return sentences, found


def make_page(title=f"A report {EVIL}"):
    sentences, found = data()
    mentions = list_mentions(found, [s["entities"] for s in sentences])
    summary = summarise(found, sentences, train=sentences, resamples=200)
    return report_page(title, mentions, sentences, summary), summary, mentions


def make_comparison():
    sentences, found = data()
    systems = {"gold": [s["entities"] for s in sentences], EVIL: found, "nothing": [[] for _ in sentences]}
    result = compare(systems, sentences, train=sentences, resamples=200)
    mentions = {name: list_mentions(f, [s["entities"] for s in sentences]) for name, f in systems.items()}
    return comparison_page("A comparison", mentions, sentences, result), result


@pytest.mark.parametrize("page", [make_page()[0], make_comparison()[0]], ids=["report", "comparison"])
def test_the_page_is_well_formed_self_contained_and_escaped(page):
    checked = Checker(page)
    assert all(address.startswith("#") or address == "data:," for address in checked.addresses)
    assert "url(" not in page and "@import" not in page and "default-src 'none'" in page
    assert checked.tags.count("script") == 1 and EVIL not in page and EVIL in "".join(checked.text)
    assert {"svg", "table", "article"} <= set(checked.tags)


def test_the_page_says_what_the_summary_says():
    page, summary, mentions = make_page()
    text = " ".join("".join(Checker(page).text).split())
    assert f"{100 * summary['scores']['f1']:.1f}" in text
    assert f"BE-Rate {100 * summary['errors']['boundary_error_rate']:.1f} %" in text
    assert page.count("<li data-kind=") == len(list_errors(mentions))
    assert "Predicted labels that these sentences do not have" in text


def test_markdown_has_a_row_for_every_type_and_group():
    _, summary, _ = make_page()
    markdown = report_markdown("A | report", summary)
    for label, row in summary["scores"]["per_type"].items():
        assert f"| {label} | {100 * row['precision']:.1f} |" in markdown
    assert "## Place in nested structures" in markdown and "| eCon |" in markdown and "BE-Rate" in markdown
    _, result = make_comparison()
    markdown = comparison_markdown("A comparison", result)
    assert "Table 6 of Ji et al., 2022" in markdown and "Table 7 of Ji et al., 2022" in markdown
    assert "| nothing |" in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_representations_are_shown_where_there_are_some():
    sentences, found = data()
    summary = summarise(found, sentences, resamples=100)
    cosines = {name: {"cosine": 0.5, "pairs": 3} for name in ("none", "weak", "strong")}
    keys = ("norm", "within", "between", "to_negatives", "weight_norm", "weight_cosine", "weight_cosine_between")
    pca = {"points": [[0.0, 1.0], [2.0, 3.0]], "labels": ["PER", "ORG"], "shares": [0.7, 0.2]}
    figures = {**dict.fromkeys(keys, 1.25), "weight_cosine_to_none": None, "overlap": cosines, "pca": pca}
    summary["representations"] = {**figures, "entities": 2, "out_of_reach": 1}
    mentions = list_mentions(found, [s["entities"] for s in sentences])
    page = report_page("r", mentions, sentences, summary)
    assert page.count('class="dot') == 4 and "70 % and 20 %" in page and "1 entities are longer" in page
    assert "| l2 norm of z | 1.25 |" in report_markdown("r", summary)


@pytest.mark.parametrize("found", [[], [(0, 1, "A", 0.5)], [(0, 1, "A")]], ids=["nothing", "right", "no scores"])
def test_a_single_type_and_empty_predictions_make_a_page(found):
    sentences = [{"id": "1", "tokens": ["a"], "entities": [{"start": 0, "end": 1, "label": "A"}]}]
    mentions = list_mentions([found], [s["entities"] for s in sentences])
    page = report_page("t", mentions, sentences, summarise([found], sentences, resamples=10))
    Checker(page)
    assert ("There is none." in page) == bool(found)


# ------------------------------------------------------------------------------------------------------- in a browser

in_browser = pytest.mark.skipif(find_chromium() is None, reason="chromium is not installed (apt-get install chromium)")


@in_browser
def test_the_report_in_chromium(tmp_path):
    """Nothing is fetched, the filters filter, and four entities inside each other can be told apart."""
    file = tmp_path / "report.html"
    html, _, mentions = make_page()
    file.write_text(html, encoding="utf-8")
    errors = list_errors(mentions)
    with Page(tmp_path / "profile") as page:
        page.open(file)

        def shown():
            script = "[...document.querySelectorAll('article:not([hidden]) li:not([hidden])')]"
            return [tuple(pair) for pair in page.run(f"{script}.map((li) => [li.dataset.kind, li.dataset.type])")]

        def click(kind):
            page.run(f"document.querySelector('.filters button[value={kind}]').click()")

        def count():
            return page.run("document.querySelector('output').value")

        assert len(shown()) == len(errors) and count() == f"{len(errors)} in 5 sentences"
        click("type")
        assert shown() == [(e.kind, e.mention.label) for e in errors if e.kind == "type"] != []
        page.run("s = document.querySelector('select'); s.value = 'PER'; s.dispatchEvent(new Event('change'))")
        assert shown() == [("type", "PER")] and count() == "1 in 1 sentences"
        click("type")
        assert shown() == [(e.kind, "PER") for e in errors if e.mention.label == "PER"]
        page.run("s.value = ''; s.dispatchEvent(new Event('change'))")
        page.run("i = document.querySelector('input'); i.value = 'OFFICE of'; i.dispatchEvent(new Event('input'))")
        assert count() == "2 in 1 sentences"
        page.run("i.value = ''; i.dispatchEvent(new Event('input'))")

        legible(page)
        assert all(url.startswith(("file:", "about:")) for url in page.requests) and page.requests
        assert page.complaints == []
        page.picture(tmp_path / "report.png")
        assert (tmp_path / "report.png").stat().st_size > 20_000


def legible(page):
    """Bars of the sentence that nests four deep: in four lanes above the words, each with its label."""
    page.run("node = [...document.querySelectorAll('article')].find((a) => a.firstChild.textContent === 's4')")
    marks = page.run(
        """(() => {
        node.scrollIntoView();
        return [...node.querySelectorAll('mark.up')].map((m) => {
            const label = getComputedStyle(m, '::before'), box = m.getClientRects()[0];
            return {name: m.dataset.label, top: box.top, left: box.left, size: parseFloat(label.fontSize),
                    ink: label.color, lane: parseInt(m.style.getPropertyValue('--n')), text: m.textContent};
        });
        })()"""
    )
    names = [mark["name"] for mark in marks]
    assert len(names) == 5 and {"PER", "○ ORG", "place name"} <= set(names)
    tops = sorted({round(mark["top"]) for mark in marks})
    assert len(tops) == 4 and min(b - a for a, b in zip(tops, tops[1:])) >= 12  # four lanes, apart
    assert min(mark["size"] for mark in marks) >= 10
    lane = {mark["name"]: mark["lane"] for mark in marks}
    assert lane["place name"] < lane["○ ORG"]  # the inner one is nearer to the words
    assert page.run("getComputedStyle(node.querySelector('mark.out'), '::before').color") == "rgb(252, 252, 250)"


@in_browser
def test_the_comparison_in_chromium_in_the_dark(tmp_path):
    file = tmp_path / "comparison.html"
    html, result = make_comparison()
    file.write_text(html, encoding="utf-8")
    with Page(tmp_path / "profile", dark=True) as page:
        page.open(file)
        assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
        alone = sum(len(entities) for entities in result["only"].values())
        script = "document.querySelectorAll('article:not([hidden]) li:not([hidden])').length"
        assert page.run(script) == alone > 0
        assert page.complaints == [] and all(url.startswith(("file:", "about:")) for url in page.requests)


def test_the_figures_can_be_written_as_json():
    assert json.loads(json.dumps(make_comparison()[1]))
