"""A word of conflicts explained on a table: what causes it there, and what becomes of an example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tablectl.conflicts.glossary import Topic
from tablectl.conflicts.matrix import Cell, Verdict, matrix
from tablectl.conflicts.operations import Group
from tablectl.conflicts.reordering import EXAMPLE, Reordering, reordering
from tablectl.conflicts.rules_oss import RELEASES
from tablectl.conflicts.setting import Setting
from tablectl.conflicts.transactions import Level
from tablectl.model.live import Client, LiveTable
from tablectl.planning.outlook import outlook

_DATABRICKS = Client("databricks", (14, 3))


@dataclass(frozen=True, slots=True)
class Place:
    """A kind of table, or one of its clients, and the pairs that fail there in the way that the topic is about."""

    title: str
    setting: Setting
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic, and what it comes to."""

    topic: Topic
    live: LiveTable | None
    """The table that was named."""
    places: tuple[Place, ...]
    example: Reordering | None = None
    """For the levels that a table can have."""


def look_at(topic: Topic, live: LiveTable | None, dialect: str) -> TopicView:
    """The topic on a table, else on the kinds of tables that differ in it."""
    settings = _settings_of(live, dialect) if live else _kinds(dialect)
    places = tuple(Place(title, setting, _cells(topic, setting)) for title, setting in settings if topic.conflict)
    example = None
    if topic.level and topic.level is not Level.SNAPSHOT:
        example = reordering(live or EXAMPLE, _of_spark(settings))
    return TopicView(topic, live, places, example)


def _of_spark(settings: Sequence[tuple[str, Setting]]) -> Setting:
    """Whose transactions the example shows: the others know no level that lets a DELETE pass by an INSERT."""
    found = next((setting for _, setting in settings if setting.client.engine in ("delta-spark", "databricks")), None)
    return found or replace(settings[0][1], client=RELEASES[-1], blind=True)


def _settings_of(live: LiveTable, dialect: str) -> Sequence[tuple[str, Setting]]:
    views = outlook(live, None, dialect).views
    return [(" and ".join(client.text() for client in view.clients), view.live.setting) for view in views]


def _kinds(dialect: str) -> Sequence[tuple[str, Setting]]:
    newest = RELEASES[-1]
    oss = [
        (f"{newest.text()}, without partitions", Setting(client=newest)),
        (f"{newest.text()}, partitioned", Setting(client=newest, partitioned=True)),
    ]
    databricks = [(f"{_DATABRICKS.text()}, without partitions", Setting(client=_DATABRICKS))]
    return [*databricks, *oss] if dialect == "databricks" else [*oss, *databricks]


def _cells(topic: Topic, setting: Setting) -> tuple[Cell, ...]:
    """The writes of rows and of files that fail so. Changes of settings fail each other nearly always."""
    return tuple(
        cell
        for cell in matrix(setting).cells
        if cell.meeting.conflict is topic.conflict
        and cell.verdict is not Verdict.COMMITS
        and cell.loser.group in {Group.ROWS, Group.FILES}
    )
