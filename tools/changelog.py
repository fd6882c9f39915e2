"""The changelog, made of one small file for each change (``changelog.d/README.md``).

``python -m tools.changelog`` prints the section of the next release. ``python -m tools.changelog release VERSION
YYYY-MM-DD`` writes it into ``CHANGELOG.md`` and deletes the files.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("added", "changed", "fixed", "removed")
MOST_SENTENCES = 3
_NAME = re.compile(rf"[a-z0-9]+(?:-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_END_OF_SENTENCE = re.compile(r"[.!?](?=\s|$)")


@dataclass(frozen=True)
class Entry:
    """One change: its kind and its text in one line."""

    kind: str
    text: str


def files(folder: Path) -> list[Path]:
    """The files of changes, by name."""
    return sorted(each for each in folder.iterdir() if each.name != "README.md")


def problems(folder: Path) -> list[str]:
    """What is wrong with the files of a folder."""
    return [f"{each.name}: {problem}" for each in files(folder) if (problem := _problem(each))]


def _problem(file: Path) -> str:
    if not _NAME.fullmatch(file.name):
        return f"the name must be WHAT.KIND.md, with one of the kinds {', '.join(KINDS)}"
    text = file.read_text(encoding="utf-8").strip()
    sentences = len(_END_OF_SENTENCE.findall(re.sub(r"`[^`]*`", "", text)))
    if not text.endswith(".") or not 1 <= sentences <= MOST_SENTENCES:
        return f"it must hold 1 to {MOST_SENTENCES} sentences"
    return "it must hold sentences alone: no heading, no list" if text.startswith(("#", "-", "*")) else ""


def entries(folder: Path) -> list[Entry]:
    """The changes of a folder, by kind and name. Their links are those of the changelog, which is one folder up."""
    found = [
        Entry(
            each.suffixes[0].removeprefix("."),
            " ".join(each.read_text(encoding="utf-8").replace("](../", "](").split()),
        )
        for each in files(folder)
    ]
    return sorted(found, key=lambda entry: KINDS.index(entry.kind))


def section(title: str, found: list[Entry]) -> str:
    """A section of the changelog."""
    lines = [f"## {title}"]
    for kind in KINDS:
        texts = [f"- {each.text}" for each in found if each.kind == kind]
        if texts:
            lines += ["", f"### {kind.capitalize()}", "", *texts]
    return "\n".join(lines) + "\n"


def released(changelog: str, new: str) -> str:
    """The changelog with a new section above the others."""
    head, newest, rest = changelog.partition("\n## ")
    return f"{head}\n{new}{newest}{rest}"


def release(root: Path, version: str, day: str) -> None:
    """Move the changes into the changelog."""
    if not _VERSION.fullmatch(version):
        raise SystemExit(f"{version} is not a version like 0.2.0")
    date.fromisoformat(day)
    folder, changelog = root / "changelog.d", root / "CHANGELOG.md"
    new = section(f"{version} - {day}", entries(folder))
    changelog.write_text(released(changelog.read_text(encoding="utf-8"), new), encoding="utf-8")
    for each in files(folder):
        each.unlink()


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Print the next section, or make it."""
    wrong = problems(root / "changelog.d")
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    match arguments:
        case []:
            print(section("Unreleased", entries(root / "changelog.d")), end="")
        case ["release", version, day]:
            release(root, version, day)
        case _:
            print("usage: python -m tools.changelog [release VERSION YYYY-MM-DD]", file=sys.stderr)
            return 64
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
