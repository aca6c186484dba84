"""The pictures of the documentation, `docs/images`: a nested view, and the demo page in Chromium (`make images`)."""

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT), str(ROOT / "tests")]

from chromium import Page  # noqa: E402

import hf_spanner  # noqa: E402
from hf_spanner.data.sample import parse_brackets  # noqa: E402
from hf_spanner.demo.page import Models, build, launch  # noqa: E402

IMAGES = ROOT / "docs" / "images"
NESTED = "[PERSON the head of [ORG the office of [PERSON the mayor of [PLACE New York]]]] met [PERSON Anna Weber of \
[ORG the University of [PLACE Zurich]]]"
TEXT = (
    "Anna Weber of the University of Zurich told the Bank of England in May 2021 that Pfizer tests aspirin in London."
)


def nested() -> None:
    """The view of a sentence that nests four deep, by `render`."""
    text, marked = parse_brackets(NESTED)
    (IMAGES / "nested.svg").write_text(hf_spanner.render(text, marked, "svg", width=360) + "\n", encoding="utf-8")


def demo() -> None:
    """The demo page after it has read a text."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as profile:
        page = build(Models(["default"]), folder)
        _, address, _ = launch(page, None, "127.0.0.1", prevent_thread_lock=True)
        with Page(Path(profile)) as browser:
            browser.size(760, 900)
            browser.open(address)
            browser.wait("!!document.querySelector('#find')", 120)
            browser.type("#text textarea", TEXT)
            time.sleep(1)
            browser.run("document.querySelector('#find').click()")
            browser.wait("!!document.querySelector('#view mark')", 240)
            time.sleep(2)  # the table comes a moment later
            browser.picture(IMAGES / "demo.png")
        page.close()


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    nested()
    demo()
