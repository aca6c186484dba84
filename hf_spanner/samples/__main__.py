"""`python -m hf_spanner.samples`: make `nested.jsonl` from `nested.txt`."""

from ..data import statistics, write_jsonl
from . import SAMPLE, read_brackets

sentences = read_brackets()
write_jsonl(sentences, SAMPLE)
print(f"{SAMPLE}\n{statistics(sentences)}")
