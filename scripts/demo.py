"""What the default model finds in three texts, without network or download (`make demo`)."""

import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from transformers.utils import logging

import hf_spanner
from hf_spanner.rendering import render
from hf_spanner.rendering.ansi import use_color

TEXTS = {
    "Names, and names inside names": (
        "Anna Weber of the University of Zurich told the Bank of England on 3 May 2021 that Pfizer "
        "tests aspirin in London."
    ),
    "Biomedicine": "CD28 signals activate the IL-2 promoter and the NF-kappa B site in Jurkat T cells.",
    "A longer text": (
        "Marie Curie was born in Warsaw, the capital of Poland, in 1867. She studied at the University of Paris, "
        "where she met Pierre Curie, a professor at the School of Physics and Chemistry of the city of Paris. In "
        "1911 the Royal Swedish Academy of Sciences gave her the Nobel Prize in Chemistry for the discovery of two "
        "elements. Her daughter Irène, who was born in the year after the wedding, became a chemist as well."
    ),
}


def main() -> int:
    logging.disable_progress_bar()
    ner = hf_spanner.pipeline()
    for title, text in TEXTS.items():
        print(f"{title}\n")
        print(render(text, ner(text), "ansi", color=use_color(sys.stdout), labels=ner.model.config.types), end="\n\n")
    text = "The mayor of New York met the chief economist of the Bank of England, whom she knew."
    print('Nominals and pronouns, too: ner(text, mentions=["name", "nominal", "pronoun"])\n')
    entities = ner(text, mentions=ner.model.config.mentions)
    print(render(text, entities, "ansi", color=use_color(sys.stdout), labels=ner.model.config.types), end="\n\n")
    print(
        "In Python:\n\n"
        "  import hf_spanner\n"
        "  from transformers import pipeline\n"
        '  ner = pipeline("nested-ner")\n\n'
        "With your own labels, starting from this model or from any encoder of the Hub:\n\n"
        "  hf-spanner train --model default --data FOLDER --output_dir runs/mine\n"
        "  hf-spanner train --approach biaffine_ner --encoder bert-base-cased --data FOLDER --output_dir runs/mine\n"
        '  hf-spanner predict --model runs/mine "the mayor of New York"'
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
