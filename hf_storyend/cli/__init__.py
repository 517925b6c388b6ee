"""
The `storyend` command. Installed under a name of its own, `storyend_cli`, because importing `hf_storyend` loads torch:
`--help` should not wait for that. Each command is a thin module: it parses, calls the library and prints.
"""
