"""The page, in Gradio. Nothing leaves the machine: no analytics, no fonts or scripts of others.

(Gradio looks at the annotations of the functions that it calls, so that they are not put off here.)
"""

import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..harmless import harmless
from ..loading import load_config, pipeline
from ..modeling.decoding import OVERLAPS
from ..modeling.pipeline_nested_ner import NestedNerPipeline
from .files import write_brat, write_json
from .finding import LEAST, Found, choose, read
from .views import HEAD, WIDTHS, page_bounds, rows, views

if TYPE_CHECKING:
    import gradio

NOTHING = "no other"
EXAMPLES = (
    "Anna Weber of the University of Zurich told the Bank of England in May 2021 that Pfizer tests aspirin in London.",
    "The head of the office of the mayor of New York met the chief economist of the Bank of England.",
    "CD28 signals activate the IL-2 promoter and the NF-kappa B site in Jurkat T cells.",
)
CSS = """
.gradio-container { width: 100%; max-width: min(72rem, 100vw) !important; margin: 0 auto !important; }
.gradio-container .main, .gradio-container .wrap, .gradio-container .contain, .gradio-container .column,
  .gradio-container .block { min-width: 0; max-width: 100%; }
.views p.said { margin: .2rem 0 .4rem; font-weight: 600; overflow-wrap: anywhere; }
footer { display: none !important; }
"""


