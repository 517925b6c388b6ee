"""Two ways to run what a document tells people to type: quickly, or by typing it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from documents.markdown_code import ROOT

_ASSIGNMENT = re.compile(r"\w+=")


@dataclass(frozen=True)
class Printed:
    """What a command left on the screen."""

    code: int
    out: str
    err: str


def shell_environment(**settings: str) -> dict[str, str]:
    """A plain terminal of 120 columns, one thread, and the programs of this Python first."""
    programs = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "tests"),
        "COLUMNS": "120",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        **settings,
    }


@dataclass
class BashShell:
    """Types each command into bash; variables that lines set are kept."""

    folder: Path
    environment: dict[str, str]
    assignments: list[str] = field(default_factory=list)

    def run(self, command: str) -> Printed:
        if _ASSIGNMENT.match(command):
            self.assignments.append(command)
            return Printed(0, "", "")
        return self._run(command)

    def words(self, command: str) -> list[str]:
        """The words of a command as bash sees them, variables and patterns filled in."""
        return self._bash(f"printf '%s\\0' {command}").stdout.split("\0")[:-1]

    def _run(self, command: str) -> Printed:
        done = self._bash(command)
        return Printed(done.returncode, done.stdout, done.stderr)

    def _bash(self, command: str) -> subprocess.CompletedProcess:
        lines = "\n".join([*self.assignments, command])
        return subprocess.run(
            ["bash", "-c", lines], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )


@dataclass
class WarmServer:
    """The process behind quick shells."""

    process: subprocess.Popen

    @classmethod
    def start(cls, environment: dict[str, str]) -> WarmServer:
        command = [sys.executable, str(Path(__file__).with_name("warm_shell.py"))]
        pipe = subprocess.PIPE
        return cls(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment))

    def run(self, words: list[str], folder: Path, environment: dict[str, str]) -> Printed:
        out, err = folder / ".out", folder / ".err"
        job = {"words": words, "folder": str(folder), "environment": environment, "out": str(out), "err": str(err)}
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        return Printed(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


@dataclass
class WarmShell(BashShell):
    """Bash takes the commands apart; a process that has imported everything runs them."""

    server: WarmServer | None = None

    def _run(self, command: str) -> Printed:
        assert self.server is not None
        return self.server.run(self.words(command), self.folder, {"COLUMNS": "120"})
