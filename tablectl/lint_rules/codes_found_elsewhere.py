"""Codes whose findings other modules make: ``planning`` from the statements of a plan (P, D001) and from a dbt project
(B), ``commands.plan`` from what the catalog tells (D007), and the rules of your own (R).
"""

from __future__ import annotations

from tablectl.delta import keys
from tablectl.lint_rules.rule import LintRule

READERS_NEED_NEWER_PROTOCOL = LintRule(
    code="P001",
    name="ReadersNeedNewerProtocol",
    severity="warning",
    title="Readers need a newer protocol",
    breaks="Clients that do not know the features named can no longer read the table once the plan is applied.",
    why="A reader must know every reader feature of a table's protocol, whether its data uses it or not. "
    "Turning the property off again leaves the feature in the protocol.",
    fix="Upgrade readers first. Declare `clients:` with the versions that must keep working, and tablectl "
    "refuses a change that locks one of them out; `allowed_features:` refuses every feature that is not in it.",
    source="delta-1.0, delta-1.13",
    seen=("plan",),
)


WRITERS_NEED_NEWER_PROTOCOL = LintRule(
    code="P002",
    name="WritersNeedNewerProtocol",
    severity="note",
    title="Writers need a newer protocol",
    breaks="Clients that do not know the features named can no longer write the table once the plan is applied.",
    why="A writer must know every feature of a table's protocol. Turning the property off again leaves the feature "
    "in the protocol.",
    fix="Upgrade writers first. Declare `clients:` with the versions that must keep working.",
    source="delta-1.0, delta-1.13",
    seen=("plan",),
)


CLIENT_NOT_DOCUMENTED = LintRule(
    code="P003",
    name="ClientNotDocumented",
    severity="warning",
    title="Whether a client knows a feature is not documented",
    breaks="Possibly the client: its support was not checked.",
    why="`clients:` names it, the plan adds the feature, and no documentation that tablectl was made from says "
    "whether that version knows it. tablectl never assumes support.",
    fix="Test it on a copy of the table, or ask its vendor. Then set this code to `ignore` with what you found "
    "as the reason, or take the client off `clients:`.",
    source="the table of clients in this page",
    seen=("plan",),
)


WRITER_LOCKED_OUT = LintRule(
    code="P004",
    name="WriterLockedOut",
    severity="warning",
    title="A recent writer does not support the new protocol",
    breaks="The next write of that client fails, with an unsupported feature or an invalid protocol version.",
    why="The table's history names the client and its version, and by its documentation, or by a probe, "
    "that version does not know a feature that the plan adds. A version newer than the newest one known counts as "
    "that one. About a client of unknown kind nothing is known. Where every writer of the table is locked out, the "
    "plan is refused, unless the policy says `allow: [lockout]`.",
    fix="Upgrade that job before the apply, or leave the feature off. Under `clients:` it would be a refusal.",
    source="the table of clients in this page; delta-2.1",
    seen=("plan",),
)


READER_MISSES_DELETES = LintRule(
    code="P005",
    name="ReaderMissesDeletes",
    severity="warning",
    title="A client may return deleted rows once deletion vectors are off",
    breaks="Queries of that client return rows that were deleted, without an error.",
    why="`clients:` names a client that ignores deletion vectors where `delta.enableDeletionVectors` is false. The "
    "current version holds none, and the last checkpoint may: it is as old as the commits since. Where vectors "
    "remain in the current version, the plan is refused.",
    fix="Let a checkpoint be written after the last purge and before the apply (every "
    "`delta.checkpointInterval` commits), or upgrade the client to a version that was tried.",
    source="github.com/trinodb/trino/issues/30685; the table of clients in this page",
    seen=("plan",),
    properties=(
        "delta.checkpointInterval",
        keys.DELETION_VECTORS,
    ),
)


PARTITION_WRITERS_FAIL = LintRule(
    code="P006",
    name="PartitionWritersFail",
    severity="warning",
    title="Writers that name partition columns fail for good",
    breaks="Each later write that names the old partition columns fails with `DELTA_METADATA_MISMATCH`, with a "
    "guard and without: `partitionBy(...)` of batches and streams, and `partition_by=` of deltalake.",
    why="Delta compares the columns that a write names with those of the table. The last 30 days have such "
    "writes, or a stream, of which the log does not tell. Without `allow: [partition_writers]` it is a refusal.",
    fix="Take the columns out of that code: a write that names none takes those of the table.",
    source="ImplicitMetadataOperation.scala of Delta 4.4; docs/partitioning.md",
    seen=("plan",),
)


