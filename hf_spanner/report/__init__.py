"""Results for people: one self-contained HTML page, and Markdown for a card.

```python
>>> from hf_spanner.report import comparison_page, report_page
>>> Path("report.html").write_text(report_page("my model on my data", mentions, sentences, summary))
```
"""

from .markdown import comparison_markdown, report_markdown
from .page import comparison_page, report_page

__all__ = ["comparison_markdown", "comparison_page", "report_markdown", "report_page"]
