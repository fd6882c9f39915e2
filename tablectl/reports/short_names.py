"""Tables by path in reports: the folder that all of them share stands once above them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile

from tablectl.delta.names import NameSyntaxError, parse_table
from tablectl.reports.document import Card, Cell, Document, Grid, Row


def shared_folder(names: Iterable[str]) -> str:
    """The folder in which all tables lie, with its slash; empty for fewer than two, and for tables of a catalog."""
    places = [_place(each) for each in set(names)]
    if len(places) < 2 or not all(places):
        return ""
    steps = zip(*(each.split("/")[:-1] for each in places), strict=False)
    folder = "/".join(step[0] for step in takewhile(lambda step: len(set(step)) == 1, steps))
    return f"{folder}/" if folder.strip("/") and not folder.endswith((":/", ":")) else ""


def with_short_names(document: Document) -> Document:
    """The document with the folder of its tables, and their names below it."""
    folder = shared_folder(name for card in document.cards if card.noun == "table" for name in card.names)
    if not folder:
        return document
    names = {name: _place(name).removeprefix(folder) for card in document.cards for name in card.names}

    def of_card(card: Card) -> Card:
        return replace(card, names=tuple(names[each] for each in card.names))

    def of_cell(cell: Cell) -> Cell:
        return replace(cell, text=names[cell.text]) if cell.code and cell.text in names else cell

    def of_row(row: Row) -> Row:
        return replace(row, cells=tuple(tuple(map(of_cell, lines)) for lines in row.cells))

    grid = document.overview
    shown: Grid | None = replace(grid, rows=tuple(map(of_row, grid.rows))) if grid else None
    return replace(document, folder=folder, cards=tuple(map(of_card, document.cards)), overview=shown)


def _place(name: str) -> str:
    try:
        table = parse_table(name)
    except NameSyntaxError:  # a pattern that could not be looked up
        return ""
    return table.parts[0] if table.is_path else ""
