"""What mkdocs makes of the project itself: the help of every command, and what was measured, from `model_cards/`.

Formulas become MathML, which browsers show by themselves: nothing is fetched.
"""

import contextlib
import io
import os
import re
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("template.md", "default_limits.md")  # of other pages
os.environ["COLUMNS"] = "100"  # of a command's help


def on_files(files: Files, config) -> Files:
    """Pages that are not written by hand."""
    files.append(File.generated(config, "reference/commands.md", content=commands()))
    for source in sorted((ROOT / "model_cards").rglob("*")):
        if source.suffix in (".md", ".svg", ".png", ".json", ".jsonl", ".txt", ".yaml") and source.name not in PARTS:
            name = f"measured/{source.relative_to(ROOT / 'model_cards')}"
            files.append(File.generated(config, name, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page, **_) -> str:
    """`$x$` in a line and `$$x$$` by itself, on the pages that explain."""
    if not page.file.src_uri.startswith("explanation/"):
        return markdown
    markdown = re.sub(r"\$\$(.+?)\$\$", lambda m: convert(m[1], display="block"), markdown, flags=re.DOTALL)
    return re.sub(r"\$(.+?)\$", lambda m: convert(m[1]), markdown)


def commands() -> str:
    """Every command's help, as a terminal shows it."""
    from hf_spanner.cli import COMMANDS
    from hf_spanner.cli import main as run

    parts = ["# Commands\n\n`hf-spanner COMMAND ...`: what `--help` says of each."]
    for command in COMMANDS:
        said = f"{command.help[:1].upper()}{command.help[1:]}.\n\n```text\n{help_of(run, command.name)}\n```"
        parts.append(f"## {command.name}\n\n{said}")
    return "\n\n".join(parts) + "\n"


def help_of(run, name: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        run([name, "--help"])
    return said.getvalue().strip()
