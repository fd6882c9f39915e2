"""Serializes plans: canonical JSON with a digest. A plan file is not trusted for anything that can be derived.

Also the shards of a plan: which tables belong to each, and the plan of all tables from the plans of all shards.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tablectl.attributes.policy import check_declarable
from tablectl.delta.locations import canonical_location
from tablectl.delta.names import NameSyntaxError, is_environment
from tablectl.model.calendar import ALWAYS
from tablectl.model.errors import LimitError, PlanFileError, UsageError
from tablectl.model.plan import Plan, ProtocolFact, Statement, TablePlan
from tablectl.model.safe_text import escape_output, listed
from tablectl.planning.derive_statements import DerivedTable, derive_table
from tablectl.planning.locked_out_clients import DERIVED, added_features
from tablectl.planning.plan_table import consent_refusals, derived_findings
from tablectl.support.differences import differences
from tablectl.support.json_text import MOST_VALUES, JsonBudgetError, check_json, read_json, write_json
from tablectl.support.typed_json import json_form, read_record
from tablectl.version import __version__


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """``None`` means no limit."""

    tables: int | None = None
    """The maximum number of tables that change."""
    bytes: int | None = None
    """The maximum number of bytes that are rewritten, over all tables. An unknown amount exceeds every limit."""

    def check(self, plan: Plan) -> None:
        """Raises ``LimitError`` for a plan that exceeds a limit. Refused tables do not count."""
        changing = [table for table in plan.tables if table.applies]
        if self.tables is not None and len(changing) > self.tables:
            names = ", ".join(table.name for table in changing[:3]) + (", …" if len(changing) > 3 else "")
            raise LimitError(
                f"the plan changes {len(changing)} tables, and at most {self.tables} may change: {names}", _WAY_OUT
            )
        if self.bytes is None:
            return
        sizes = {table.name: rewritten_bytes(table.statements) for table in changing}
        unknown = [name for name, size in sizes.items() if size is None]
        if unknown:
            raise LimitError(
                f"how much the plan rewrites of {unknown[0]} is not known, and at most {self.bytes:,} bytes may be",
                "apply that table alone, without a limit on bytes",
            )
        total = sum(size or 0 for size in sizes.values())
        if total > self.bytes:
            raise LimitError(
                f"the plan rewrites up to {total:,} bytes, and at most {self.bytes:,} may be rewritten", _WAY_OUT
            )


_WAY_OUT = "select fewer tables, or raise the limit if that is intended"


def rewritten_bytes(statements: Sequence[Statement]) -> int | None:
    """The maximum number of bytes that a table's statements rewrite; ``None`` if unknown.

    Rewrites of one kind rewrite the same files, or files added since. Therefore only the largest of each kind counts.
    """
    largest = {False: 0, True: 0}
    for rewrite in (each.rewrite for each in statements if each.rewrite):
        if rewrite.bytes_at_most is None:
            return None
        largest[rewrite.clusters] = max(largest[rewrite.clusters], rewrite.bytes_at_most)
    return sum(largest.values())


FORMAT = 2
MAX_BYTES = 256 * 1024 * 1024
_PLAN_AGAIN = "run `tablectl plan --out FILE` again and have the new plan reviewed"


def dump_plan(plan: Plan) -> bytes:
    """The plan file: sorted keys, no time, no host name. Equal plans give equal bytes, and the text is safe to print in
    logs. Raises ``PlanFileError`` for a plan that ``load_plan`` would refuse as too large.
    """
    body = json_form(plan)
    body["sha256"] = _digest(_canonical(body))
    text = escape_output(write_json(body, indent=1, sort=True, ascii=False)) + "\n"
    try:
        check_json(text, MAX_BYTES, MOST_VALUES)
    except JsonBudgetError as error:
        raise PlanFileError(f"this plan of {len(plan.tables):,} tables: {error}", "select fewer tables") from None
    return text.encode()


def digest_of(plan: Plan) -> str:
    """The SHA-256 that ``dump_plan`` writes."""
    return _digest(_canonical(json_form(plan)))


def check_environment(plan: Plan, env: str | None) -> None:
    """Raises ``PlanFileError`` if the plan is for another environment than ``env``; ``None`` skips the check."""
    if env is not None and env != plan.env:
        made = f"the environment {plan.env}" if plan.env else "no environment"
        other = f"`tablectl plan --env {env} --out FILE`" if env else "`tablectl plan --out FILE`"
        hint = f"apply it in its own, or have one for the other made by {other}"
        raise PlanFileError(f"the plan is for {made}, not for {env or 'none'}", hint)


def load_plan(data: bytes, where: str, *, to_apply: bool = True) -> Plan:
    """The plan in a file's bytes.

    Raises ``PlanFileError`` if the plan was edited or truncated, has another format, or contains SQL, phases or other
    parts that tablectl does not derive from its changes. With ``to_apply`` off, plans of other tool versions are
    accepted too: their contents cannot be derived again here.
    """
    body = _parse(data, where)
    if "masked" in body:
        raise PlanFileError(
            f"{where}: a report with masked values; it cannot be applied", "plans are saved by `--out FILE`"
        )
    digest = body.pop("sha256", None)
    if body.get("format") != FORMAT:
        raise PlanFileError(f"{where}: not of plan format {FORMAT}, which this version reads", _PLAN_AGAIN)
    canonical = _canonical(body)
    if digest != _digest(canonical):
        raise PlanFileError(f"{where}: the plan was edited or damaged: its digest does not match", _PLAN_AGAIN)
    try:
        plan = read_record(Plan, canonical, MAX_BYTES, MOST_VALUES)
    except ValueError as error:
        raise PlanFileError(f"{where}: not a plan: {error}", _PLAN_AGAIN) from None
    if plan.env and not is_environment(plan.env):
        raise PlanFileError(f"{where}: {plan.env!r} is not an environment name", _PLAN_AGAIN)
    if to_apply or plan.tool == __version__:
        _check_derived(plan, where)
    return plan


def _check_derived(plan: Plan, where: str) -> None:
    if plan.tool != __version__:
        raise PlanFileError(f"{where}: made by tablectl {plan.tool}, this is {__version__}", _PLAN_AGAIN)
    for table in plan.tables:
        try:
            key = _underived(table, plan.dialect)
        except (NameSyntaxError, KeyError, ValueError) as error:
            raise PlanFileError(f"{where}: {table.name}: {error}", _PLAN_AGAIN) from None
        if key:
            raise PlanFileError(f"{where}: {table.name}: `{key}` does not follow from its changes", _PLAN_AGAIN)


def _underived(table: TablePlan, dialect: str) -> str:
    """The first key that does not follow from a table's changes; empty if all keys do."""
    name = table.table
    if name.is_path and canonical_location(name.parts[0]) != canonical_location(table.location):
        return "location"
    if table.version < 0:
        return "version"
    if table.window:
        table.window.over(ALWAYS)  # its rules must be readable
    for change in table.changes:
        check_declarable(change, dialect, table.basis.options)
    if len({change.id for change in table.changes}) < len(table.changes):
        return "changes"
    derived = None if table.refusals else derive_table(table.changes, table.basis, name, dialect)
    wanted = {
        "statements": derived.statements if derived else (),
        "protocol_after": ProtocolFact.of(derived.after) if derived else table.basis.protocol,
        "features": added_features(derived.before, derived.after) if derived else (),
        "undo": derived.undo(name) if derived else (),
    }
    for wrong in differences({key: getattr(table, key) for key in wanted}, wanted):
        return wrong.where
    if derived is None:
        return ""
    if consent_refusals(derived, dialect):
        return "refusals"
    return "" if _finds_what_follows(table, derived) else "findings"


