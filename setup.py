"""Packaging of hf_spanner.

`modeling/` lies beside `hf_spanner/` because its files travel to the Hub alone; installed, it is the sub-package
`hf_spanner.modeling` and never a top-level package called `modeling`.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent


def read_version() -> str:
    """The version that `hf_spanner/__init__.py` states, read without importing torch."""
    text = (HERE / "hf_spanner" / "__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"', text, flags=re.MULTILINE)
    if match is None:
        raise RuntimeError(
            'hf_spanner/__init__.py has no line `__version__ = "..."`: setup.py reads the version there.'
        )
    return match.group(1)


def read_readme() -> str:
    readme = HERE / "README.md"
    return readme.read_text(encoding="utf-8") if readme.exists() else ""


extras = {
    "demo": ["gradio>=6.31"],  # the first that goes with huggingface_hub 2
    "dev": ["pytest<9.2", "pytest-xdist", "hypothesis", "ruff", "mypy", "types-PyYAML"],
    "plots": ["matplotlib>=3.10"],
    "peft": ["peft"],
    "tune": ["optuna"],
    "onnx": ["onnx", "onnxscript", "onnxruntime"],
    "serve": ["fastapi", "uvicorn", "httptools"],
    "ray": ["ray[data]"],
    "spark": ["pyspark", "pandas"],
    "spacy": ["spacy>=3.7"],
    "cas": ["dkpro-cassis>=0.10"],
    "docs": ["mkdocs-material", "mkdocstrings[python]", "latex2mathml", "nbclient", "nbformat", "ipykernel"],
}
# The tests of those extras; of Ray and Spark where they are installed.
extras["dev"] += ["optuna", "peft"]
for _name in ("plots", "onnx", "serve", "spacy", "cas", "demo", "docs"):
    extras["dev"] += extras[_name]
extras["all"] = sorted({requirement for group in extras.values() for requirement in group})

setup(
    name="hf_spanner",
    version=read_version(),
    description="Nested named entity recognition, Hugging Face-native: every published approach behind one trainer, "
    "one metric and one pipeline.",
    long_description=read_readme(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE", "NOTICE"],
    keywords="nested named entity recognition, NER, span classification, transformers, hugging face",
    python_requires=">=3.10",
    packages=find_packages(include=["hf_spanner", "hf_spanner.*"]) + ["hf_spanner.modeling", "hf_spanner.model_cards"],
    package_dir={
        "hf_spanner": "hf_spanner",
        "hf_spanner.modeling": "modeling",
        "hf_spanner.model_cards": "model_cards",
    },
    package_data={
        "hf_spanner": [
            "py.typed",
            "recipes/**/*.yaml",
            "reproduce/**/*.yaml",
            "data/sample/*.jsonl",
            "data/sample/*.txt",
            "default_model/*",
        ],
        "hf_spanner.data.corpora": ["*.yaml"],
        "hf_spanner.rendering": ["*.css"],
        "hf_spanner.report": ["*.css", "*.js"],
        "hf_spanner.metrics": ["nested_ner/*.md"],  # with its .py files the whole folder that evaluate loads
        "hf_spanner.model_cards": ["*.md", "*.yaml"],  # the template and the citations of a card
        "hf_spanner.modeling": ["*.py"],  # the sources themselves are data: saved models carry copies of them
    },
    zip_safe=False,
    # The floors are what the code is written for; the versions it is tested with stand in constraints.txt.
    install_requires=[
        "torch>=2.4",
        "transformers>=5.10.1,<6",  # `make test-oldest` runs the tests on this one
        "datasets>=4.0",  # the List feature
        "evaluate>=0.4.6",
        "accelerate>=1.1",
        "huggingface-hub>=1.5",
        "jinja2",  # the template of a card
        "safetensors",
        "tokenizers",
        "numpy",
        "regex",
        "pyyaml",
        "scipy",
    ],
    extras_require=extras,
    entry_points={
        "console_scripts": ["hf-spanner = hf_spanner.cli:main"],
        "spacy_factories": ["hf_spanner = hf_spanner.spacy_pipe:make_nested_ner"],
    },
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
)
