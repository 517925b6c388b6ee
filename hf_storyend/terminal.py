"""Text of others on a terminal: control characters are shown, not sent."""

from __future__ import annotations

import inspect
import io
import logging
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# C0 without tab and newline; DEL and C1; line separators; marks, embeddings, overrides and isolates of bidirectional
# text; halves of surrogate pairs, which no terminal takes.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""Return text whose control characters are written as Python would: an escape is `\x1b`."""
    return _CONTROL.sub(_escaped, text)


def printable_json(text: str) -> str:
    r"""Return JSON of the same meaning whose control characters are written as `\u001b`."""
    return _CONTROL.sub(_escaped_in_json, text)


@contextmanager
def printable_logs() -> Iterator[None]:
    """Make the messages and tracebacks of all loggers printable, and warnings, those of other libraries too."""
    factory, format_warning = logging.getLogRecordFactory(), warnings.formatwarning
    print_exception, thread_hook = traceback.print_exception, threading.excepthook
    logging.setLogRecordFactory(_PrintableRecord)
    warnings.formatwarning = lambda *args, **kwargs: printable(format_warning(*args, **kwargs))
    # Gradio prints what fails for a request, and its message may have what the request said.
    traceback.print_exception = _printing_visibly(print_exception)
    threading.excepthook = _print_error_of_thread
    try:
        yield
    finally:
        logging.setLogRecordFactory(factory)
        warnings.formatwarning = format_warning
        traceback.print_exception, threading.excepthook = print_exception, thread_hook


def _printing_visibly(print_exception: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(print_exception)

    def print_visibly(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        file, text = given.arguments.get("file") or sys.stderr, io.StringIO()
        given.arguments["file"] = text
        print_exception(*given.args, **given.kwargs)
        file.write(printable(text.getvalue()))

    return print_visibly


def _print_error_of_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is not SystemExit:
        traceback.print_exception(args.exc_type, args.exc_value, args.exc_traceback)


class _PrintableRecord(logging.LogRecord):
    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[0] is not None:
            # Formatters take this text where there is one.
            self.exc_text = printable("".join(traceback.format_exception(*self.exc_info)).rstrip("\n"))

    def getMessage(self) -> str:  # noqa: N802
        return printable(super().getMessage())


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escaped_in_json(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
