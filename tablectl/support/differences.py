"""The differences between two values, found by deepdiff.

deepdiff takes half a second of CPU to load, and 0.4 ms for the settings of one table. Therefore values are compared for
equality first, and it is loaded only where they differ. Plans of thousands of tables ask their attributes alone whether
a declared value is the live one (``planning/diff.py``): deepdiff serves where a difference is explained or refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # see the module docstring
    from deepdiff.diff import DeepDiff
    from deepdiff.model import DiffLevel

Path = tuple[str | int, ...]
"""Where a part of a value is: keys of mappings, names of fields, positions in lists."""
Same = Callable[[Path, Any, Any], bool | None]
"""Whether two parts are equal, by their path; ``None`` to look at what is in them."""


@dataclass(frozen=True, slots=True)
class FoundDifference:
    """A part that differs."""

    path: Path
    kind: Literal["added", "removed", "changed"]
    before: Any
    """``None`` if it was added."""
    after: Any
    """``None`` if it was removed."""

    @property
    def where(self) -> str:
        """The path, for people: ``statements[0].sql``."""
        return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in self.path).lstrip(".")


def whole(_path: Path, before: Any, after: Any) -> bool | None:
    """Looks into mappings alone: a list is one value."""
    return None if isinstance(before, dict) and isinstance(after, dict) else bool(before == after)


def differences(before: object, after: object, same: Same = lambda *_: None) -> tuple[FoundDifference, ...]:
    """The smallest parts that differ, in the order of their paths; none if the values are equal. ``same`` decides for
    the parts of which it knows more.
    """
    if before == after:
        return ()
    from deepdiff import DeepDiff  # noqa: PLC0415  # see the module docstring

    # Items are compared by position: to look for moved ones takes quadratic time, and plan files are written by others.
    asked = _Asked(same)
    found = DeepDiff(
        before,
        after,
        view="tree",
        zip_ordered_iterables=True,
        threshold_to_diff_deeper=0,  # dictionaries that share no key are compared key by key, too
        ignore_private_variables=False,
        custom_operators=[asked],
    )
    parts: dict[Path, FoundDifference] = {}
    for report, levels in found.items():
        added, removed = report.endswith("_added"), report.endswith("_removed")
        for level in levels:
            path = tuple(level.path(output_format="list"))
            old, new = None if added else level.t1, None if removed else level.t2
            parts[path] = FoundDifference(path, "added" if added else "removed" if removed else "changed", old, new)
    if not parts and not asked.excused:  # what deepdiff does not see differs all the same
        return (FoundDifference((), "changed", before, after),)
    return tuple(parts[path] for path in sorted(parts, key=_order))


def _order(path: Path) -> list[tuple[int, str]]:
    return [(each, "") if isinstance(each, int) else (0, each) for each in path]


class _Asked:
    """An operator of deepdiff, as its ``BaseOperator``: what ``same`` decides is not looked into."""

    def __init__(self, same: Same) -> None:
        self._same = same
        self.excused = False
        """Whether parts that are not equal count as such."""

    def match(self, level: DiffLevel) -> bool:
        """Whether deepdiff has to ask."""
        return level.up is not None

    def give_up_diffing(self, level: DiffLevel, diff_instance: DeepDiff) -> bool:
        """Whether deepdiff has an answer."""
        if level.t1 == level.t2:
            return True
        answer = self._same(tuple(level.path(output_format="list")), level.t1, level.t2)
        self.excused |= answer is True
        if answer is False:
            diff_instance.custom_report_result("differs", level)  # type: ignore[no-untyped-call]
        return answer is not None
