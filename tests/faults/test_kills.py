"""Trainings that are killed, and go on as if nothing had been."""

import pytest
from faults.harness import Fault, Trainings


@pytest.fixture(scope="module")
def trainings(encoder_folder, tmp_path_factory):
    return Trainings(tmp_path_factory.mktemp("faults"), encoder_folder)


def test_a_training_killed_inside_a_save_goes_on_as_if_nothing_had_been(trainings):
    for share in (0.3, 0.55, 0.8):
        name, moment = f"killed-{share}", int(trainings.moments * share)
        assert trainings.run(name, fault=Fault("killed", moment)) == -9
        assert trainings.run(name, "--resume") == 0, trainings.said(name)
        assert trainings.ends_like_the_whole(name), trainings.said(name)
        assert not list(trainings.folder(name).glob("*saving*")), "nothing is left lying about"
