"""``python -m tests.fuzz [SUBJECT …] [--seconds N]``: fuzz, and print how many tries ended in which way."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count

from tests.fuzz.subject import Subject, fuzz, subjects


def main(arguments: list[str]) -> int:
    known = subjects()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz what reads strangers' input.")
    parser.add_argument("subject", nargs="*", help=f"of {', '.join(known)}; all of them without one")
    parser.add_argument("--seconds", type=float, default=60, help="for each subject")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first try")
    parser.add_argument("--tries", type=int, help="so many tries, however long they take")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.subject) - set(known)
    if unknown:
        parser.error(f"no such subject: {', '.join(sorted(unknown))}")
    for name in chosen.subject or known:
        known[name].prepare()
        _run(known[name], chosen.seed, _numbers(chosen.first, chosen.tries, chosen.seconds))
    return 0


def _numbers(first: int, tries: int | None, seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    for number in count(first):
        if number - first >= tries if tries is not None else time.monotonic() >= end:
            return
        yield number


def _run(subject: Subject, seed: int, numbers: Iterator[int]) -> None:
    started = time.monotonic()
    endings: Counter[str] = fuzz(subject, seed, numbers)
    took = time.monotonic() - started
    print(f"{subject.name}: {endings.total():,} tries in {took:,.0f} s, none failed: {subject.promise}")
    for ending, times in endings.most_common():
        print(f"  {times:9,}  {ending}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
