"""`python -m hf_spanner.data.sample`: make `nested.jsonl` from `nested.txt`."""

from .. import statistics, write_jsonl
from . import SAMPLE, read_brackets

sentences = read_brackets()
write_jsonl(sentences, SAMPLE)
print(f"{SAMPLE}\n{statistics(sentences)}")
