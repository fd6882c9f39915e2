"""The pages of all lint codes, as ``docs/generated/lint.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tablectl.delta.clients import LISTS, VECTORS_OFF, ClientData, Probe, WrongRows, known_clients
from tablectl.lint_rules import RULES
from tablectl.lint_rules.rule import LintRule

_HEAD = """# What lint finds

Each finding has a code that never changes its meaning. `tablectl explain CODE` prints the same text. This page is
generated from the rules by `python -m tests.reports.publish`.

`tablectl validate` checks policies alone. `tablectl plan` checks the tables that it changes, in their planned state;
on other tables it names errors, `L023` and `L033`, and refuses nothing.
`tablectl lint` checks every table, whether or not the plan would change it. Only `lint` reads how files are spread over
partitions, because that takes the whole log; it skips this for tables with more than 200,000 files.

A repository sets the severity of each finding in `tablectl.yaml`:

```yaml
lint:
  L005: error                                   # leaves its table out of the plan, which exits with 3
  L006: {severity: ignore, reason: "no time travel here, files are large"}
  L009: {severity: warning, tables: ["lake.finance.*"]}
```

An ignored finding needs a reason. Text reports leave it out, JSON keeps it, and SARIF has it as a suppressed result
with that reason.

| code | what | severity | checked by |
| --- | --- | --- | --- |
"""

_CLIENTS_HEAD = """
## Clients

tablectl compares this data with the `clients:` of a policy and with the writers in a table's history. A version is the
first one that reads, or writes, a table with the feature, by the client's documentation. In the versions named as
covered, the client does not know features that are not listed; outside of them, nothing is documented here. Results
of tests on real tables take precedence over documentation, for the tested release and newer ones. A version newer than
all known ones counts as the newest known one. A protocol upgrade that a client in `clients:` does not support is a
refusal, and the finding P003 where nothing is documented. An upgrade that no writer in the history supports is a
refusal without `allow: [lockout]`, and P004 where another writer continues. A client that could not write a table
before the upgrade does not count.

The data is `tablectl/delta/clients.json`; `make probe-clients` tests the newest releases and updates their part
of it.
"""


def codes_page() -> str:
    """The contents of ``docs/generated/lint.md``."""
    rows = (
        f"| [{each.code}](#{each.code.lower()}) | {each.title} | {each.severity} | {', '.join(each.seen)} |"
        for each in RULES.values()
    )
    parts = [
        _HEAD + "\n".join(rows) + "\n",
        *map(_section, RULES.values()),
        _CLIENTS_HEAD,
        *map(_client, known_clients()),
    ]
    return "\n".join(parts)


def _section(rule: LintRule) -> str:
    lines = [
        f"## {rule.code}",
        "",
        f"**{rule.title}.**",
        "",
        f"**What breaks.** {rule.breaks}",
        "",
        f"**Why.** {rule.why}",
        "",
        f"**How to fix.** {rule.fix}",
        "",
        f"Source: {rule.source}.",
    ]
    return "\n".join(lines) + "\n"


def _client(data: ClientData) -> str:
    covered = f" Covered: {data.version} {data.whole[0]} to {data.whole[1]}." if data.whole else ""
    lines = [f"### `{data.name}`: {data.title}", "", f"The version is that of {data.version}.{covered}", ""]
    if data.reads:
        lines.append(f"* reads: {_since(data.reads)}")
    if data.writes is None:
        lines.append("* never writes")
    elif data.writes:
        lines.append(f"* writes: {_since(data.writes)}")
    lines += [f"* locked out by {feature}: {why}" for feature, why in data.never.items()]
    lines += [f"* not read by all: {feature}: {why}" for feature, why in data.partly.items()]
    lines += [f"* {_wrong(each)}: {each.why} ({each.source})" for each in data.wrong_rows]
    if data.open:
        lines.append(f"* left open: {', '.join(sorted(data.open))}")
    if data.note:
        lines.append(f"* {data.note}")
    lines += _probe(data, data.probe) if data.probe else []
    return "\n".join([*lines, "", f"Source: {data.source}; as of {data.as_of}."]) + "\n"


def _probe(data: ClientData, probe: Probe) -> Iterator[str]:
    """What was tried, one outcome per line."""
    yield f"* {data.version} {probe.version} was tested on {probe.date}, on tables made by {probe.tables}"
    interfaces = sorted({name for each in probe.reads.values() for name in each})
    for interface in interfaces:
        by = {feature: each[interface][0] for feature, each in probe.reads.items() if interface in each}
        yield from _outcomes(f"{interface} reads", by)
    yield from _outcomes("append", {feature: outcome for feature, (outcome, _) in probe.writes.items()})


def _outcomes(what: str, by: Mapping[str, str]) -> Iterator[str]:
    for outcome in ("yes", "no", "wrong rows"):
        names = [_state(name) for name, found in by.items() if found == outcome]
        if names:
            yield f"  * {what}, {outcome}: {', '.join(names)}"


def _wrong(rows: WrongRows) -> str:
    if rows.when == VECTORS_OFF:
        return f"reads wrong rows of {_state(rows.when)}"
    return f"writes wrong rows before {rows.below}"


def _state(name: str) -> str:
    shown = {LISTS: "protocols that list their features", VECTORS_OFF: "vectors that remain after they were turned off"}
    return shown.get(name, name)


def _since(features: Mapping[str, str]) -> str:
    return ", ".join(_entries(features))


def _entries(features: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(features, key=lambda each: (each != LISTS, each)):
        shown = "protocols that list their features" if name == LISTS else name
        yield f"{shown} {features[name]}".rstrip()
