"""
The `storyend` command.

`main` holds the commands together, `parameters` turns options dataclasses into command lines, and a module for each
group has the commands: each calls the library with its options and prints the result. They import the library when
they run: `storyend --help` does not wait for torch.
"""
