"""Nested entities to look at: one layout, drawn as HTML, as SVG and for terminals.

`layout.py` puts text and entities into lines and lanes; `html.py`, `svg.py` and `ansi.py` draw what it says, in the
colours of `colours.py`. The report, the terminal's view, notebooks and the demo page all come here.
"""

from .drawing import FORMATS, render
from .notebook import View, show

__all__ = ["FORMATS", "View", "render", "show"]
