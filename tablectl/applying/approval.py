"""Checks that a plan contains only what the policies declare.

A plan file is untrusted: its digest detects damage, but does not prove its author. Therefore a plan is compared
with the configuration and the policies before a run (``check_engine``, ``check_declared``), and each table is planned
again from its live state under its lease (``Approval``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from threading import Lock

from tablectl.applying.remaining_statements import remaining_statements
from tablectl.applying.run_context import StopTableError
from tablectl.attributes.clustering import DATA, Clustering
from tablectl.attributes.policy import attribute
from tablectl.delta.databricks_runtimes import Runtime
from tablectl.delta.locations import canonical_location
from tablectl.delta.names import NameSyntaxError, TableName, parse_table
from tablectl.leases.clock import today
from tablectl.lint_rules import DEFAULT_SEVERITIES, Severities
from tablectl.log.reader import ReadRequest, read_many
from tablectl.model.errors import PlanFileError, TablectlError
from tablectl.model.plan import Change, Plan, TablePlan
from tablectl.model.run_report import RunOutcome
from tablectl.model.safe_text import cut
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.planning.diff import depth_for
from tablectl.planning.lint import with_own_rules
from tablectl.planning.plan_file import rewritten_bytes
from tablectl.planning.plan_table import plan_table, writers_matter
from tablectl.policies.declared_tables import Specs, TableSpec, digest_of_tables, expand
from tablectl.policies.own_rules import OwnRule
from tablectl.storage.object_stores import StoreOptions
from tablectl.support.differences import differences, whole

_PLAN_AGAIN = "run `tablectl plan --out FILE` again and have the new plan reviewed"
_MOST_TOLD = 5


def check_engine(plan: Plan, dialect: str, runtime: str) -> None:
    """Raises ``PlanFileError`` if a plan is for another dialect or Databricks Runtime than those of the configuration.

    Statements follow from both, so the plan file must not choose them. An empty ``runtime`` is one that is not stated.
    """
    tables = ((f"{table.name}: `runtime`", table.basis.runtime, runtime) for table in plan.tables)
    for what, planned, configured in (("`dialect`", plan.dialect, dialect), *tables):
        if planned != configured:
            asked, says = (repr(cut(each)) if each else "none" for each in (planned, configured))
            raise PlanFileError(f"{what}: the plan is for {asked}, and tablectl.yaml says {says}", _PLAN_AGAIN)


def check_declared(plan: Plan, specs: Specs) -> Mapping[str, TableSpec]:
    """The spec of each table of a plan, by the table's name.

    Raises ``PlanFileError``, naming table and key, if a table is not declared, or if a value, an option, a tag or a
    location differs from the declared one. The message contains no values, because some are secrets.
    """
    found = _specs_of(plan, specs, [*(table.name for table in plan.tables), *plan.unchanged])
    wrong: list[str] = []
    for table in plan.tables:
        spec = found.get(table.name)
        if spec is None:
            wrong.append(f"{table.name}: no policy declares this table")
        else:
            wrong += [f"{table.name}: `{key}` is not what the policies declare" for key in _differing(table, spec)]
            wrong += [f"{table.name}: {other} is the same table" for other in _other_names(table, spec, specs)]
    wrong += [
        f"{name}: `unchanged` names a table that no policy declares" for name in plan.unchanged if name not in found
    ]
    if len({table.name for table in plan.tables}) < len(plan.tables):
        wrong.append("`tables`: a table is in the plan twice")
    if wrong:
        more = [f"and {len(wrong) - _MOST_TOLD} more"] if len(wrong) > _MOST_TOLD else []
        raise PlanFileError("\n".join([*wrong[:_MOST_TOLD], *more]), _PLAN_AGAIN)
    return found


def policies_digest(plan: Plan, specs: Specs) -> str:
    """What a plan that was made of these policies has as ``policies``."""
    if not plan.changed_since:
        return specs.digest
    patterns = {each.text for each in specs.patterns}
    names = [*(each.name for each in plan.tables), *(each.name for each in plan.failures), *plan.unchanged]
    return digest_of_tables(_specs_of(plan, specs, [name for name in names if name not in patterns]).values())


def _specs_of(plan: Plan, specs: Specs, names: Sequence[str]) -> Mapping[str, TableSpec]:
    """The specs: tables named in the files keep their own, and patterns that match apply to the others."""
    named = {spec.name.key: spec for spec in specs.tables}
    places = {table.name: table.location for table in plan.tables}
    asked: dict[str, TableName] = {}
    for text in dict.fromkeys(names):
        try:
            asked[text] = parse_table(text)
        except NameSyntaxError as error:
            raise PlanFileError(f"{text}: {error}", _PLAN_AGAIN) from None
    unnamed = {name: places.get(text, "") for text, name in asked.items() if name.key not in named}
    matched = {spec.name.key: spec for spec in expand(specs, unnamed).tables if spec.name.key not in named}
    both = named | matched
    return {text: both[name.key] for text, name in asked.items() if name.key in both}


def _differing(table: TablePlan, spec: TableSpec) -> Iterator[str]:
    """The keys of a table's plan that differ from its policy."""
    location = canonical_location(table.location)
    expected = spec.name.parts[0] if spec.name.is_path else spec.location
    planned: dict[str, object] = {"name": table.name, "location": location, "tags": sorted(table.tags)}
    planned |= {"owner": table.owner, "window": table.window, **_by_name(table.basis.options)}
    wanted: dict[str, object] = {"name": spec.name.text, "tags": sorted(spec.tags)}
    wanted["location"] = canonical_location(expected) if expected else location
    wanted |= {"owner": spec.owner, "window": spec.window, **_by_name(spec.options)}
    yield from (each.where for each in differences(planned, wanted, whole))
    declared = {(name, key): value for name, key, value in spec.policy.values()}
    for change in table.changes:
        if (change.attribute, change.key) == (Clustering.name, DATA):
            asked = isinstance(spec.policy.clustering, tuple) and spec.options.optimize != "never"
        else:
            asked = (change.attribute, change.key) in declared and _is_declared(
                change, declared[change.attribute, change.key]
            )
        if not asked:
            yield change.id


