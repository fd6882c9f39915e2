"""Tables by path: their folder stands once above them."""

from __future__ import annotations

import pytest

from tablectl.documents.document import Card, Cell, Document, Fold, Grid, Names, Row
from tablectl.documents.style import Style
from tablectl.reports import short_names
from tablectl.reports.document_text import document_text
from tablectl.reports.short_names import shared_folder, with_short_names


@pytest.mark.parametrize(
    ("names", "folder"),
    [
        (("delta.`/lake/orders`", "delta.`/lake/items`"), "/lake/"),
        (("delta.`/lake/sales/orders`", "delta.`/lake/items`"), "/lake/"),
        (("delta.`/lake/or`", "delta.`/lake/orders`"), "/lake/"),
        (("delta.`s3://bucket/a`", "delta.`s3://bucket/b`"), "s3://bucket/"),
        (("delta.`s3://one/a`", "delta.`s3://two/a`"), ""),
        (("delta.`/a`", "delta.`/b`"), ""),
        (("delta.`/lake/orders`", "lake.sales.items"), ""),
        (("delta.`/lake/orders`",), ""),
        (("lake.sales.orders", "lake.sales.items"), ""),
    ],
)
def test_the_folder_is_whole_and_shared_by_all(names: tuple[str, ...], folder: str) -> None:
    assert shared_folder(names) == folder


def test_a_report_shows_names_below_the_folder() -> None:
    names = ("delta.`/lake/orders`", "delta.`/lake/sales/items`")
    rows = (Row(((Cell(names[0], code=True),),)),)
    card = Card(names=names, state="same", tone="", mark="~")
    shown = with_short_names(Document("Plan", None, overview=Grid("", ("Table",), rows), cards=(card,)))
    assert shown.folder == "/lake/"
    assert shown.cards[0].names == ("orders", "sales/items")
    assert shown.overview is not None
    assert shown.overview.rows[0].cells[0][0].text == "orders"
    assert document_text(shown, Style()) == "In /lake/:\n\n~ 2 tables  same\n  orders, sales/items\n"


def test_lists_of_tables_and_folded_parts_show_the_same_short_names() -> None:
    names, other = ("delta.`/lake/orders`", "delta.`/lake/items`"), "lake.sales.x"
    inner = Fold("All", (Grid("", ("Table",), (Row(((Cell(names[0], code=True),),)),)),))
    card = Card(names=names[:1], state="same", tone="", mark="~", details=(inner, Names("All", names)))
    unchanged, patterns = Names("2 unchanged", (names[1], other)), Names("1", (names[1],), warns=True)
    shown = with_short_names(
        Document("Plan", None, head=(Names("", names),), cards=(card,), tail=(unchanged, patterns))
    )
    assert shown.folder == "/lake/"
    assert shown.cards[0].names == ("orders",)
    assert shown.head[0].names == ("orders", "items")
    assert shown.tail == (Names("2 unchanged", ("items", other)), patterns)
    fold, every = shown.cards[0].details
    assert isinstance(fold, Fold)
    assert every == Names("All", ("orders", "items"))
    (grid,) = fold.blocks
    assert isinstance(grid, Grid)
    assert grid.rows[0].cells[0][0].text == "orders"


def test_a_report_that_is_a_grid_shows_short_names_too() -> None:
    rows = tuple(Row(((Cell(f"delta.`/lake/{name}`", code=True),), (Cell("as declared"),))) for name in ("a", "b"))
    shown = with_short_names(Document("Status", None, overview=Grid("", ("Table", "State"), rows)))
    assert shown.folder == "/lake/"
    assert shown.overview is not None
    assert [row.cells[0][0].text for row in shown.overview.rows] == ["a", "b"]


def test_names_stay_whole_if_they_cannot_be_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(short_names, "parse_table", broken)
    cards = tuple(Card((f"delta.`/lake/{name}`",), "changes", "", "", noun="table") for name in ("a", "b"))
    document = Document("Plan", None, cards=cards)
    assert with_short_names(document) == document
