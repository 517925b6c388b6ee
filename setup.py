"""The packages and where they lie, which pyproject.toml can't express together; everything else is declared there."""

from setuptools import find_packages, setup

# These lie at the top level because people look for them there, and modeling/ because it travels to the Hub alone;
# installed, they are part of the package.
OUTSIDE = {"hf_storyend.hub_cards": "hub_cards", "hf_storyend.modeling": "modeling"}

setup(
    packages=[*find_packages(include=["hf_storyend", "hf_storyend.*"]), *OUTSIDE],
    package_dir={"hf_storyend": "hf_storyend", **OUTSIDE},
)