class Models:
    """The models that can be chosen, each loaded when it is first asked for, and run one text at a time."""

    def __init__(self, names: Sequence[str], **loading: Any):
        self.names, self.loading = list(dict.fromkeys(names)), loading
        self.configs = {name: load_config(name) for name in self.names}  # a wrong name is noticed at once
        self.loaded: dict[str, NestedNerPipeline] = {}
        self.lock = threading.Lock()

    def labels(self, names: Sequence[str]) -> list[str]:
        """The labels of all these models."""
        return list(dict.fromkeys(label for name in names for label in self.configs[name].types))

    def mentions(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """The kinds of mention that these models tell apart, and those that they show."""
        configs = [self.configs[name] for name in names]
        kinds, shown = (
            list(dict.fromkeys(kind for config in configs for kind in getattr(config, field) or ()))
            for field in ("mentions", "shown_mentions")
        )
        return kinds, shown or kinds

    def read(self, name: str, text: str, progress: Any = None) -> Found:
        with self.lock:
            if name not in self.loaded:
                self.loaded[name] = pipeline(name, **self.loading)
            return read(self.loaded[name], text, progress)


def build(models: Models, folder: str | os.PathLike) -> "gradio.Blocks":
    """The page; what can be downloaded is written to `folder`."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
    import gradio as gr

    first = models.names[0]
    labels, (kinds, shown) = models.labels([first]), models.mentions([first])

    def chosen(model: str, other: str) -> list[str]:
        return list(dict.fromkeys(name for name in (model, other) if name in models.names))

    def options(model: str, other: str) -> list[Any]:
        """The labels and kinds to tick, after another model was chosen."""
        names = chosen(model, other)
        labels, (kinds, shown) = models.labels(names), models.mentions(names)
        return [
            gr.CheckboxGroup(choices=labels, value=labels),
            gr.CheckboxGroup(choices=kinds, value=shown, visible=bool(kinds)),
        ]

    def find(text: str, model: str, other: str, progress: Any = gr.Progress()) -> dict[str, Found]:  # noqa: B008
        """Read the text with each model: the only place where one is run."""
        found = {}
        for name in chosen(model, other):
            progress(0, desc=f"Preparing {name} and the text")

            def tell(done: int, windows: int, name: str = name) -> None:
                progress((done, windows), desc=f"Reading with {name}", unit="windows")

            found[name] = models.read(name, text or "", tell)
        return found

    def show(
        found: Mapping[str, Found],
        own: bool,
        threshold: float,
        labels: list[str],
        mentions: list[str],
        overlap: str,
        page: float,
        request: gr.Request,
    ) -> list[Any]:
        """What is chosen of what was found."""
        if not found:
            return [gr.skip()] * 6
        text = next(iter(found.values())).text.text
        entities = {
            name: choose(each, None if own else threshold, labels, mentions, overlap) for name, each in found.items()
        }
        bounds = page_bounds(text)
        number = min(max(int(page or 1), 1), len(bounds))
        first, last = bounds[number - 1]
        note = (
            f"The text has {len(text):,} characters: characters {first + 1:,} to {last:,} are shown here and in the "
            "table. The downloads have all."
        )
        place = Path(folder) / harmless(request.session_hash or "page", keep="").replace(os.sep, "")
        place.mkdir(exist_ok=True)
        head = [*HEAD, "found by"] if len(entities) > 1 else HEAD
        return [
            str(views(text, entities, models.labels(list(found)), (first, last))),
            gr.Slider(maximum=max(len(bounds), 2), value=number, visible=len(bounds) > 1),
            gr.Markdown(note, visible=len(bounds) > 1),
            gr.Dataframe(rows(entities, (first, last)), headers=head),
            gr.DownloadButton(value=str(write_json(place / "entities.jsonl", text, entities)), interactive=True),
            gr.DownloadButton(value=str(write_brat(place / "brat.zip", text, entities)), interactive=True),
        ]

    with gr.Blocks(title="Nested entities", analytics_enabled=False, delete_cache=(3600, 3600)) as page:
        gr.Markdown(
            "# Nested entities\nNames inside names, found in any text. It is read on the machine that runs this page."
        )
        state = gr.State({}, time_to_live=3600)
        text = gr.Textbox(label="Text", lines=5, max_lines=12, placeholder="Type or paste a text.", elem_id="text")
        gr.Examples([[example] for example in EXAMPLES], inputs=[text], label="Examples")
        with gr.Row():
            model = gr.Dropdown(models.names, value=first, label="Model", elem_id="model")
            other = gr.Dropdown([NOTHING, *models.names], value=NOTHING, label="Compare with", elem_id="other")
            button = gr.Button("Find entities", variant="primary", elem_id="find")
        with gr.Accordion("What to show", open=True):
            with gr.Row():
                own = gr.Checkbox(True, label="The model's own thresholds", elem_id="own")
                threshold = gr.Slider(LEAST, 1, value=0.5, step=0.01, label="Least score", elem_id="threshold")
                overlap = gr.Radio(
                    list(OVERLAPS), value=models.configs[first].overlap, label="Overlaps", elem_id="overlap"
                )
            label_boxes = gr.CheckboxGroup(labels, value=labels, label="Labels", elem_id="labels")
            kind_boxes = gr.CheckboxGroup(
                kinds, value=shown, label="Kinds of mention", visible=bool(kinds), elem_id="mentions"
            )
        note = gr.Markdown(visible=False, elem_id="note")
        part = gr.Slider(1, 2, value=1, step=1, label="Part of the text", visible=False, elem_id="part")
        view = gr.HTML(elem_id="view", apply_default_css=False)
        with gr.Row():
            as_json = gr.DownloadButton("Download JSON", interactive=False, elem_id="json")
            as_brat = gr.DownloadButton("Download brat", interactive=False, elem_id="brat")
        table = gr.Dataframe(
            headers=HEAD, datatype="str", interactive=False, label="Entities", wrap=True, elem_id="table",
            column_widths=WIDTHS,
        )  # fmt: skip

        controls = [state, own, threshold, label_boxes, kind_boxes, overlap, part]
        shown_in = [view, part, note, table, as_json, as_brat]
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        gr.on(
            [button.click, text.submit], find, [text, model, other], state, show_progress_on=[view],
            concurrency_limit=1, api_visibility="private",
        ).success(lambda: 1, None, part, **quiet).success(show, controls, shown_in, **quiet)  # fmt: skip
        for dropdown in (model, other):
            dropdown.input(options, [model, other], [label_boxes, kind_boxes], **quiet)
        threshold.input(lambda: False, None, own, trigger_mode="always_last", **quiet).then(
            show, controls, shown_in, **quiet
        )
        for control in (own, label_boxes, kind_boxes, overlap):
            control.input(show, controls, shown_in, **quiet)
        part.input(show, controls, shown_in, trigger_mode="always_last", **quiet)
    return page


def serve(names: Sequence[str], port: int | None = None, host: str = "127.0.0.1", **loading: Any) -> None:
    """Serve the page until it is stopped; what it wrote is deleted then."""
    with tempfile.TemporaryDirectory(prefix="hf-spanner-demo-") as folder:
        os.environ["GRADIO_TEMP_DIR"] = folder
        page = build(Models(names, **loading), folder)
        launch(page, port, host)


def launch(page: "gradio.Blocks", port: int | None, host: str, **more: Any) -> Any:
    """Start the server, with what belongs to the page's looks and to its silence."""
    import gradio as gr

    fonts: dict[str, Any] = {"font": ["system-ui", "sans-serif"], "font_mono": ["ui-monospace", "monospace"]}
    return page.launch(
        server_name=host, server_port=port, share=False, ssr_mode=False, theme=gr.themes.Default(**fonts), css=CSS,
        footer_links=[], show_error=True, quiet=True, **more,
    )  # fmt: skip
