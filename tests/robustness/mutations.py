"""Mutations that corrupt a file: blind ones, and ones that know JSON or safetensors."""

from __future__ import annotations

import gzip
import json
import random
import struct
from collections.abc import Callable
from typing import Any

Mutation = Callable[[random.Random, bytes], bytes]

_ODD_BYTES = [
    b"\0",
    b"\xff",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\x1f\x8b",
    b"PK\x03\x04",
    b'"',
    b"\r",
    b"\n\n",
]
_ODD_BYTES += [b"\t", b",", b"{", b"[" * 50, b"&a ", b"*a", b"!!python/object/apply:os.system ['true']", b"../../x"]
_ODD_NUMBERS = [b"0", b"-1", b"9" * 30, b"9" * 5000, b"1e400", b"NaN", b"Infinity", b"4294967296", b"0.5", b"true"]
_DEEP = 100_000


def truncate(chance: random.Random, content: bytes) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def flip_bits(chance: random.Random, content: bytes) -> bytes:
    corrupted = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 4, 32))):
        if corrupted:
            corrupted[chance.randrange(len(corrupted))] ^= 1 << chance.randrange(8)
    return bytes(corrupted)


def insert_bytes(chance: random.Random, content: bytes) -> bytes:
    place = chance.randrange(len(content) + 1)
    inserted = chance.choice([*_ODD_BYTES, chance.randbytes(chance.randrange(1, 20))])
    return content[:place] + inserted + content[place:]


def remove_part(chance: random.Random, content: bytes) -> bytes:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[end:]


def repeat_part(chance: random.Random, content: bytes) -> bytes:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:end] + content[start:end] * chance.choice((1, 2, 50)) + content[end:]


def replace_number(chance: random.Random, content: bytes) -> bytes:
    """Another number where one stands: huge counts, wrong sizes, no number at all."""
    places = [place for place, code in enumerate(content) if 48 <= code <= 57]
    if not places:
        return insert_bytes(chance, content)
    start = end = chance.choice(places)
    while end < len(content) and 48 <= content[end] <= 57:
        end += 1
    return content[:start] + chance.choice(_ODD_NUMBERS) + content[end:]


