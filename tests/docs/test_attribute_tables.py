"""The table of attributes in docs/policies.md lists every attribute, with the values it takes."""

from __future__ import annotations

from pathlib import Path

from tablectl.attributes.policy import ATTRIBUTES
from tablectl.attributes.value_types import ValueType

_ROOT = Path(__file__).parents[2]


def _values(shape: ValueType) -> str:
    if shape.keyed:
        return "map; `null` unsets"
    if shape.named:
        return f"map of {shape.named.takes}"
    if shape.fields:
        return f"map: {', '.join(f'`{each.name}`' for each in shape.fields)}"
    return ", ".join([*(["list of columns"] if shape.columns else []), *(f"`{word}`" for word in shape.words)])


def _rows() -> list[tuple[str, str]]:
    lines = (_ROOT / "docs" / "policies.md").read_text("utf-8").splitlines()
    start = lines.index("| attribute | values | what it declares |") + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        name, values, _ = (cell.strip() for cell in line.strip("|").split(" | ", 2))
        rows.append((name.strip("`"), values))
    return rows


def test_every_attribute_has_a_row_with_its_values() -> None:
    expected = [(each.name, _values(each.value_type)) for each in ATTRIBUTES]
    assert _rows() == expected
