"""To the Hub: repositories with all that belongs to a model, their cards, and the record of a training."""

from .cards import About, make_card
from .publishing import publish, save_repository, write_companions
from .record import read_record, training_record

__all__ = [
    "About",
    "make_card",
    "publish",
    "read_record",
    "save_repository",
    "training_record",
    "write_companions",
]