PROTOCOL_OPENS = LintRule(
    code="P007",
    name="ProtocolOpens",
    severity="note",
    title="The table needs fewer protocol features",
    breaks="Nothing: clients that did not know these features can read, or write, the table once the plan is applied.",
    why="The plan drops features. The finding names the clients of `clients:`, and the newest known version of each "
    "other client, that gain access.",
    fix="Nothing to do. A version that is older than the dropped feature's last commit stays unreadable to these "
    "clients.",
    source="the table of clients in this page; delta-1.15",
    seen=("plan",),
)


PROPERTY_IS_UNKNOWN = LintRule(
    code="P008",
    name="PropertyIsUnknown",
    severity="note",
    title="A property is unknown to tablectl",
    breaks="Concurrent writes fail once, as with every property of which nothing is known. Whether the engine takes "
    "the value was not checked.",
    why="The policy declares the key with its engine, or a pattern of `engine.extra_properties` admits it. Spark "
    "stores such a key without looking at it.",
    fix="Check key and value in the documentation of that engine.",
    source="DeltaSQLConf.scala of Delta 4.4.0: allowArbitraryProperties.enabled",
    seen=("plan",),
)


DBT_SETS_IT_TOO = LintRule(
    code="B001",
    name="DbtSetsItToo",
    severity="note",
    title="A policy and dbt set the same value",
    breaks="Nothing now. The next change of one of the two makes them overwrite each other.",
    why="dbt sets the configuration of a model whenever it builds it, and an apply sets what the policy declares.",
    fix="Remove one of the two: `tablectl import --dbt` prints the lines of dbt.",
    source="https://docs.getdbt.com/reference/resource-configs/databricks-configs",
    seen=("lint",),
)


DBT_SETS_ANOTHER_VALUE = LintRule(
    code="B002",
    name="DbtSetsAnotherValue",
    severity="warning",
    title="A policy and dbt set different values",
    breaks="Each build of the model undoes the apply, and each apply undoes the build. Both commits change "
    "metadata, and make concurrent writes fail.",
    why="dbt sets the configuration of a model whenever it builds it, and an apply sets what the policy declares.",
    fix="Decide who owns the setting, and remove the other line.",
    source="https://docs.getdbt.com/reference/resource-configs/databricks-configs",
    seen=("lint",),
)


OWNERS_ALTERNATE = LintRule(
    code="B003",
    name="OwnersAlternate",
    severity="warning",
    title="A setting of dbt and of a policy alternates in the history",
    breaks="Every change is a metadata commit, with which concurrent writes fail.",
    why="The table's recent commits set the value, then another one, then a third time.",
    fix="Decide who owns the setting, and remove the other line.",
    source="the operation parameters of the table's log",
    seen=("lint",),
)


OWN_RULE_FAILED = LintRule(
    code="R001",
    name="OwnRuleFailed",
    severity="warning",
    title="A rule of your own failed",
    breaks="Nothing by itself: what the rule would have found is unknown.",
    why="The rule, a function of an installed package, could not be loaded, raised an error, or returned something "
    "other than texts. The message names it. Other rules and the plan go on.",
    fix="Correct the package of the rule. With `lint: {R001: error}`, no table is applied while a rule fails.",
    source="docs/lint-rules.md",
)


STATEMENT_NOT_VERIFIED = LintRule(
    code="D001",
    name="StatementNotVerified",
    severity="note",
    title="A statement is documented only",
    breaks="Possibly the apply: the statement may fail, or do something else than documented.",
    why="The statement follows the documentation of Databricks. Neither a user's workspace nor a functional test of "
    "dbt-databricks is known to have run its form. `tablectl/model/operations/` holds each form with its source.",
    fix="Try the plan on a copy of the table first. docs/databricks.md says how to run the forms in your workspace.",
    source="docs.databricks.com, as cited for each form",
    seen=("plan",),
)


RIGHT_NOT_SHOWN = LintRule(
    code="D007",
    name="RightNotShown",
    severity="note",
    title="The catalog shows no right that a statement needs",
    breaks="Possibly the apply: it fails at the statement, and what ran before it stays.",
    why="Unity Catalog of Databricks tells the owner of a table and the effective permissions on it. Among those of "
    "the login that plans, and of its groups, the right is missing. An administrator, the owner of the schema and a "
    "member of a group in a group may have it all the same. `apply` may use another login. MANAGE counts as "
    "ownership.",
    fix="Give the principal that applies the right: ownership by `ALTER TABLE … OWNER TO`, others by `GRANT`. "
    "`tablectl doctor`, run as that principal, looks again. Where plans are made by a login that may only read, set "
    "this code to `ignore`; with `error`, no such table is applied.",
    source="docs/databricks.md; https://docs.databricks.com/aws/en/sql/language-manual/sql-ref-syntax-ddl-alter-table",
    seen=("plan",),
)
