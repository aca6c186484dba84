"""How wide characters are: in columns of a terminal, and in thousandths of an em of Helvetica and what is like it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

TAB = 4
ZERO_WIDTH_JOINER, EMOJI_STYLE = "\u200d", "\ufe0f"
Measure = Callable[[str, str], int]  # (a character, the one before it) → its width

# Helvetica's (and Arial's, and Liberation Sans's) printable ASCII characters, from the space on.
_HELVETICA = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 "
    "584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 "
    "667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 "
    "278 556 500 722 500 500 500 334 260 334 584"
)
HELVETICA = {chr(32 + index): int(width) for index, width in enumerate(_HELVETICA.split())}
OTHERS = (("\u0590", "\u05ff", 560), ("\u0600", "\u08ff", 440), ("\u2190", "\u2bff", 900), ("\ufffd", "\ufffd", 950))


def char_width(character: str, previous: str = "") -> int:
    """Columns that a character takes after another one: 0 for marks that join it, 2 for wide ones, else 1."""
    if not character:
        return 0
    if character == EMOJI_STYLE:  # the character before it becomes a wide emoji
        return 1 if previous and char_width(previous) == 1 else 0
    if previous == ZERO_WIDTH_JOINER or "\U0001f3fb" <= character <= "\U0001f3ff" and char_width(previous) == 2:
        return 0  # the rest of an emoji family, or a skin tone
    if unicodedata.category(character) in ("Mn", "Me", "Cf") and character != "\u00ad":
        return 0
    if "\u1160" <= character <= "\u11ff":  # the vowels and final consonants of Hangul syllables
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def text_width(text: str) -> int:
    """Columns that a text takes."""
    return sum(char_width(character, text[i - 1 : i]) for i, character in enumerate(text))


def print_width(character: str, previous: str = "") -> int:
    """Thousandths of an em that a character takes in print."""
    columns = char_width(character, previous)
    if columns != 1:
        return 500 * columns
    plain = unicodedata.normalize("NFD", character)[0]  # é is as wide as e
    if plain in HELVETICA:
        return HELVETICA[plain]
    return next((width for first, last, width in OTHERS if first <= plain <= last), 600)


def printed_width(text: str) -> int:
    """Thousandths of an em that a text takes in print."""
    return sum(print_width(character, text[i - 1 : i]) for i, character in enumerate(text))
