"""What reports say of who alters a table: the only place of these sentences."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tablectl.model.altering_job import AlteringJob, AlteringKind
from tablectl.model.expected_loss import ExpectedLoss
from tablectl.model.safe_text import listed, time_text

_DO: Mapping[AlteringKind, str] = MappingProxyType(
    {
        "settings": "declare these properties in a policy and take the ALTER out of the job; dbt: take them out of "
        "`tblproperties`; Delta Live Tables: out of `table_properties`; a job of your own: compare with "
        "SHOW TBLPROPERTIES first",
        "columns": "let the job compare with DESCRIBE first; dbt: `persist_docs: {relation: false, columns: "
        "false}`, or a step of its own; dlt: freeze `schema_contract`; a new column: one ALTER at a "
        "quiet moment",
        "features": "declare the feature or the constraint in a policy, and take the ALTER out of the job",
        "clustering": "declare `clustering` in a policy, and take the CLUSTER BY out of the job",
        "writes": "switch off what makes a write carry metadata: `mergeSchema`, "
        "`spark.databricks.delta.schema.autoMerge.enabled`, Auto Loader's "
        "`cloudFiles.schemaEvolutionMode` (`none` or `rescue`); an identity column saves its newest "
        "value with each insert: fill it in one job; or guard the writers",
        "replaces": "write into the table that is there (INSERT OVERWRITE, `replaceWhere`, MERGE); dbt: "
        "`materialized: incremental` in place of `table`; or guard the writers",
        "overwrites": "overwrite only what changes (`replaceWhere`, dynamic partition overwrite, MERGE); or guard the "
        "writers",
        "optimizes": "let one job OPTIMIZE, or none: `upkeep` in a policy, automatic compaction, predictive "
        "optimization",
    }
)


def rival_who(job: AlteringJob) -> str:
    """``SET TBLPROPERTIES by job nightly``, ``… by not named (Delta Spark 4.4.0)``."""
    return f"{job.operation} by {job.who or f'not named ({job.client})'}"


def rival_price(job: AlteringJob) -> str:
    """``69.8 failed writes, 29.1 h of work each week``."""
    return f"{ExpectedLoss(job.failed, job.seconds).text()} each week"


def rival_text(job: AlteringJob) -> str:
    """Who, how often, since when, how many change nothing, and the price."""
    keys = f" ({listed(job.keys, 3)})" if job.keys else ""
    nothing = f", {job.nothing:,} of them change nothing" if job.nothing else ""
    hit = f" of {listed(job.fails, 3)}" if job.fails else ""
    return (
        f"{rival_who(job)}{keys}: {job.commits:,} commits in {job.days:.0f} days, since {time_text(job.since)}"
        f"{nothing}; expected to fail {rival_price(job)}{hit}"
    )


def rival_advice(job: AlteringJob) -> str:
    """What stops it, or its failures."""
    name = "" if job.who else "; `spark.databricks.delta.commitInfo.userMetadata` in its session names it"
    return f"{_DO[job.kind]}{name}"
