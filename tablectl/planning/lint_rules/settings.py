"""Rules about settings that conflict with each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tablectl.attributes.policy import declaration_of
from tablectl.attributes.statistics import STATS_KEYS, has_statistics, names_statistics
from tablectl.delta import keys
from tablectl.delta.names import column_text
from tablectl.delta.properties import DEFAULT_FILE_RETENTION, DEFAULT_LOG_RETENTION, written_text
from tablectl.model.text import cut
from tablectl.planning.lint_rules.linted_state import LintedState, RuleFinding

_WEEK = 7 * 86_400_000_000
_FORMATS = ((keys.iceberg_compat(1), "v1"), (keys.iceberg_compat(2), "v2"))


def clustering_beside_partitioning(subject: LintedState) -> Iterator[RuleFinding]:
    """L001: clustering is declared on a partitioned table."""
    if subject.columns and isinstance(subject.partitioning, tuple):
        by = ", ".join(subject.partitioning)
        yield RuleFinding("L001", f"clustering is declared, and the table is partitioned by {by}", "clustering")


def vectors_beside_manifests(subject: LintedState) -> Iterator[RuleFinding]:
    """L002: deletion vectors and symlink manifests are both enabled."""
    if subject.is_true(keys.DELETION_VECTORS) and subject.is_true(keys.MANIFEST):
        yield RuleFinding("L002", f"deletion vectors are on, and so is {keys.MANIFEST}", "deletion_vectors")


def vectors_beside_uniform(subject: LintedState) -> Iterator[RuleFinding]:
    """L003: deletion vectors and an Iceberg compatibility without them are both enabled."""
    for key, name in _FORMATS:
        if subject.is_true(keys.DELETION_VECTORS) and subject.is_true(key):
            yield RuleFinding(
                "L003", f"deletion vectors are on, and the table is Iceberg {name} too", "deletion_vectors"
            )


def statistics_miss_clustering(subject: LintedState) -> Iterator[RuleFinding]:
    """L004: clustering columns have no statistics. Columns that the plan itself sets are refused instead, and not
    reported.
    """
    if subject.live is not None:
        if "clustering" in subject.changed:
            return
        schema = subject.live.schema
        missing = [each for each in subject.columns if not has_statistics(each, schema, subject.value)]
    else:
        named = subject.value(STATS_KEYS[1])
        missing = [each for each in subject.columns if named is not None and not names_statistics(each, named)]
    if missing:
        key = STATS_KEYS[0] if subject.value(STATS_KEYS[1]) is None else STATS_KEYS[1]
        shown = ", ".join(map(column_text, missing))
        yield RuleFinding(
            "L004", f"the table is clustered by {shown}, which {key} leaves without statistics", declaration_of(key)
        )


def log_shorter_than_tombstones(subject: LintedState) -> Iterator[RuleFinding]:
    """L005: the log is kept for a shorter time than deleted files."""
    log, files = _log(subject), _files(subject)
    if isinstance(log, int) and isinstance(files, int) and log < files:
        text = f"the log is kept {_log_span(subject)}, deleted files {_file_span(subject)}"
        key = keys.LOG_RETENTION if subject.value(keys.LOG_RETENTION) else keys.DELETED_FILE_RETENTION
        yield RuleFinding("L005", text, declaration_of(key))


def tombstones_short(subject: LintedState) -> Iterator[RuleFinding]:
    """L006: deleted files are kept for a short time only."""
    kept = _files(subject)
    if isinstance(kept, int) and kept < _WEEK:
        text = f"deleted files are kept {_file_span(subject)} only"
        yield RuleFinding("L006", text, declaration_of(keys.DELETED_FILE_RETENTION))


def log_never_cleaned(subject: LintedState) -> Iterator[RuleFinding]:
    """L016: the log is never cleaned up."""
    if (subject.value(keys.LOG_CLEANUP) or "").lower() == "false":
        yield RuleFinding(
            "L016", f"{keys.LOG_CLEANUP} is off: the log grows without limit", declaration_of(keys.LOG_CLEANUP)
        )


def clustering_rewrites_nothing(subject: LintedState) -> Iterator[RuleFinding]:
    """L017: the clustering columns change, and no OPTIMIZE follows."""
    live = subject.live
    if live and subject.touches("clustering") and subject.columns and subject.optimize == "never" and live.files != 0:
        yield RuleFinding("L017", "files stay as they are until OPTIMIZE clusters them", "clustering")


def indexed_count_ignored(subject: LintedState) -> Iterator[RuleFinding]:
    """L019: the number of indexed columns is set, and a list of columns takes precedence."""
    count = subject.value(keys.INDEXED_COLUMNS)
    if count is not None and subject.value(keys.STATISTICS_COLUMNS) is not None:
        text = f"{keys.INDEXED_COLUMNS} is {count}, and the list of statistics columns takes precedence"
        yield RuleFinding("L019", text, declaration_of(keys.INDEXED_COLUMNS))


def time_travel_shorter_than_log(subject: LintedState) -> Iterator[RuleFinding]:
    """L020: the policy declares a log that is kept for longer than the files that its versions need."""
    declared = subject.declared.declared().get("retention")
    if not isinstance(declared, Mapping) or "log" not in declared:
        return
    log, files = _log(subject), _files(subject)
    if isinstance(log, int) and isinstance(files, int) and log > files:
        text = f"the log is kept {_log_span(subject)}, deleted files {_file_span(subject)}"
        yield RuleFinding("L020", text, "retention.log")


def log_short_for_streams(subject: LintedState) -> Iterator[RuleFinding]:
    """L021: streams write the table, and the log is kept for less than a week."""
    log = _log(subject)
    streams = {each.app_id for commit in subject.history for each in commit.transactions}
    if streams and isinstance(log, int) and log < _WEEK:
        text = f"the log is kept {_log_span(subject)}; recent streams: {len(streams)}"
        yield RuleFinding("L021", text, "retention.log")


def text_that_clients_ignore(subject: LintedState) -> Iterator[RuleFinding]:
    """L022: the table stores a value in a text that some client ignores."""
    for key, stored in sorted(subject.live.properties.items()) if subject.live else ():
        written = written_text(key, stored)
        if written != stored:
            text = f"delta-rs ignores the stored text of {key}, {cut(stored)}: it reads {written}"
            yield RuleFinding("L022", text, declaration_of(key))


def _log(subject: LintedState) -> object | None:
    return subject.meaning(keys.LOG_RETENTION, DEFAULT_LOG_RETENTION)


def _files(subject: LintedState) -> object | None:
    return subject.meaning(keys.DELETED_FILE_RETENTION, DEFAULT_FILE_RETENTION)


def _file_span(subject: LintedState) -> str:
    return _span(subject.value(keys.DELETED_FILE_RETENTION) or DEFAULT_FILE_RETENTION)


def _log_span(subject: LintedState) -> str:
    return _span(subject.value(keys.LOG_RETENTION) or DEFAULT_LOG_RETENTION)


def _span(text: str) -> str:
    span = text.strip().removeprefix("interval").removeprefix("INTERVAL").strip()
    return re.sub(r"\b1 (\w+)s\b", r"1 \1", span)
