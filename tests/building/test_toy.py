"""The toy encoder: of the same texts and seed the same one, whatever process makes it."""

import os
import subprocess
import sys
from collections import Counter

from hf_spanner.building.toy import _pieces, train_wordpiece

TEXTS = ["the mayor of New York", "the governor of York", "New York's other mayors: unbelievable"]


def test_pieces_by_hand():
    # of abab twice (a,##b) stands there twice, (##b,##a) and (##a,##b) and of abc (##b,##c) less often
    assert _pieces(Counter(abab=2, abc=1, x=5), 9) == "##a ##b ##c a x ab ##ab abab abc".split()
    assert _pieces(Counter(aaa=1), 99) == ["##a", "a", "##aa", "aaa"], "what nothing is made of any more is no piece"
    assert _pieces(Counter(), 5) == []


def test_the_same_texts_make_the_same_tokenizer_in_every_process():
    code = f"from hf_spanner.building.toy import train_wordpiece; print(train_wordpiece({TEXTS!r}, 60).get_vocab())"
    own = train_wordpiece(TEXTS, 60).get_vocab()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        printed = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert sorted(eval(printed.stdout).items()) == sorted(own.items()) and len(own) == 60


def test_known_words_are_whole_and_others_are_spelt():
    tokenizer = train_wordpiece(TEXTS, 400)
    assert tokenizer.tokenize("the mayor of York") == ["the", "mayor", "of", "York"]
    assert "".join(tokenizer.tokenize("mother")).replace("##", "") == "mother" and tokenizer.unk_token == "[UNK]"
    assert tokenizer.tokenize("Zoë") == ["[UNK]"], "a letter that no text has"
    assert tokenizer("of")["input_ids"] == [2, tokenizer.convert_tokens_to_ids("of"), 3]
