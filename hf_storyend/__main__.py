"""`python -m hf_storyend` is the `storyend` command, for launchers that start modules."""

from .cli.main import main

if __name__ == "__main__":
    main()
