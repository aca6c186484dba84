"""Text from files, models and data as it may be shown: what a terminal or a page would obey becomes an escape."""

import re

# Control characters (escape among them), line separators, lone surrogates, and what turns the direction of a text.
OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: object, keep: str = "") -> str:
    r"""The text with `\x1b` for the escape character, and so on; characters in `keep`, such as "\n", stay.

    >>> print(harmless("\x1b[31mPER"))
    \x1b[31mPER
    """
    return OBEYED.sub(lambda match: match[0] if match[0] in keep else ascii(match[0])[1:-1], str(text))
