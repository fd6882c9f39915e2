"""The settings of a session in which statements of an apply run, whatever engine it belongs to."""

STAMP_KEY = "spark.databricks.delta.commitInfo.userMetadata"
SETTINGS = {
    # Spark would expand ${…} inside our literals before parsing; the other setting changes what a backslash means.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # A file that cannot be read for a moment would be missing from a rewritten table.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Policies checked each key. A key of another engine is set only where a policy says that it is meant.
    "spark.databricks.delta.allowArbitraryProperties.enabled": "true",
    # Without it no commit carries the stamp.
    "spark.databricks.delta.commitInfo.enabled": "true",
    # It would turn CHAR and VARCHAR columns into plain strings in a rewritten table.
    "spark.sql.legacy.charVarcharAsString": "false",
}
NEVER_INHERITED = (
    # A commit with these counts as the user's own batch, which Delta then skips (``DeltaSQLConf.scala``).
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.write.txnVersion.autoReset.enabled",
    # A write that replaces less than the whole table, or other columns than the listed ones.
    "spark.databricks.delta.schema.autoMerge.enabled",
    "spark.sql.sources.partitionOverwriteMode",
)