def _by_name(options: TableOptions) -> dict[str, object]:
    return {each.name: getattr(options, each.name) for each in fields(options)}


def _is_declared(change: Change, declared: object) -> bool:
    if isinstance(change.after, tuple) and isinstance(declared, tuple):  # in the table's spelling
        return attribute(change.attribute).agrees(change.after, declared, change.key)
    return change.after == declared


def _other_names(table: TablePlan, spec: TableSpec, specs: Specs) -> Iterator[str]:
    """Other entries and patterns that apply to a table's location. Planning rejects such a table, and so does this
    check.
    """
    place = canonical_location(table.location)
    for other in specs.tables:
        where = other.name.parts[0] if other.name.is_path else other.location
        if where and other.name.key != spec.name.key and canonical_location(where) == place:
            yield other.name.text
    if not spec.name.is_path:
        yield from (each.text for each in specs.declarations.matching(TableName("", (table.location,))))


@dataclass(frozen=True, slots=True)
class Approval:
    """Plans each table again under its lease, from its state at that time. Call it with the table's plan."""

    dialect: str
    runtime: Runtime | None = None
    """The Databricks Runtime that the configuration states."""
    specs: Mapping[str, TableSpec] | None = None
    """Specs by the names of the plan's tables; ``None`` to compare with no policies."""
    severities: Severities = DEFAULT_SEVERITIES
    stores: StoreOptions = field(default_factory=StoreOptions)
    max_bytes: int | None = None
    """The maximum number of bytes that all tables together may rewrite."""
    rules: Sequence[OwnRule] = ()
    """The lint rules of the repository's own."""
    _rewritten: dict[str, int] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, plan: TablePlan) -> None:
        """Raises ``StopTableError`` if the plan has less than the policies require or more than they declare, if the
        table can no longer take it, or if the run would rewrite more than its limit.
        """
        if self.specs is None and self.max_bytes is None:
            return
        spec = self.specs[plan.name] if self.specs is not None else None
        live = self._read(plan, spec)
        missing = remaining_statements(plan, live, self.dialect)
        if plan.version > live.version:
            message = f"`version`: the plan says {plan.version}, and the table's newest is {live.version}"
            raise StopTableError(RunOutcome.REFUSED, message, _PLAN_AGAIN)
        if spec is not None:
            severities = with_own_rules(self.severities, self.rules, spec)
            options = spec.options.on(today())
            fresh = plan_table(spec.policy, live, self.dialect, options, severities, self.runtime)
            _compare(plan, fresh)
            # Refuses a statement for a change that the policy does not require of the table as it is now
            needed = {change.id for change in fresh.changes} if fresh is not None else set()
            for each in (change for statement in missing for change in statement.serves if change not in needed):
                raise StopTableError(
                    RunOutcome.REFUSED, f"{each}: the policies do not ask for it any more", _PLAN_AGAIN
                )
        if self.max_bytes is not None:
            self._check_size(plan.name, rewritten_bytes(missing), self.max_bytes)

    def _read(self, plan: TablePlan, spec: TableSpec | None) -> LiveTable:
        whole = Depth(LOOK_BACK, counts=True)
        shallow = depth_for(spec, LOOK_BACK) if spec is not None else lambda _live: whole

        def writers(live: LiveTable) -> bool:
            return spec is not None and writers_matter(spec.policy, live, self.dialect, spec.options, refused=True)

        def depth(live: LiveTable) -> Depth:
            return replace(shallow(live), writers=writers)

        (live,) = read_many([ReadRequest(plan.table, plan.location, depth)], options=self.stores)
        if isinstance(live, TablectlError):
            raise live
        return live

    def _check_size(self, name: str, size: int | None, limit: int) -> None:
        with self._lock:
            others = sum(each for table, each in self._rewritten.items() if table != name)
            if size is not None and others + size <= limit:
                self._rewritten[name] = max(size, self._rewritten.get(name, 0))
                return
        what = "an unknown amount" if size is None else f"up to {size:,} bytes"
        message = f"this table rewrites {what}, others {others:,}, and at most {limit:,} bytes may be rewritten"
        raise StopTableError(RunOutcome.REFUSED, message, "raise `--max-bytes`, or apply fewer tables at a time")


