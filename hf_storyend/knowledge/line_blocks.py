"""A file of any size, plain or gzip, as blocks of whole lines."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from .edge_lines import MAX_LINE_LENGTH


def _gzip_library() -> tuple[Any, Any]:
    """What opens a gzip file, and the error of damaged data."""
    try:
        # Three times as fast as the standard library, which takes longer to decompress a dump than we to scan it.
        from isal import igzip, isal_zlib
    except ImportError:
        return gzip.GzipFile, zlib.error
    return igzip.IGzipFile, isal_zlib.error


_GzipFile, _DeflateError = _gzip_library()
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_blocks(path: Path, block_size: int, advance: Callable[[int], object] | None = None) -> Iterator[bytes]:
    """
    Blocks of whole lines that end in a line feed, a Windows line end made one. `advance` is told how many bytes of
    the file have been read since it was last called. Of a line above the limit no more than the start is kept.
    """
    parts = _blocks_as_read(path, block_size, advance or (lambda num_bytes: None))
    for index, block in enumerate(_whole_lines(parts)):
        lines = block.replace(b"\r\n", b"\n") if b"\r" in block else block
        yield lines if index else lines.removeprefix(_BYTE_ORDER_MARK)


def _whole_lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    partial = bytearray()
    for part in parts:
        end = part.rfind(b"\n") + 1
        if end:
            yield b"".join((partial, memoryview(part)[:end]))
            partial = bytearray(part[end:])
        else:
            partial += part
            del partial[MAX_LINE_LENGTH + 1 :]
    if partial:
        yield bytes(partial) + b"\n"


def _blocks_as_read(path: Path, block_size: int, advance: Callable[[int], object]) -> Iterator[bytes]:
    with path.open("rb") as raw:
        is_compressed = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        raw.seek(0)
        file = cast(BinaryIO, _GzipFile(fileobj=raw)) if is_compressed else raw
        position = 0
        try:
            while block := file.read(block_size):
                position, previous = raw.tell(), position
                advance(position - previous)
                yield block
        except (EOFError, gzip.BadGzipFile, _DeflateError) as error:
            raise ValueError(f"{path} is a damaged or truncated gzip file: {error}. Get it anew.") from error