def _finds_what_follows(table: TablePlan, derived: DerivedTable) -> bool:
    """Whether the derived findings are those in the plan. Their severities come from the repository and are not
    compared.
    """
    expected = [(each.code, each.message) for each in derived_findings(derived)]
    told = [(each.code, each.message) for each in table.findings if each.code in DERIVED]
    return expected == told and all(each.severity != "error" for each in table.findings)


def _parse(data: bytes, where: str) -> dict[str, Any]:
    if len(data) > MAX_BYTES:
        raise PlanFileError(f"{where}: larger than {MAX_BYTES // 2**20} MB, so it is not a plan", _PLAN_AGAIN)
    try:
        body = read_json(data.decode(), MAX_BYTES, MOST_VALUES, object_pairs_hook=_unique, parse_constant=_no_constant)
    except ValueError as error:
        raise PlanFileError(f"{where}: not a plan, or cut off: {error}", _PLAN_AGAIN) from None
    if not isinstance(body, dict):
        raise PlanFileError(f"{where}: not a plan", _PLAN_AGAIN)
    return body


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) != len(pairs):
        raise ValueError("a key stands twice")
    return body


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _canonical(body: dict[str, Any]) -> str:
    """The keys of a plan file, without its digest, as canonical JSON."""
    return write_json(body, sort=True)


