"""Rules about the upkeep that a policy declares. No plan checks them: upkeep never changes a plan."""

from __future__ import annotations

from tablectl.attributes.predictive_optimization import why_maintained
from tablectl.lint_rules.rule import Found, LintedState, LintRule
from tablectl.lint_rules.settings import file_span, files_kept

_DAY = 86_400 * 1_000_000


def _maintained_elsewhere(table: LintedState) -> Found:
    if table.upkeep is not None and table.live is not None:
        why = why_maintained(table.live, table.declared.predictive_optimization, table.dialect)
        if why:
            yield f"upkeep is declared, and {why}", "upkeep"


UPKEEP_ELSEWHERE = LintRule(
    code="L030",
    name="UpkeepElsewhere",
    severity="warning",
    title="Upkeep of a table that its catalog maintains",
    breaks="`tablectl upkeep` refuses the table and exits with 3, each time.",
    why="Two that merge the same files fail each other. Delta Spark refuses OPTIMIZE and VACUUM on a catalog-managed "
    "table, and predictive optimization of Databricks runs them by itself.",
    fix="Declare `unmanaged: [upkeep]` for the table, or `predictive_optimization: disabled`.",
    source="docs/upkeep.md",
    seen=("lint",),
    check=_maintained_elsewhere,
)


def _vacuum_beside_writes(table: LintedState) -> Found:
    kept = files_kept(table)
    if table.upkeep is not None and table.upkeep.vacuum is not None and isinstance(kept, int) and kept < _DAY:
        yield f"vacuum is declared, and deleted files are kept {file_span(table)}", "upkeep.vacuum"


VACUUM_WAITS_FOR_WRITES = LintRule(
    code="L032",
    name="VacuumWaitsForWrites",
    severity="warning",
    title="VACUUM of files that running writes may need",
    breaks="VACUUM waits while guarded writes run, so it may never run on a busy table. A write without a guard that "
    "takes longer than files are kept loses them.",
    why="VACUUM deletes files that are not committed once they are older than `retention.deleted_files`.",
    fix="Declare `retention.deleted_files` of a day or more.",
    source="docs/upkeep.md",
    seen=("validate", "lint"),
    harm="writers at risk",
    check=_vacuum_beside_writes,
)
