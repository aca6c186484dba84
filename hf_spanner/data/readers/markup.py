"""XML and the text in it: elements one after another, never a whole corpus in memory, and no entities of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from html.entities import html5
from pathlib import Path
from xml.parsers import expat

from .files import CHUNK, open_bytes

MAX_DEPTH = 100  # of elements inside each other; GENIA's terms reach 10


@dataclass
class Element:
    """An element, the line it begins on, and what it holds: pieces of text and elements, in order."""

    tag: str
    attributes: dict[str, str]
    line: int
    content: list[str | Element] = field(default_factory=list)

    @property
    def children(self) -> list[Element]:
        return [part for part in self.content if isinstance(part, Element)]

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(part if isinstance(part, str) else part.text for part in self.content)

    def find(self, *path: str) -> Element | None:
        """The first child called so, its first child called so, and so on."""
        found: Element | None = self
        for tag in path:
            found = next((child for child in found.children if child.tag == tag), None) if found else None
        return found

    def all(self, *tags: str) -> Iterator[Element]:
        """The elements with these tags at any depth, in the order in which they begin; none inside one of them."""
        for child in self.children:
            if child.tag in tags:
                yield child
            else:
                yield from child.all(*tags)


class _Refused(ValueError):
    """What a handler of the parser says of the file."""


def elements(path: Path, tags: Collection[str]) -> Iterator[Element]:
    """The outermost elements with these tags, each when it is complete. Broken XML is an error with its line."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    stack: list[Element] = []
    done: list[Element] = []
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise _Refused(f"{path}:{parser.CurrentLineNumber}: more than {MAX_DEPTH} elements inside each other.")
        if stack or tag in tags:
            stack.append(Element(tag, attributes, parser.CurrentLineNumber))

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        if stack:
            element = stack.pop()
            (stack[-1].content if stack else done).append(element)

    def text(characters: str) -> None:
        if stack:
            stack[-1].content.append(characters)

    def skipped(name: str, is_parameter: bool) -> None:
        """An entity of a DTD that is not read: a character by its HTML name, or nothing that may be guessed."""
        if not is_parameter:
            if f"{name};" not in html5:
                where = f"{path}:{parser.CurrentLineNumber}"
                raise _Refused(f"{where}: the entity &{name}; is unknown; write the character itself.")
            text(html5[f"{name};"])

    def declared(name: str, *_: object) -> None:
        raise _Refused(f"{path}:{parser.CurrentLineNumber}: declares the entity {name!r}; remove the declaration.")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.SkippedEntityHandler, parser.EntityDeclHandler = skipped, declared
    with open_bytes(path) as file:
        while True:
            chunk = file.read(CHUNK)
            try:
                parser.Parse(chunk, not chunk)
            except _Refused:
                raise
            except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: encodings it cannot read
                where = f"{path}:{getattr(error, 'lineno', 1)}"
                raise ValueError(
                    f"{where}: broken XML ({str(error):.200}); correct it, or convert it to UTF-8."
                ) from error
            yield from done
            done.clear()
            if not chunk:
                return


@dataclass
class Marked:
    """The text of an element, and where in it the elements inside stand."""

    text: str
    places: list[tuple[int, int, Element]]


def marked_text(element: Element) -> Marked:
    """The text of an element without its markup, and the characters `[start, end)` of every element inside it."""
    pieces: list[str] = []
    places: list[tuple[int, int, Element]] = []

    def walk(inner: Element, position: int) -> int:
        for part in inner.content:
            if isinstance(part, str):
                pieces.append(part)
                position += len(part)
            else:
                slot = len(places)
                places.append((position, position, part))
                end = walk(part, position)
                places[slot] = (position, end, part)
                position = end
        return position

    walk(element, 0)
    return Marked("".join(pieces), places)


def blank_lines_at(text: str, tags: re.Pattern[str]) -> str:
    """The text with blank lines in place of its tags, of the same length: offsets stay, and sentences end there."""
    return tags.sub(lambda match: "\n\n" + " " * (len(match[0]) - 2), text)