def _compare(plan: TablePlan, fresh: TablePlan | None) -> None:
    """Compares the reviewed plan of a table with what its policy requires now."""
    if fresh is None:  # the table already matches its policy
        return
    if fresh.refusals:
        first = fresh.refusals[0]
        raise StopTableError(RunOutcome.REFUSED, f"{first.change}: {first.reason}", first.fix)
    wanted = {change.id: change for change in fresh.changes}
    reviewed = {change.id: change for change in plan.changes if change.id in wanted}
    found = differences(_facts(reviewed, wanted), _facts(wanted, reviewed), whole)
    added = [each.where for each in found if each.kind == "added"]
    if added:
        message = f"the policies also ask for {', '.join(added)}, which the plan does not hold"
        raise StopTableError(RunOutcome.STALE, message, "the table changed since, or the plan was edited: plan again")
    for each in found:
        message = f"`{each.where}` is not what the policies and the table give"
        raise StopTableError(RunOutcome.REFUSED, message, _PLAN_AGAIN)


def _facts(changes: Mapping[str, Change], others: Mapping[str, Change]) -> dict[str, dict[str, object]]:
    """What two plans of one table must agree on. What a change leaves on its way depends on its old value."""
    return {
        name: {"after": change.after, "columns": change.columns}
        | ({"via": change.via} if name in others and others[name].before == change.before else {})
        for name, change in changes.items()
    }
