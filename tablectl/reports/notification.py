"""What a notification says: the event and its tables, for programs. From masked results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tablectl.documents.style import titled
from tablectl.model.errors import ExitCode, TablectlError
from tablectl.model.run_report import RunOutcome, RunReport
from tablectl.model.safe_text import natural_key, printable
from tablectl.planning.drift import Drift
from tablectl.policies.config import NotifyEvent
from tablectl.reports.drift_document import drift_verdict, table_provenance
from tablectl.reports.report_context import Context
from tablectl.reports.wording import GOOD, outcome_text, run_verdict

_MOST_TABLES = 100
"""Tables in the JSON for commands."""
_LONGEST = 500
_NO_OWNERS: Mapping[str, str] = MappingProxyType({})
_REFUSED = frozenset({RunOutcome.REFUSED, RunOutcome.STALE})


@dataclass(frozen=True, slots=True)
class NotifiedTable:
    """A table that the receiver should look at, or that was changed."""

    name: str
    state: str
    message: str = ""
    owner: str = ""
    """Who is responsible for the table, by its policy; empty if no policy says."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One event."""

    event: NotifyEvent
    title: str
    """One line: ``Apply (prod): Applied and verified``."""
    counts: tuple[str, ...]
    tables: tuple[NotifiedTable, ...] = ()
    env: str = ""
    run: str = ""
    exit_code: int = 0


def run_notification(report: RunReport, owners: Mapping[str, str] = _NO_OWNERS) -> Notification | None:
    """The notification of a run; ``None`` for a run without anything to do. ``owners`` are those of its tables, by
    name.
    """
    code = report.exit_code
    if code is ExitCode.DONE and not report.committed:
        return None
    wrong = [table for table in report.tables if table.outcome not in GOOD]
    only_refused = bool(wrong) and not report.failures and all(table.outcome in _REFUSED for table in wrong)
    event: NotifyEvent = "applied" if code is ExitCode.DONE else "refused" if only_refused else "failed"
    tables = [NotifiedTable(each.name, outcome_text(each), each.message) for each in wrong]
    tables += [NotifiedTable(each.name, "not readable", each.message) for each in report.failures]
    if not tables:
        tables = [NotifiedTable(each.name, outcome_text(each)) for each in report.tables if each.commits]
    tables = [replace(each, owner=owners.get(each.name, "")) for each in tables]
    verdict = run_verdict(report)
    title = f"{titled('Apply', report.env)}: {verdict.title}"
    return Notification(event, title, verdict.parts, _sorted(tables), report.env, report.run, int(code))


def drift_notification(drift: Drift) -> Notification | None:
    """The notification of drift; ``None`` without any. Tables that cannot be read are told as failed."""
    if not drift.tables and not drift.failures:
        return None
    verdict = drift_verdict(drift)
    tables = [NotifiedTable(each.name, "not readable", each.message) for each in drift.failures]
    tables += [
        NotifiedTable(
            each.spec.name.text,
            str(table_provenance(each)),
            ", ".join(one.change.id for one in each.differences),
            each.spec.owner,
        )
        for each in drift.tables
    ]
    event: NotifyEvent = "drift" if drift.tables else "failed"
    title = f"{titled('Drift', drift.env)}: {verdict.title}"
    return Notification(event, title, verdict.parts, _sorted(tables), drift.env, "", int(drift.exit_code))


def error_notification(subject: str, error: TablectlError, env: str) -> Notification:
    """The notification of a command that ended without a result."""
    event: NotifyEvent = "refused" if error.exit_code is ExitCode.REFUSED else "failed"
    message = error.message.partition("\n")[0]
    return Notification(event, f"{titled(subject, env)}: {message}", (), (), env, "", int(error.exit_code))


def _sorted(tables: Sequence[NotifiedTable]) -> tuple[NotifiedTable, ...]:
    return tuple(sorted(tables, key=lambda each: natural_key(each.name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SentNotification:
    """What a command reads, as JSON (docs/notifications.md)."""

    format: int = 1
    event: NotifyEvent
    title: str
    counts: tuple[str, ...]
    env: str
    run: str
    exit_code: int
    tables: tuple[NotifiedTable, ...]
    """At most 100."""
    table_count: int
    """How many there are."""
    repository: str
    commit: str
    author: str
    url: str


def for_command(notification: Notification, context: Context) -> SentNotification:
    """What a command reads, without long texts."""
    return SentNotification(
        event=notification.event,
        title=_cut(notification.title),
        counts=notification.counts,
        env=notification.env,
        run=notification.run,
        exit_code=notification.exit_code,
        tables=tuple(
            replace(each, name=_cut(each.name), message=_cut(each.message), owner=_cut(each.owner))
            for each in notification.tables[:_MOST_TABLES]
        ),
        table_count=len(notification.tables),
        repository=context.repository,
        commit=context.commit,
        author=context.author,
        url=context.address,
    )


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
