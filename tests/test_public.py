"""The public names: all there, all found."""

import pytest

import hf_spanner


def test_every_public_name_can_be_used_and_is_listed():
    for name in hf_spanner.__all__:
        assert getattr(hf_spanner, name) is not None
        assert name in dir(hf_spanner)
    assert set(hf_spanner._LAZY) <= set(hf_spanner.__all__)


def test_a_name_that_does_not_exist_is_an_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = hf_spanner.nonsense
