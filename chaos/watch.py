"""What is seen of a running apply from outside: its lease records, its commits, and for how long a guard waits."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tablectl

_POLL = 0.03
PROBE_TTL = 10.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A lease record, when it was first seen (seconds since the epoch), and the few fields that are looked at."""

    table: str
    at: float
    run: str
    kind: str
    gate: str
    statement: bool = False
    """Whether a statement may run on in the engine: writers wait for its bound as well."""


class Bucket:
    """The records of ``state:`` in a bucket, by a client of its own that no fault touches."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    def records(self, known: set[str]) -> Iterator[tuple[str, str]]:
        """Key and text of each lease record that is not known yet."""
        listed = self._client.list_objects_v2(Bucket=self._name).get("Contents", [])
        for key in (entry["Key"] for entry in listed):
            if "/lease/" in key and key not in known:
                with suppress(Exception):  # pruned since it was listed
                    yield key, self._client.get_object(Bucket=self._name, Key=key)["Body"].read().decode()


@dataclass
class Watch:
    """Polls the tables of a round until it is closed."""

    tables: tuple[Path, ...]
    bucket: Bucket | None
    seen: list[Seen] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to poll."""
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look once more and stop."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def acquired(self, table: str) -> dict[str, float]:
        """When each run took the lease of a table."""
        found: dict[str, float] = {}
        for each in list(self.seen):
            if each.table == table:
                found.setdefault(each.run, each.at)
        return found

    def in_flight(self) -> set[str]:
        """The tables whose newest record says that a statement may run."""
        newest = {each.table: each.statement for each in list(self.seen)}
        return {table for table, statement in newest.items() if statement}

    def lost(self, table: str) -> dict[str, str]:
        """Runs that another run took the lease from: which one, by which."""
        found: dict[str, str] = {}
        holder = ""
        for each in [seen for seen in list(self.seen) if seen.table == table]:
            if each.kind in {"release", "break"}:
                holder = ""
            elif each.run:
                if holder not in {"", each.run}:
                    found[holder] = each.run
                holder = each.run
        return found

    def _poll(self) -> None:
        while not self._stop.is_set():
            self._look()
            self._stop.wait(_POLL if self.bucket is None else 10 * _POLL)
        self._look()

    def _look(self) -> None:
        for name, text in self._on_disk() if self.bucket is None else self.bucket.records(self._known):
            self._known.add(name)
            with suppress(ValueError):
                body = json.loads(text)
                run, kind, gate = (str(body.get(key, "")) for key in ("run", "kind", "gate"))
                statement = bool(body.get("running"))
                self.seen.append(Seen(self._table(name), time.time(), run, kind, gate, statement))

    def _on_disk(self) -> Iterator[tuple[str, str]]:
        for place in self.tables:
            for path in sorted((place / "_tablectl" / "lease").glob("*.json")):
                if str(path) not in self._known:
                    with suppress(OSError):
                        yield str(path), path.read_text(encoding="utf-8")

    def _table(self, name: str) -> str:
        """Records lie below the table's folder, or in a bucket's folder whose name ends with the table's."""
        return next((place.name for place in self.tables if f"/{place.name}/" in name or f"-{place.name}-" in name), "")

    def commits(self) -> int:
        """How many commits of applies there are on all tables."""
        count = 0
        for place in self.tables:
            for path in (place / "_delta_log").glob("[0-9]*.json"):
                if str(path) not in self._stamped:
                    with suppress(OSError):
                        self._stamped[str(path)] = '\\"tablectl\\"' in path.read_text(encoding="utf-8")
                count += self._stamped.get(str(path), False)
        return count

    _stamped: dict[str, bool] = field(default_factory=dict)


@dataclass
class Probe:
    """A guard of the strictest mode at each table, from now on: how long a writer that waits for nothing else waits."""

    tables: tuple[Path, ...]
    state: str | None
    limit: float
    waited: dict[str, float] = field(default_factory=dict)

    def start(self) -> Callable[[], Mapping[str, float]]:
        """Begin to wait at every table; what it gives waits for all and has the seconds by table, ``limit`` at most."""
        threads = [threading.Thread(target=self._enter, args=(place,), daemon=True) for place in self.tables]
        for thread in threads:
            thread.start()

        def result() -> Mapping[str, float]:
            for thread in threads:
                thread.join()
            return self.waited

        return result

    def _enter(self, place: Path) -> None:
        began = time.monotonic()
        with (
            suppress(tablectl.GuardTimeout),
            tablectl.guard(None, place, "any", name="probe", timeout=self.limit, state=self.state, ttl=PROBE_TTL),
        ):
            pass
        self.waited[place.name] = time.monotonic() - began
