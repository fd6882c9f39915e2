"""Valid input with something changed: what a fuzzer tries most."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

WORDS = (b"null", b"-1", b"1e999", b'"\\ud800"', b"{}", b"[]", b'""', b"NaN", b"9" * 30, b"[" * 99, b"\x00", b"\n")
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    2**31,
    2**63,
    10**30,
    1.5,
    1e300,
    "",
    "x",
    "\ud800",
    "\u202e\x9b",
    "x" * 10_001,
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "';--",
    "`",
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"delta.clustering": "x"},
)


def damaged_bytes(random: Random, data: bytes, most: int = 4) -> bytes:
    """Some bytes put in, taken out or replaced, at up to ``most`` places."""
    for _ in range(random.randint(0, most)):
        at = random.randrange(len(data) + 1)
        end = min(at + random.choice((0, 1, 4, 40)), len(data))
        data = data[:at] + random.choice((*WORDS, random.randbytes(random.randint(0, 8)))) + data[end:]
    return data


def damaged_json(random: Random, value: Any, most: int = 3) -> Any:
    """Another value, an entry more or less, at up to ``most`` places of a JSON value."""
    changed = deepcopy(value)
    for _ in range(random.randint(1, most)):
        place = random.choice(_containers(changed))
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        kind = random.random()
        if keys and kind < 0.7:
            place[random.choice(keys)] = deepcopy(random.choice(VALUES))
        elif keys and kind < 0.85:
            del place[random.choice(keys)]
        elif isinstance(place, dict):
            place[random.choice(("x", "", "seq", "format"))] = deepcopy(random.choice(VALUES))
        else:
            place.append(deepcopy(random.choice(VALUES)))
    return changed


def _containers(value: Any) -> list[Any]:
    found, left = [value], [value]
    while left:
        one = left.pop()
        inner = one.values() if isinstance(one, dict) else one
        below = [each for each in inner if isinstance(each, dict | list)]
        found += below
        left += below
    return found
