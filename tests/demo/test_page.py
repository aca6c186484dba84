"""The page in Chromium: finds, filters without running the model, compares, and speaks to this machine alone."""

import json
import shutil
import time
import zipfile
from urllib.parse import urlsplit

import pytest
from chromium import Page, find_chromium

from hf_spanner.default import FOLDER
from hf_spanner.demo.page import Models, build, launch

pytest.importorskip("gradio", reason="gradio is not installed (pip install hf_spanner[demo])")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="chromium is not installed (apt-get install chromium)"),
]

TEXT = "Anna Weber of the University of Zurich told the Bank of England in London that Pfizer tests aspirin."
EVIL = "<script>document.title='evil'</script><img src=x onerror=alert(1)> ${alert(1)} {{this}} \u202ezyx "
SHOWN = "[...document.querySelectorAll('#view mark[data-label]')].map((m) => m.dataset.label)"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The page of the default model and of one that is more careful; the calls of each model are counted."""
    careful = tmp_path_factory.mktemp("models") / "careful"
    shutil.copytree(FOLDER, careful)
    config = json.loads((careful / "config.json").read_text())
    (careful / "config.json").write_text(json.dumps({**config, "threshold": 0.95}))
    models, calls = Models(["default", str(careful)]), []
    load = models.read

    def counted(name, *args):
        calls.append(name)
        return load(name, *args)

    models.read = counted
    folder = tmp_path_factory.mktemp("downloads")
    page = build(models, folder)
    _, address, _ = launch(page, None, "127.0.0.1", prevent_thread_lock=True)
    yield address, calls, folder
    page.close()


@pytest.fixture
def browser(site, tmp_path):
    with Page(tmp_path / "profile") as page:
        page.open(site[0])
        page.wait("!!document.querySelector('#find')", 120)
        yield page
        assert page.run("document.title") == "Nested entities"
        asked = {urlsplit(url).hostname for url in page.requests if url.startswith(("http", "ws"))}
        assert asked == {"127.0.0.1"}


def find(page, text):
    page.type("#text textarea", text)
    time.sleep(1)  # Gradio sends what was typed after a moment
    page.run("document.querySelector('#find').click()")


def shows(page, text, seconds=120):
    page.wait(f"document.querySelector('#view').innerText.includes({json.dumps(text)})", seconds)


def test_it_finds_and_filters_without_running_the_model_again(site, browser):
    _, calls, folder = site
    find(browser, TEXT)
    shows(browser, "Anna Weber")
    labels = browser.run(SHOWN)
    assert "place" in labels and "organization" in labels and len(calls) == 1
    boxes = "[...document.querySelectorAll('#labels label')].filter((l) => l.innerText.trim() === 'place')[0]"
    browser.run(f"{boxes}.querySelector('input').click()")
    browser.wait(f"!{SHOWN}.includes('place')")
    assert "organization" in browser.run(SHOWN)
    browser.type("#threshold input[type=range]", "1")
    browser.wait(f"{SHOWN}.length === 0")
    assert not browser.run("document.querySelector('#own input').checked") and len(calls) == 1
    rows = [json.loads(line) for line in next(folder.rglob("*.jsonl")).read_text().splitlines()]
    assert rows == [{"model": "default", "text": TEXT, "entities": []}]


def test_hostile_text_is_shown_and_never_run(browser):
    find(browser, EVIL + TEXT)
    shows(browser, "<script>")
    assert browser.run("document.querySelectorAll('#view script, #view img').length") == 0
    assert "{{this}}" in browser.run("document.querySelector('#view').innerText")
    assert "\u202e" not in browser.run("document.querySelector('#view').innerText")


def choose(page, box, option):
    """Choose an option of a dropdown."""
    page.run(f"document.querySelector('#{box} input').focus()")
    found = f"[...document.querySelectorAll('#{box} [role=option], ul[role=listbox] [role=option]')]"
    page.wait(f"{found}.length > 0")
    page.run(
        f"{found}.filter((o) => o.innerText.includes({json.dumps(option)}))[0]"
        ".dispatchEvent(new MouseEvent('mousedown', {bubbles: true}))"
    )


def test_two_models_are_shown_side_by_side_with_their_differences(browser):
    choose(browser, "other", "careful")
    find(browser, TEXT)
    shows(browser, "careful:")
    assert browser.run("document.querySelectorAll('.views section').length") == 2
    assert browser.run("document.querySelectorAll('.views section')[0].querySelectorAll('mark.out').length") > 0
    assert browser.run("document.querySelectorAll('.views section')[1].querySelectorAll('mark.out').length") == 0


def test_a_megabyte_is_shown_in_parts_and_downloaded_whole(site, browser):
    """Mostly white space and markup, so that reading it does not take minutes."""
    folder = site[2]
    text = EVIL + TEXT + "\n" + ("<b>" + " " * 900 + "\n") * 1150 + TEXT
    assert len(text) > 1_000_000
    find(browser, text)
    shows(browser, "<script>", 600)
    assert "are shown here" in browser.wait("document.querySelector('#note')?.innerText")
    assert browser.run("document.querySelector('#view').innerText.length") < 6000
    assert browser.run("document.querySelectorAll('*').length") < 5000  # the page itself stays small
    row = json.loads(max(folder.rglob("*.jsonl"), key=lambda f: f.stat().st_mtime).read_text())
    assert row["text"] == text and row["entities"][-1]["end"] > len(text) - len(TEXT)
    with zipfile.ZipFile(max(folder.rglob("*.zip"), key=lambda f: f.stat().st_mtime)) as archive:
        assert archive.namelist() == ["text.txt", "text.ann"] and archive.read("text.txt").decode() == text
