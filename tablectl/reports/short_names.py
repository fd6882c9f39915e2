"""Tables by path in reports: the folder that all of them share stands once above them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from tablectl.delta.names import NameSyntaxError, parse_table
from tablectl.documents.document import Block, Card, Cell, Document, Fold, Grid, Names, Row

_log = logging.getLogger(__name__)


def shared_folder(names: Iterable[str]) -> str:
    """The folder in which all tables lie, with its slash; empty for fewer than two, and for tables of a catalog."""
    places = [_place(each) for each in set(names)]
    if len(places) < 2 or not all(places):
        return ""
    steps = zip(*(each.split("/")[:-1] for each in places), strict=False)
    folder = "/".join(step[0] for step in takewhile(lambda step: len(set(step)) == 1, steps))
    return f"{folder}/" if folder.strip("/") and not folder.endswith((":/", ":")) else ""


def with_short_names(document: Document) -> Document:
    """The document with the folder of its tables, and their names below it. An unexpected error costs no report: its
    names stay whole.
    """
    try:
        return _shortened(document)
    except Exception as error:  # noqa: BLE001  # a name that cannot be shortened is still a name
        _log.debug("the names of tables cannot be shortened", exc_info=error)
        return document


def _shortened(document: Document) -> Document:
    tables = [name for card in document.cards if card.noun == "table" for name in card.names]
    if not document.cards and document.overview:
        tables = [cell.text for row in document.overview.rows for cell in row.cells[0] if cell.code]
    folder = shared_folder([*tables, *filter(_place, _listed(document.tail))])
    if not folder or not tables:
        return document
    short = _Short(folder)
    grid = document.overview
    return replace(
        document,
        folder=folder,
        head=tuple(replace(each, names=short.names(each.names)) for each in document.head),
        cards=tuple(map(short.card, document.cards)),
        overview=short.grid(grid) if grid else None,
        tail=short.blocks(document.tail),
    )


@dataclass(frozen=True, slots=True)
class _Short:
    """Replaces the names of the tables in a folder by what comes after the folder."""

    folder: str

    def names(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self.name, names))

    def name(self, name: str) -> str:
        place = _place(name)
        return place.removeprefix(self.folder) if place.startswith(self.folder) else name

    def card(self, card: Card) -> Card:
        names, details = self.names(card.names), self.blocks(card.details)
        return replace(card, names=names, brief=self.blocks(card.brief), details=details)

    def blocks(self, blocks: Iterable[Block]) -> tuple[Block, ...]:
        return tuple(map(self.block, blocks))

    def block(self, block: Block) -> Block:
        if isinstance(block, Names) and not block.warns:
            return replace(block, names=self.names(block.names))
        if isinstance(block, Fold):
            return replace(block, blocks=self.blocks(block.blocks))
        return self.grid(block) if isinstance(block, Grid) else block

    def grid(self, grid: Grid) -> Grid:
        return replace(grid, rows=tuple(map(self.row, grid.rows)))

    def row(self, row: Row) -> Row:
        return replace(row, cells=tuple(tuple(map(self.cell, lines)) for lines in row.cells))

    def cell(self, cell: Cell) -> Cell:
        return replace(cell, text=self.name(cell.text)) if cell.code else cell


def _listed(blocks: Iterable[Block]) -> Iterator[str]:
    """The tables of lists that are not of patterns."""
    return (name for block in blocks if isinstance(block, Names) and not block.warns for name in block.names)


def _place(name: str) -> str:
    try:
        table = parse_table(name)
    except NameSyntaxError:  # a pattern that could not be looked up
        return ""
    return table.parts[0] if table.is_path else ""
