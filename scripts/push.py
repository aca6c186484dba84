"""Upload a trained model with its card to the Hub with the Python API. (`hf-spanner push --dry-run` shows it first.)

python scripts/push.py runs/mine me/span-ner-litbank --license cc-by-4.0
"""

import argparse

import hf_spanner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the folder of a trained model")
    parser.add_argument("repo_id", help="owner/name; made if it does not exist")
    parser.add_argument("--language", default="en")
    parser.add_argument("--license", help="of the weights, for the card")
    args = parser.parse_args()
    model, _ = hf_spanner.load_model(args.model)  # tokenizer, recipe and results are found beside it
    commit = model.push_to_hub(args.repo_id, language=args.language, license=args.license)
    print(commit.commit_url)


if __name__ == "__main__":
    main()
