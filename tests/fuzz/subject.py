"""What a fuzzer is: one module ``fuzz_*.py`` per subject, found by its name."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that reads what strangers write."""

    name: str
    promise: str
    """What holds forevery input, in a sentence: it is printed."""
    attempt: Callable[[Random], str]
    """Makes one input, tries it and says in a word or two how that ended, which is counted. Any exception is a failure
    of the promise. All of its randomness comes from the argument, so that the number of a try reproduces it."""
    quick: int = 50
    """How many tries the ordinary tests make."""
    prepare: Callable[[], object] = lambda: None
    """What the first try needs: it is not counted as time of the tries."""


class BrokenPromiseError(AssertionError):
    """One try that failed."""

    def __init__(self, subject: Subject, seed: int, number: int) -> None:
        super().__init__(
            f"{subject.name}: try {number} of seed {seed} failed; repeat it with "
            f"`python -m tests.fuzz {subject.name} --seed {seed} --first {number} --tries 1`"
        )


def subjects() -> dict[str, Subject]:
    """All subjects by name: those in ``SUBJECTS`` of each module ``fuzz_*.py`` next to this one.

    Raises ``ValueError`` where two have the same name: one of them would never run.
    """
    names = sorted(path.stem for path in Path(__file__).parent.glob("fuzz_*.py"))
    modules = [importlib.import_module(f"tests.fuzz.{name}") for name in names]
    return by_name([subject for module in modules for subject in module.SUBJECTS])


def by_name(subjects: Iterable[Subject]) -> dict[str, Subject]:
    """Subjects by name. Raises ``ValueError`` where two have the same one."""
    found: dict[str, Subject] = {}
    for subject in subjects:
        if subject.name in found:
            raise ValueError(f"two subjects of the fuzzer have the name {subject.name}")
        found[subject.name] = subject
    return found


def fuzz(subject: Subject, seed: int, numbers: Iterable[int]) -> Counter[str]:
    """Run some tries of a seed; how many ended in which way. Raises ``BrokenPromiseError`` at the first that fails."""
    endings: Counter[str] = Counter()
    for number in numbers:
        try:
            endings[subject.attempt(Random(f"{subject.name} {seed} {number}"))] += 1
        except Exception as error:
            raise BrokenPromiseError(subject, seed, number) from error
    return endings