def _digest(canonical: str) -> str:
    return hashlib.sha256(canonical.encode()).hexdigest()


MOST_SHARDS = 1000
_SHARD = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")
_AGAIN = "plan all shards again, at one commit of the policies"
_TOLD = 5


@dataclass(frozen=True, slots=True)
class Shard:
    """One of ``count`` parts of all tables, from 1."""

    number: int
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        """The shard in a text such as ``2/8``. Raises ``UsageError``."""
        match = _SHARD.fullmatch(text)
        shard = Shard(int(match[1]), int(match[2])) if match else Shard(0, 0)
        if not 1 <= shard.number <= shard.count <= MOST_SHARDS:
            hint = f"write NUMBER/COUNT with a NUMBER from 1 and a COUNT of at most {MOST_SHARDS}, for example 2/8"
            raise UsageError(f"--shard {text!r} is not a shard", hint)
        return shard

    @property
    def text(self) -> str:
        """As ``parse`` takes it."""
        return f"{self.number}/{self.count}"

    def has(self, key: str) -> bool:
        """Whether a table belongs to this shard, by ``TableName.key``. Every table belongs to one of all shards,
        whatever other tables there are.
        """
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1


def merge_plans(plans: Sequence[tuple[str, Plan]]) -> Plan:
    """The plan of all tables, equal to one that was made at once. ``plans`` are pairs of a file name and its plan.

    Raises ``PlanFileError`` if the plans are not all shards of one plan, each once.
    """
    first, whole = plans[0]
    for name, plan in plans:
        for key in ("dialect", "changed_since", "policies", "env"):
            if getattr(plan, key) != getattr(whole, key):
                raise PlanFileError(
                    f"{name} and {first} have different `{key}`: they are not shards of one plan", _AGAIN
                )
    _check_complete(plans)
    tables = sorted((table for _, plan in plans for table in plan.tables), key=lambda table: table.name)
    unchanged = sorted(each for _, plan in plans for each in plan.unchanged)
    failures = {each for _, plan in plans for each in plan.failures}
    _check_once("table", [*(table.name for table in tables), *unchanged])
    _check_once("location", [canonical_location(table.location) for table in tables])
    unmatched = set(whole.unmatched).intersection(*(plan.unmatched for _, plan in plans))
    return replace(
        whole,
        shard="",
        tables=tuple(tables),
        failures=tuple(sorted(failures, key=lambda each: (each.name, each.message))),
        unchanged=tuple(unchanged),
        standing=tuple(sorted((each for _, plan in plans for each in plan.standing), key=lambda each: each.name)),
        unmatched=tuple(sorted(unmatched)),
        besides=tuple(sorted({each for _, plan in plans for each in plan.besides}, key=lambda each: each.name)),
        compared=any(plan.compared for _, plan in plans),
    )


def _check_complete(plans: Sequence[tuple[str, Plan]]) -> None:
    """Raises ``PlanFileError`` unless the plans are shards 1 to n of n."""
    found: dict[Shard, str] = {}
    for name, plan in plans:
        try:
            shard = Shard.parse(plan.shard)
        except UsageError:
            hint = "`tablectl plan --shard 1/4 --out FILE` makes the first of four"
            raise PlanFileError(f"{name}: not the plan of a shard", hint) from None
        if shard in found:
            raise PlanFileError(f"{name} and {found[shard]} are both shard {shard.text}", "give each shard once")
        found[shard] = name
    counts = sorted({shard.count for shard in found})
    if len(counts) > 1:
        raise PlanFileError(f"the plans are shards of {' and of '.join(map(str, counts))}: {_files(plans)}", _AGAIN)
    missing = [str(number) for number in range(1, counts[0] + 1) if Shard(number, counts[0]) not in found]
    if missing:
        raise PlanFileError(f"shard {listed(missing, _TOLD)} of {counts[0]} is missing", "give the plans of all shards")


def _check_once(what: str, values: Iterable[str]) -> None:
    repeated = sorted(value for value, count in Counter(values).items() if count > 1)
    if repeated:
        raise PlanFileError(f"the {what} {repeated[0]} is in two shards", _AGAIN)


def _files(plans: Sequence[tuple[str, Plan]]) -> str:
    return ", ".join(f"{name} is {plan.shard}" for name, plan in plans[:_TOLD])
