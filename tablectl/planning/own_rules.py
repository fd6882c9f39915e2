"""Runs lint rules of your own. Whatever they do, they cost no plan: a rule that fails is a finding that names it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from types import MappingProxyType

from tablectl.delta.names import column_text
from tablectl.model.lint_rules import Severities
from tablectl.model.own_rules import FAILED, OwnRule, TableToLint
from tablectl.model.table import LiveTable
from tablectl.model.text import printable
from tablectl.policies.spec import TableSpec

MOST_FINDINGS = 20
"""The findings of one rule on one table. Further ones are left out."""
LONGEST = 500


def with_own_rules(severities: Severities, rules: Sequence[OwnRule], spec: TableSpec) -> Severities:
    """The severities of a table's findings, with the rules that check it."""
    return replace(severities, own=partial(own_findings, rules, spec)) if rules else severities


def own_findings(rules: Sequence[OwnRule], spec: TableSpec, live: LiveTable) -> Iterator[tuple[str, str]]:
    """The code and the message of each finding of the rules on a table."""
    table = table_to_lint(spec, live)
    for rule in rules:
        yield from _findings(rule, table)


def table_to_lint(spec: TableSpec, live: LiveTable) -> TableToLint:
    """The table as rules see it. It cannot be changed."""
    declared = {f"{name}.{key}" if key else name: value for name, key, value in spec.policy.values()}
    return TableToLint(
        name=spec.name.text,
        location=live.location,
        declared=MappingProxyType(declared),
        properties=MappingProxyType(dict(live.properties)),
        columns=MappingProxyType({each.name: each.type for each in live.schema.fields}),
        partitioned_by=tuple(live.partition_columns),
        clustered_by=tuple(map(column_text, live.clustering or ())),
        features=frozenset(live.protocol.features),
        owner=spec.owner,
        tags=tuple(spec.tags),
    )


def _findings(rule: OwnRule, table: TableToLint) -> Iterator[tuple[str, str]]:
    if rule.check is None:
        yield FAILED, _message(f"the rule {rule.code} of {rule.package} cannot be loaded: {rule.trouble}")
        return
    try:
        found = rule.check(table)
        texts = [found] if isinstance(found, str) else list(islice(found or (), MOST_FINDINGS + 1))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # code of others: whatever it raises is reported
        yield FAILED, _message(f"the rule {rule.code} of {rule.package} failed: {type(error).__name__}: {error}")
        return
    unchecked: list[object] = list(texts[:MOST_FINDINGS])
    for text in unchecked:
        if isinstance(text, str):
            yield rule.code, _message(text)
        else:
            yield FAILED, f"the rule {rule.code} of {rule.package} returned {type(text).__name__} instead of text"
    if len(texts) > MOST_FINDINGS:
        yield rule.code, f"more than {MOST_FINDINGS} findings; further ones are left out"


def _message(text: str) -> str:
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
