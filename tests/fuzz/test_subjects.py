"""A short, fixed run of every fuzzer; ``make fuzz`` runs them for longer."""

from __future__ import annotations

import pytest

from tests.fuzz.subject import BrokenPromiseError, Subject, by_name, fuzz, subjects

SUBJECTS = subjects()


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_a_few_tries_of_each_subject(name: str) -> None:
    subject = SUBJECTS[name]
    endings = fuzz(subject, 0, range(subject.quick))
    assert endings.total() == subject.quick


def test_a_failed_try_says_how_to_repeat_it() -> None:
    def attempt(_random: object) -> str:
        raise RecursionError

    with pytest.raises(BrokenPromiseError, match=r"python -m tests\.fuzz sample --seed 3 --first 5 --tries 1"):
        fuzz(Subject("sample", "", attempt), 3, range(5, 9))


def test_a_try_is_the_same_each_time() -> None:
    subject = Subject("sample", "", lambda random: str(random.random()))
    assert fuzz(subject, 1, range(9)) == fuzz(subject, 1, range(9))
    assert fuzz(subject, 1, range(9)) != fuzz(subject, 2, range(9))


def test_a_subject_never_hides_another_of_the_same_name() -> None:
    subject = Subject("pages", "", lambda _: "read")
    with pytest.raises(ValueError, match="two subjects of the fuzzer have the name pages"):
        by_name([subject, subject])
