"""However many texts there are, bulk prediction takes the memory of a few."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = """
import sys
from hf_spanner.bulk.reading import Reading
from hf_spanner.bulk.running import predict_bulk
from hf_spanner.bulk.sources import open_source
predict_bulk(open_source(sys.argv[1]), sys.argv[2], Reading(sys.argv[3]), part=int(sys.argv[4]))
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


def peak(source, output, model, part):
    """KiB that a process had at most."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, source, output, model, str(part)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say how much memory there was")
def test_a_hundred_thousand_texts_take_the_memory_of_ten_thousand(tiny, texts, tmp_path):
    peaks = {}
    for number in (10_000, 100_000):
        source, output = tmp_path / f"{number}.jsonl", tmp_path / f"{number}.out.jsonl"
        with source.open("w") as file:
            file.writelines(json.dumps({"id": i, "text": texts[i % len(texts)]}) + "\n" for i in range(number))
        peaks[number] = peak(str(source), str(output), tiny, 4096)
        with output.open() as file:
            assert [json.loads(line)["id"] for line in file] == list(range(number))
    assert peaks[100_000] < 1.1 * peaks[10_000], peaks