def huge_word(chance: random.Random, content: bytes) -> bytes:
    """A length or an offset of a binary format that points far away."""
    place = 4 * chance.randrange(max(1, len(content) // 4))
    value = chance.choice([b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\0\0\0\x10", b"\0\0\0\0"])
    return content[:place] + value + content[place + 4 :]


def other_content(chance: random.Random, content: bytes) -> bytes:
    """Something else altogether."""
    return chance.choice(
        [
            b"",
            b"\n",
            b"\0" * 1000,
            b"[]",
            b"null",
            b"[" * _DEEP,
            b'{"a":' * _DEEP,
            b"a: " * 200,
            b"," * 20_000,
            b"x" * 200_000,
            content.decode("utf-8", "ignore").encode("utf-16"),
            gzip.compress(content),
            gzip.compress(bytes(1 << 22)),
            chance.randbytes(2000),
        ]
    )


BLIND: tuple[Mutation, ...] = (
    truncate,
    flip_bits,
    flip_bits,
    insert_bytes,
    remove_part,
    repeat_part,
    replace_number,
    other_content,
)


def corrupt_json(chance: random.Random, content: bytes) -> bytes:
    """Sound JSON with one value, key or level that should not be there."""
    text = content.decode("utf-8", "ignore")
    lines = text.splitlines() if "\n{" in text.strip() else [text]
    row = chance.randrange(len(lines))
    try:
        tree = json.loads(lines[row])
    except ValueError:
        return flip_bits(chance, content)
    lines[row] = json.dumps(_corrupted(chance, tree)).replace('"__deep__"', "[" * _DEEP + "]" * _DEEP)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def duplicate_key(chance: random.Random, content: bytes) -> bytes:
    """The first key of an object once more, with another value."""
    start = content.find(b'"')
    end = content.find(b'"', start + 1)
    if start < 1 or end < 0:
        return repeat_part(chance, content)
    key = content[start : end + 1]
    value = chance.choice([b"0", b"[]", b"{}", b'"x"', b"null"])
    return content[:start] + key + b": " + value + b", " + content[start:]


def _corrupted(chance: random.Random, tree: Any) -> Any:
    if isinstance(tree, dict) and tree and chance.random() < 0.85:
        key = chance.choice(list(tree))
        corrupted = dict(tree)
        kind = chance.random()
        if kind < 0.15:
            del corrupted[key]
        elif kind < 0.3:
            corrupted[_odd_value(chance, text_only=True)] = corrupted.pop(key)
        else:
            corrupted[key] = _corrupted(chance, tree[key])
        return corrupted
    if isinstance(tree, list) and tree and chance.random() < 0.85:
        place = chance.randrange(len(tree))
        return [*tree[:place], _corrupted(chance, tree[place]), *tree[place + chance.choice((0, 1, 1, 1)) :]]
    return _odd_value(chance)


def _odd_value(chance: random.Random, text_only: bool = False) -> Any:
    texts = [
        "",
        "../../../tmp/outside",
        "/etc/passwd",
        "\0",
        "\ud800",
        "a\nb",
        "=1+1",
        "<script>",
        "x" * 3000,
        "__class__",
    ]
    if text_only:
        return chance.choice(texts)
    others = [
        None,
        True,
        0,
        -1,
        1.5,
        2**31,
        2**63,
        10**12,
        10**400,
        float("nan"),
        float("inf"),
        [],
        {},
        [[]],
        {"a": 1},
    ]
    return chance.choice([*texts, *others, "__deep__", [1, "a"], list(range(300))])


STRUCTURED_JSON: tuple[Mutation, ...] = (corrupt_json, corrupt_json, corrupt_json, duplicate_key)


def corrupt_tensor_header(chance: random.Random, content: bytes) -> bytes:
    """A safetensors file whose header says what is not so: lengths, shapes, offsets, types, names."""
    length = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    kind = chance.randrange(3)
    if kind == 0:
        return struct.pack("<Q", chance.choice([0, 1, length - 1, length + 1, 1 << 40, (1 << 64) - 1])) + content[8:]
    name = chance.choice([key for key in header if key != "__metadata__"])
    entry = header[name]
    if kind == 1:
        field = chance.choice(list(entry))
        odd = {
            "dtype": ["F64", "I8", "BF16", "U64", "X9", 3],
            "shape": [[], [1 << 60], [1 << 33, 1 << 33], [-1], [0], entry["shape"][::-1], "a"],
            "data_offsets": [[0, 0], [0, 1 << 60], [5, 2], [-1, 4], [0], entry["data_offsets"][::-1]],
        }
        entry[field] = chance.choice(odd[field])
    else:
        header[chance.choice(["../../x", "", "a" * 500, "lm_head.weight", "__class__"])] = header.pop(name)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def corrupt_weights(chance: random.Random, content: bytes) -> bytes:
    """Weights that are no numbers, or too large for one."""
    length = struct.unpack("<Q", content[:8])[0]
    start = 8 + length + 4 * chance.randrange((len(content) - 8 - length) // 4)
    value = struct.pack("<f", chance.choice([float("nan"), float("inf"), float("-inf")]))
    return content[:start] + value + content[start + 4 :]


STRUCTURED_TENSORS: tuple[Mutation, ...] = (corrupt_tensor_header, corrupt_tensor_header, corrupt_weights)


def inside_gzip(mutation: Mutation) -> Mutation:
    """Corrupt the content, not the compressed file."""

    def corrupt(chance: random.Random, content: bytes) -> bytes:
        return gzip.compress(mutation(chance, gzip.decompress(content)), 1)

    return corrupt
