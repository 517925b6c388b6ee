"""One Python for all blocks of a document: what a block defines is there for the next one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from documents.shells import BashShell, Printed

_DRIVER = """
import contextlib, io, json, sys, traceback
names = {"__name__": "__main__"}
answers = sys.stdout
for line in sys.stdin:
    printed, problem = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(json.loads(line), "the document", "exec"), names)
    except BaseException:
        problem = traceback.format_exc()
    print(json.dumps([printed.getvalue(), problem]), file=answers, flush=True)
"""


@dataclass
class PythonSession:
    """A running Python."""

    process: subprocess.Popen

    def run(self, code: str) -> Printed:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()
        out, problem = json.loads(self.process.stdout.readline())
        return Printed(int(bool(problem)), out, problem)


@contextmanager
def python_session(shell: BashShell) -> Iterator[PythonSession]:
    """Start a Python in the folder of a shell."""
    pipe, command = subprocess.PIPE, [sys.executable, "-c", _DRIVER]
    settings = {"cwd": shell.folder, "env": shell.environment, "stdin": pipe, "stdout": pipe, "text": True}
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, **settings) as process:
        yield PythonSession(process)
        assert process.stdin is not None
        process.stdin.close()
