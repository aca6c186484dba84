"""For every reader: what a file annotates is kept or counted as lost, and what cannot be read is a sentence."""

import random
import re
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import pytest
from data.mutations import BINARY, FORMATS, count, damage, documents, plain_text
from hypothesis import given, settings
from hypothesis import strategies as st

import hf_spanner
from hf_spanner.data import read_file

OURS = Path(hf_spanner.__file__).parent
# Losses of something else than an entity, for these are no entities that a file holds.
_TEXTS = {f"text without an {ending} file" for ending in (".ann", ".apf.xml", ".rich_ere.xml")}
_TEXTS.add("task without an annotation")
# What an error is about as a whole, so that no line can be named.
_WHOLE_FILES = (
    r"cut short or damaged|damaged or no (?:table|DocBin)|the CAS is damaged|its CAS |there is no TypeSystem"
    r"|Cannot guess|A layer mixes|has no|holds no|found the columns|column '"
)


def read(path, format):
    """(sentences, report), or the sentence that says why not."""
    try:
        return read_file(path, format)
    except (ValueError, OSError) as error:
        raised_by = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
        assert OURS in raised_by.parents, f"{type(error).__name__} comes from {raised_by}: {error}"
        message = str(error)
        assert path.name.split(".")[0] in message and message.rstrip().endswith((".", "?")), message
        assert re.search(rf":[0-9]+|row [0-9]+|{_WHOLE_FILES}", message), f"no line is named: {message}"
        assert len(message) < 1500, message
        return None


def lost(report):
    return sum(number for reason, number in report.lost.items() if reason not in _TEXTS)


def uncounted(format, path, sentences, report):
    """How many annotations of the file were neither kept nor counted as lost."""
    if format == "conll" or (format == "csv" and "word" in plain_text(path).lstrip().partition("\n")[0]):
        kept = sum(entity["end"] - entity["start"] for sentence in sentences for entity in sentence["entities"])
        if "duplicate" in report.lost:  # counted as one, however many words it has
            return 0
    else:
        kept = report.entities
    # A word that begins with # and whose tags are all broken is a comment; a column whose tags are, no column of tags.
    columns = sum(number for reason, number in report.ignored.items() if reason.startswith("column"))
    comments = report.ignored["comment line"] + report.lost["tag in a comment line"]
    aside = 2 * comments + columns * report.words
    return count(format, path) - kept - lost(report) - aside


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FORMATS)), st.randoms(use_true_random=False), st.booleans())
def test_every_entity_of_a_whole_file_is_kept_or_counted(format, draw, guess):
    docs = documents(draw)
    with tempfile.TemporaryDirectory() as folder:
        path = FORMATS[format](docs, Path(folder), draw)
        sentences, report = read_file(path, None if guess else format)
        assert report.entities + lost(report) == sum(len(doc["spans"]) for doc in docs) + _further(report)
        assert set(report.lost) <= {"duplicate", "mention of a further annotation of the same task"}
        assert report.sentences == len(sentences) == len(docs)


def _further(report):
    return report.lost["mention of a further annotation of the same task"]


def check_damaged(format, seed):
    """How one damaged file was read: "read", "refused", or what is wrong with the reader."""
    draw = random.Random(f"{format} {seed}")
    with tempfile.TemporaryDirectory() as folder:
        path = FORMATS[format](documents(draw), Path(folder), draw)
        how = damage(path, draw)
        result = read(path, draw.choice([None, format]))
        if result is None:
            return "refused"
        missing = uncounted(format, path, *result)
        assert missing <= 0, f"{how}: {missing} annotations of {path} are gone\n{result[1]}"
        return "read"


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_damaged_file_is_read_with_every_loss_counted_or_refused_with_a_sentence(format):
    outcomes = Counter(check_damaged(format, seed) for seed in range(15 if format in BINARY else 60))
    assert set(outcomes) == {"read", "refused"}


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(FORMATS.keys() - BINARY)), st.integers(0, 1 << 32))
def test_no_damage_that_anybody_thinks_of_makes_a_loss_or_a_raw_error(format, seed):
    assert check_damaged(format, seed) in ("read", "refused")


@pytest.mark.slow
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_thousand_damaged_files(format):
    faults = []
    for seed in range(1000):
        try:
            check_damaged(format, seed)
        except Exception as error:
            faults.append(f"{seed}: {type(error).__name__}: {error}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - {"arrow"}))  # pyarrow cannot open such a path
def test_no_entity_is_lost_for_what_its_folder_is_called(tmp_path, format):
    draw, folder = random.Random(5), tmp_path / "my corpus: 1\t|t|(x)"
    folder.mkdir()
    docs = documents(draw)
    _, report = read_file(FORMATS[format](docs, folder, draw), format)
    assert report.entities + report.lost["duplicate"] == sum(len(doc["spans"]) for doc in docs) > 0
    assert set(report.lost) <= {"duplicate", "mention of a further annotation of the same task"}
