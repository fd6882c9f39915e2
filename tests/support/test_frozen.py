"""``frozen`` makes what ``dataclass(frozen=True, slots=True)`` makes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.support.frozen import frozen


@frozen
class Column:
    """A class of the usual kind."""

    name: str
    width: int = 1
    note: str = field(default="", compare=False, repr=False)


@frozen(kw_only=True)
class Table:
    """With a field that has no default after one that has."""

    comment: str = ""
    columns: tuple[Column, ...]


@frozen
class Nothing:
    """Without fields."""


@frozen
class Short:
    """With methods of its own."""

    text: str

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Short) and other.text.lower() == self.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())


def made_by_dataclass(name: str, width: int, note: str) -> Any:
    @dataclass(frozen=True, slots=True)
    class Column:
        name: str
        width: int = 1
        note: str = field(default="", compare=False, repr=False)

    Column.__qualname__ = "Column"
    return Column(name, width, note)


COLUMNS = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2), st.sampled_from(["", "x"]))


@given(COLUMNS, COLUMNS)
def test_it_compares_hashes_and_prints_as_a_dataclass(one: tuple[str, int, str], other: tuple[str, int, str]) -> None:
    assert (Column(*one) == Column(*other)) == (one[:2] == other[:2])
    assert (hash(Column(*one)) == hash(Column(*other))) or one[:2] != other[:2]
    assert hash(Column(*one)) == hash(made_by_dataclass(*one))
    assert repr(Column(*one)) == repr(made_by_dataclass(*one))


def test_no_field_can_be_set_or_deleted_or_added() -> None:
    column: Any = Column("a")
    with pytest.raises(FrozenInstanceError):
        column.name = "b"
    with pytest.raises(FrozenInstanceError):
        del column.name
    with pytest.raises((AttributeError, TypeError)):
        column.other = 1
    assert not hasattr(column, "__dict__")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, replace, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_are_equal(again: Callable[[Any], Any]) -> None:
    table = Table(columns=(Column("a", 2),))
    assert again(table) == table


def test_its_fields_are_those_of_a_dataclass() -> None:
    assert [each.name for each in fields(Column)] == ["name", "width", "note"]
    assert asdict(Table(columns=(Column("a"),))) == {
        "comment": "",
        "columns": ({"name": "a", "width": 1, "note": ""},),
    }
    match Column("a", 2):
        case Column(name, width):
            assert (name, width) == ("a", 2)


def test_a_class_is_equal_to_no_other() -> None:
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    assert Nothing() != Short("a")
    assert Column("a") != made_by_dataclass("a", 1, "")


def test_methods_of_the_class_stay() -> None:
    assert Short("A") == Short("a")
    assert {Short("A"), Short("a")} == {Short("a")}
    assert repr(Short("a")) == "<a>"
