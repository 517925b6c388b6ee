"""Package metadata. Tools are configured in pyproject.toml; exact versions for `make` are in constraints.txt."""

from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
VERSION = "0.1.0"

# The lower ends are the oldest versions that the tests were run with.
REQUIRED = [
    "accelerate>=1.10",
    "datasets>=4.4",
    "filelock>=3.16",
    "huggingface_hub>=1.31",
    "jinja2>=3.1.6",
    "markdown-it-py>=4.0",
    "numpy>=2.1.3",
    "pyarrow>=21.0",
    "pyyaml>=6.0.3",
    "rich>=13.9.4",
    "sacrebleu>=2.4.3",
    "safetensors>=0.8",
    "torch>=2.13",
    "tqdm>=4.66.6",
    "transformers>=5.18.0,<6",
    "typer>=0.16.0",
]
# Needed where a knowledge table is built, not where one is used: lemmas and parts of speech; a faster gzip.
KNOWLEDGE = ["isal>=1.7.1", "lemminflect>=0.2.3"]
# Pictures: curves of a run, benchmarks, attention.
PLOTS = ["matplotlib>=3.11"]
# Significance, agreement of annotators.
EVALUATION = [*PLOTS, "scipy>=1.17", "statsmodels>=0.15"]
# The page of `storyend demo`, and what builds a knowledge table.
DEMO = [*KNOWLEDGE, *PLOTS, "gradio>=6.31"]
TEST = [
    *DEMO,
    *EVALUATION,
    "hypothesis>=6.100",
    "ipython>=9.18",
    "pytest>=8.0",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "selenium>=4.51",
    "tensorboard>=2.21",
]
LINT = ["mypy>=1.15", "ruff>=0.12"]

setup(
    name="hf_storyend",
    version=VERSION,
    description="Story endings by incremental encoding and commonsense knowledge, as a transformers plugin",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    # modeling/ stands at the top because it travels alone; installed, it is a part of the package.
    packages=[
        "hf_storyend",
        "hf_storyend.annotation",
        "hf_storyend.assets",
        "hf_storyend.data",
        "hf_storyend.demo",
        "hf_storyend.evaluation",
        "hf_storyend.explanation",
        "hf_storyend.hub",
        "hf_storyend.hub_cards",
        "hf_storyend.knowledge",
        "hf_storyend.modeling",
        "hf_storyend.training",
        "storyend_cli",
    ],
    # The command has a name of its own, too: `storyend --help` should not have to import torch.
    package_dir={
        "hf_storyend": "hf_storyend",
        "hf_storyend.hub_cards": "hub_cards",
        "hf_storyend.modeling": "modeling",
        "storyend_cli": "hf_storyend/cli",
    },
    package_data={
        "hf_storyend": ["py.typed"],
        "hf_storyend.annotation": ["*.html", "*.css", "*.js", "*.md"],
        "hf_storyend.assets": ["*.jsonl", "*.tsv", "default_model/*"],
        "hf_storyend.demo": ["*.css", "*.js"],
        "hf_storyend.explanation": ["*.html", "*.css", "*.js"],
        "hf_storyend.hub_cards": ["template.md", "space/*"],
    },
    install_requires=REQUIRED,
    extras_require={
        "knowledge": KNOWLEDGE,
        "plots": PLOTS,
        "evaluation": EVALUATION,
        "demo": DEMO,
        "test": KNOWLEDGE + TEST + LINT,
        "dev": KNOWLEDGE + TEST + LINT + ["coverage>=7.10"],
    },
    entry_points={"console_scripts": ["storyend = storyend_cli.main:main"]},
    classifiers=[
        "Development Status :: 3 - Alpha",
        "License :: OSI Approved :: Apache Software License",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
