"""Counts the forms that a declared value takes on its way from YAML to SQL, and the files whose functions handle it.

``python -m tools.trace_value`` plans one table by the policy ``clustering: [parcel_no]``, under ``sys.setprofile``.
A function handles the value if an argument or its result holds it, at any depth. A form is a frozen record or a plain
shape (bytes, text, names, a dict) that holds it. Records of many declarations or tables, which only pass it on, are
listed apart, and so are files whose functions take and return nothing else. Tracing ends with the statement.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import tablectl

VALUE = "parcel_no"
"""Occurs nowhere in the code. The table spells it in capitals, as its changes do; its own schema does not count."""
_PACKAGE = Path(tablectl.__file__).parent
_READERS = ("log", "storage", "engine", "catalogs")
"""Packages that read the table: not on the way from the policy."""
_OF_THE_TABLE = {"LiveTable", "Schema", "Field"}
_COLLECTIONS = {
    *("MapNode", "_Document", "Repository", "Declarations", "Specs", "LocatedTable", "DerivedTable", "ChangeTarget")
}
"""Records that hold the values of many tables, or everything about one: they pass the value on."""
_DEEPEST = 12


@dataclass
class Trace:
    """What was seen, in the order in which it was first seen."""

    forms: dict[str, str] = field(default_factory=dict)
    """Form → the file in which it was first seen."""
    collections: dict[str, str] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    """File → the number of its functions that handle the value."""
    functions: set[str] = field(default_factory=set)
    passing: set[str] = field(default_factory=set)
    """Files with functions that only pass collections on."""
    changed: bool = False
    """Whether a change has been made, which holds the table's spelling."""
    ended: bool = False

    def profile(self, frame: FrameType, event: str, result: object) -> None:
        """As ``sys.setprofile`` calls it."""
        if self.ended or event not in {"call", "return"}:
            return
        file = Path(frame.f_code.co_filename)
        if not file.is_relative_to(_PACKAGE):
            return
        name = str(file.relative_to(_PACKAGE))
        if name.partition("/")[0] in _READERS:
            return
        self.changed = self.changed or type(result).__name__ == "Change"
        spellings = (VALUE, VALUE.upper()) if self.changed else (VALUE,)
        handled = list(frame.f_locals.values()) if event == "call" else [result]
        holding = [each for each in handled if _holds(each, spellings, 0)]
        for each in holding:
            self._note(each, name)
        function = f"{name}:{frame.f_code.co_qualname}"
        if holding and all(_only_passes(each, spellings) for each in holding):
            self.passing.add(name)
        elif holding and function not in self.functions:
            self.functions.add(function)
            self.files[name] = self.files.get(name, 0) + 1
        self.ended = event == "return" and type(result).__name__ == "Statement"

    def _note(self, found: object, file: str) -> None:
        form = _form(found)
        if form in _COLLECTIONS:
            self.collections.setdefault(form, file)
        elif form:
            self.forms.setdefault(form, file)


def _holds(found: object, spellings: tuple[str, ...], depth: int) -> bool:
    if isinstance(found, str):
        return any(each in found for each in spellings)
    if isinstance(found, bytes):
        return any(each.encode() in found for each in spellings)
    if depth > _DEEPEST or type(found).__name__ in _OF_THE_TABLE:
        return False
    return any(_holds(each, spellings, depth + 1) for each in _parts(found))


def _only_passes(found: object, spellings: tuple[str, ...]) -> bool:
    """Whether what holds the value is a collection, or several in a tuple."""
    if isinstance(found, tuple):
        return all(_only_passes(each, spellings) for each in found if _holds(each, spellings, 0))
    return type(found).__name__ in _COLLECTIONS


def _parts(found: object) -> Iterator[object]:
    if isinstance(found, Mapping):
        yield from found.keys()
        yield from found.values()
    elif isinstance(found, tuple | list | set | frozenset):
        yield from found
    elif is_dataclass(found) and not isinstance(found, type):
        yield from (getattr(found, each.name, None) for each in fields(found))


def _form(found: object) -> str:
    """The form of an object that holds the value; empty for one that is none, such as a list of records."""
    if isinstance(found, bytes):
        return "bytes"
    if isinstance(found, str):
        return "name" if found.lower() == VALUE else "SQL" if "CLUSTER BY" in found else "text"
    if isinstance(found, Mapping):
        return "dict" if all(isinstance(each, str | tuple | None) for each in found.values()) else ""
    if isinstance(found, tuple | list) and found:
        inner = {type(each) for each in found}
        if inner == {str}:
            return "names"
        return "paths" if inner <= {tuple, list} and {type(part) for each in found for part in each} == {str} else ""
    record = is_dataclass(found) and type(found).__setattr__ is not object.__setattr__  # a frozen one
    return type(found).__name__ if record else ""


def make_table(folder: Path) -> None:
    """A Delta table with one column and one file, as its log says."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    column = {"name": VALUE.upper(), "type": "long", "nullable": True, "metadata": {}}
    schema = json.dumps({"type": "struct", "fields": [column]})
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "5b1d6f8e-0000-4000-8000-000000000000",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
            }
        },
        {"add": {"path": "a.parquet", "partitionValues": {}, "size": 9, "modificationTime": 0, "dataChange": True}},
    ]
    (log / f"{0:020}.json").write_text("".join(f"{json.dumps(each)}\n" for each in actions))


def trace(folder: Path) -> Trace:
    """The way of the value in a plan of one table in a folder."""
    make_table(folder / "orders")
    policies = folder / "policies"
    policies.mkdir()
    text = f"version: 1\ntables:\n  delta.`{folder / 'orders'}`:\n    clustering: [{VALUE}]\n"
    (policies / "tables.yaml").write_text(text)
    (folder / "tablectl.yaml").write_text("policies: policies\n")
    seen = Trace()
    sys.setprofile(seen.profile)
    try:
        tablectl.plan(directory=folder)
    finally:
        sys.setprofile(None)
    return seen


def main() -> None:
    """Print the way of the value."""
    with TemporaryDirectory() as folder:
        seen = trace(Path(folder))
    for title, found in (("forms", seen.forms), ("collections", seen.collections)):
        print(f"{len(found)} {title}")
        for form, file in found.items():
            print(f"  {form:20} {file}")
    print(f"{len(seen.files)} files, {len(seen.functions)} functions")
    for file, count in seen.files.items():
        print(f"  {count:3} {file}")
    print("files that only pass collections on")
    for file in sorted(seen.passing - seen.files.keys()):
        print(f"      {file}")


if __name__ == "__main__":
    main()
