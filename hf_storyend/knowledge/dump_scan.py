"""Which lines of a block of the assertions dump have to be parsed: few, found without looking at each in Python."""

from __future__ import annotations

import numpy as np
import pyarrow

from .edge_lines import MAX_LINE_LENGTH

_TAB, _LINE_FEED = ord("\t"), ord("\n")
_NUM_COLUMNS = 5


class DumpScan:
    """
    The lines of a block, and those of them to be parsed: the edges of the language, and all that is out of the
    ordinary. What remains is known to be sound and of another language.
    """

    def __init__(self, block: bytes, prefix: str):
        self._block = block
        self._codes = np.frombuffer(block, dtype=np.uint8)
        # All tabs and line feeds, and with them the control characters that have no business here.
        self._marks = np.flatnonzero(self._codes <= _LINE_FEED)
        self._mark_codes = self._codes[self._marks]
        self._last_marks = np.flatnonzero(self._mark_codes == _LINE_FEED)
        self._ends = self._marks[self._last_marks]
        self._starts = np.concatenate(([0], self._ends[:-1] + 1))
        # Whether it is UTF-8 and every line has its five columns.
        self.is_sound = False
        self._to_parse = self._find_lines_to_parse(prefix.encode())
        self.num_lines = len(self._ends)

    def lines_to_parse(self) -> list[tuple[int, bytes]]:
        """Positions in the block, from 0, and lines without their end."""
        rows = self._to_parse
        spans = zip(rows.tolist(), self._starts[rows].tolist(), self._ends[rows].tolist(), strict=True)
        return [(row, self._block[start:end]) for row, start, end in spans]

    def _find_lines_to_parse(self, prefix: bytes) -> np.ndarray:
        to_parse = np.ones(len(self._ends), dtype=bool)
        regular = np.flatnonzero(self._have_five_columns())
        if len(regular) and _is_utf8(self._block):
            self.is_sound = len(regular) == len(to_parse)
            tabs = [self._marks[self._last_marks[regular] - back] for back in range(_NUM_COLUMNS - 1, 0, -1)]
            columns = [self._starts[regular], *(tab + 1 for tab in tabs)]
            to_parse[regular] = self._are_wanted_or_odd(columns, self._ends[regular], prefix)
        return np.flatnonzero(to_parse)

    def _have_five_columns(self) -> np.ndarray:
        regular = np.diff(self._last_marks, prepend=-1) == _NUM_COLUMNS
        regular &= self._ends - self._starts <= MAX_LINE_LENGTH
        strange = np.flatnonzero((self._mark_codes != _TAB) & (self._mark_codes != _LINE_FEED))
        regular[np.searchsorted(self._last_marks, strange)] = False
        return regular

    def _are_wanted_or_odd(self, columns: list[np.ndarray], ends: np.ndarray, prefix: bytes) -> np.ndarray:
        assertion, relation, head, tail = (self._words_at(column) for column in columns[:4])
        sound = _begin_with(assertion, b"/a/") & _begin_with(relation, b"/r/")
        sound &= (self._codes[columns[4]] == ord("{")) & (self._codes[ends - 1] == ord("}"))
        for node in (head, tail):
            sound &= _begin_with(node, b"/c/") | _begin_with(node, b"htt")
        wanted = _begin_with(head, prefix[:4]) & _begin_with(tail, prefix[:4])
        for column in columns[2:4]:
            rows = np.flatnonzero(wanted)
            wanted[rows] = _begin_with(self._words_at(column[rows] + 4), prefix[4:8])
        return wanted | ~sound

    def _words_at(self, positions: np.ndarray) -> np.ndarray:
        """The four bytes at each position, as one number."""
        words = np.ndarray((len(self._block) - 3,), dtype="<u4", buffer=self._block, strides=(1,))
        # At the end of the block an earlier word is read: with a tab or line feed in it, it is no text we look for.
        return words[np.minimum(positions, len(words) - 1)]


def _begin_with(words: np.ndarray, text: bytes) -> np.ndarray:
    mask = np.uint32((1 << 8 * len(text)) - 1)
    return words & mask == int.from_bytes(text, "little")


def _is_utf8(block: bytes) -> bool:
    # Three times as fast as decoding, which would also write the text down.
    offsets = pyarrow.py_buffer(np.array([0, len(block)], dtype=np.int64))
    text = pyarrow.Array.from_buffers(pyarrow.large_string(), 1, [None, offsets, pyarrow.py_buffer(block)])
    try:
        text.validate(full=True)
    except pyarrow.ArrowInvalid:
        return False
    return True
