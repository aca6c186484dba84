"""Results for people: one self-contained HTML page, and Markdown for a card.

```python
>>> from hf_spanner.report import comparison_page, report_page
>>> Path("report.html").write_text(report_page("my model on my data", mentions, sentences, summary))
```
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["comparison_markdown", "comparison_page", "report_markdown", "report_page"]

if TYPE_CHECKING:
    from .markdown import comparison_markdown, report_markdown
    from .page import comparison_page, report_page
else:

    def __getattr__(name: str):  # Markdown needs none of what a page is made of
        if name in __all__:
            return getattr(import_module(".markdown" if name.endswith("markdown") else ".page", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
