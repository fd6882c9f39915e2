"""Links that others put into the folder of a table, at any moment."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tablectl.model.errors import TablectlError
from tablectl.storage.disk_log import DiskLog, each_data_file
from tablectl.storage.mounts import own_place
from tablectl.storage.records import DiskRecords
from tests.commands.link_watch import Watch
from tests.fuzz.subject import Subject

_FILES = (
    f"_delta_log/{0:020d}.json",
    "_delta_log/_last_checkpoint",
    "_delta_log/_sidecars/s.parquet",
    f"_delta_log/_staged_commits/{1:020d}.x.json",
    f"_tablectl/lease/{1:020d}.json",
    "_tablectl/guards/ab.1.json",
    "_tablectl/copy/00000000000001-000001.0.1.json",
    "day=1/part-0.parquet",
)
_PLACES = sorted({str(above) for file in _FILES for above in (Path(file), *Path(file).parents)})


def _uses(log: DiskLog, records: DiskRecords, random: Random) -> list[Callable[[], object]]:
    file = random.choice(_FILES)
    name = random.choice((f"lease/{1:020d}.json", f"lease/{2:020d}.json", "guards/ab.1.json", "upkeep/a.json"))
    return [
        log.names,
        log.exists,
        lambda: log.read(file.removeprefix("_delta_log/")),
        lambda: list(log.lines(file.removeprefix("_delta_log/"))),
        lambda: log.identity(file.removeprefix("_delta_log/")),
        lambda: list(each_data_file(log)),
        lambda: own_place(log.location),
        lambda: records.names(random.choice(("", "lease/", "guards/", "copy/"))),
        lambda: records.read(name),
        lambda: records.create(name, b"{}"),
        lambda: records.delete(name),
    ]


def replace_by_link(random: Random, table: Path, outside: Path) -> None:
    """Put a link in place of the table, or of something in it."""
    place = table / random.choice(_PLACES)
    targets = (outside, outside / place.relative_to(table), Path("gone"), Path(place.name), outside / _FILES[0])
    if os.path.realpath(place.parent) != str(place.parent):
        return  # behind a link: that is outside
    with suppress(OSError):
        if os.path.lexists(place):
            place.rename(place.with_name(f"{place.name}.aside{random.random()}"))
        place.symlink_to(random.choice(targets))


def linked(random: Random) -> str:
    if not Path("/proc/self/fd").is_dir():
        return "not watched"
    with TemporaryDirectory() as folder:
        table, outside = Path(folder, "lake", "t"), Path(folder, "outside")
        for file in _FILES:
            for top in (table, outside):
                (top / file).parent.mkdir(parents=True, exist_ok=True)
                (top / file).write_bytes(b"{}")
        before = {each: each.read_bytes() if each.is_file() else None for each in outside.rglob("*")}
        chance = random.choice((0.05, 0.3))

        def put(_used: str) -> None:
            if random.random() < chance:
                replace_by_link(random, table, outside)

        watch = Watch(str(table), str(outside), put)
        log, records = DiskLog(str(table)), DiskRecords(str(table), "_tablectl")
        refused = 0
        with watch.watching():
            for _ in range(8):
                try:
                    random.choice(_uses(log, records, random))()
                except TablectlError:
                    refused += 1
        assert not watch.escaped, watch.escaped
        assert {each: each.read_bytes() if each.is_file() else None for each in outside.rglob("*")} == before
        return "refused" if refused else "done"


SUBJECTS = (
    Subject("links", "nothing behind a link in a table's folder is opened, listed or changed", linked, quick=30),
)
