"""``tablectl explain`` for exceptions, error classes and isolation levels, on a live table or without one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tablectl.conflicts.transactions import Conflict
from tablectl.delta.protocol import FEATURES
from tablectl.insight.explain_word import facts_about, nearest_words, rows_about
from tablectl.insight.glossary import find_term
from tests.commands.conftest import Cli, Repository

ROOT = Path(__file__).parents[2]


def test_an_exception_without_a_table(cli: Cli, repo: Repository) -> None:
    result = cli("explain", "ConcurrentAppendException")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("DELTA_CONCURRENT_APPEND (ConcurrentAppendException)\n")
    for place in ("Delta Spark 4.4, without partitions", "Delta Spark 4.4, partitioned", "Databricks 14.3"):
        assert place in result.out
    assert "  - name partition columns with literals" in result.out


def test_what_causes_it_on_a_table(cli: Cli, repo: Repository) -> None:
    repo.table("orders", partitions=["day"])
    result = cli("explain", "DELTA_CONCURRENT_APPEND", "--table", repo.name("orders"))
    assert f"What causes it on {repo.name('orders')}\n  Delta Spark 4.4.0, at Serializable:\n" in result.out
    assert "on the same data" in result.flat
    assert "Databricks 14.3" not in result.out


def test_the_reordering_on_the_columns_of_a_table(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    result = cli("explain", "writeserializable", "--table", repo.name("orders"))
    told = " ".join(result.out.replace("`delta`", "delta").split())
    assert "1 the first statement begins and reads version 1: DELETE FROM" in told
    assert f"DELETE FROM {repo.name('orders')} WHERE `id` = 42" in told
    assert "a second statement commits version 2:" in told
    assert "it fails with ConcurrentAppendException" in told
    assert "it commits. The history says INSERT (2), then DELETE (3)" in told


def test_for_machines(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    found = json.loads(cli("explain", "Serializable", "--table", repo.name("orders"), "--format", "json").out)
    outcomes = found["example"]["outcomes"]
    assert {level: (each["result"], each["exception"]) for level, each in outcomes.items()} == {
        "Serializable": ("fails", "ConcurrentAppendException"),
        "WriteSerializable": ("commits", ""),
    }
    found = json.loads(cli("explain", "MetadataChangedException", "--format", "json").out)
    pairs = {(each["current"], each["committed"]): each["verdict"] for each in found["causes"][0]["pairs"]}
    assert pairs["insert", "set"] == "fails"
    assert found["example"] is None


def test_a_part_of_an_error_class(cli: Cli, repo: Repository) -> None:
    result = cli("explain", "DELTA_CONCURRENT_APPEND.WHOLE_TABLE_READ")
    assert "  The statement read the whole table: narrow it with a condition.\n" in result.out


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["DELTA_CONCURRENT_APEND"], 64, "did you mean DELTA_CONCURRENT_APPEND?"),
        (["ConcurrentApendException"], 64, "did you mean ConcurrentAppendException?"),
        (["nonsense", "--table", "a.b.c"], 64, "is not a known term"),
        (["Serializable", "--table", "isolation"], 64, "an attribute of tables, not a table"),
        (["Serializable", "--table", "delta.`{lake}/gone`"], 1, "gone"),
    ],
)
def test_what_makes_no_sense(cli: Cli, repo: Repository, args: list[str], code: int, says: str) -> None:
    result = cli("explain", *(arg.replace("{lake}", str(repo.lake)) for arg in args))
    assert (result.code, result.out) == (code, "")
    assert says in result.err


def test_a_word_needs_no_policies_and_a_table_says_why_it_is_not_found(cli: Cli, repo: Repository) -> None:
    """In a folder whose policies have an undefined variable, each word was answered with the variable alone."""
    (repo.root / "policies").mkdir(exist_ok=True)
    (repo.root / "policies" / "lake.yaml").write_text("version: 1\ntables:\n  delta.`${LAKE}/orders`: {}\n")
    known = cli("explain", "checkpointProtection")
    assert known.code == 0
    assert "docs/features.md" in known.out
    ran = cli("explain", "orders")
    assert ran.code == 64
    assert "cannot be read: policies/lake.yaml:3: the variable LAKE is not defined" in ran.err


WORDS = """
isolation level; isolation levels; write conflict; write conflicts; row-level concurrency;
row level concurrency; RLC; snapshot; snapshot isolation; serializable; Serializable; WriteSerializable;
write serializable; write-serializable; MERGE INTO; merge; UPDATE; DELETE; INSERT; INSERT INTO; append mode;
blind append; ZORDER; ZORDER BY; z-order; OPTIMIZE; Photon; deadlock; deadlocks; lock; locks; DROP FEATURE;
ADD COLUMNS; add column; transaction log; primary key; primary keys; foreign key; empty path; metadata change;
metadata changes; table protocol; table properties; data schema; streaming read; streaming reads;
structured streaming; checkpoint location; UniForm; upgrade uniform; REORG; REORG TABLE; purge;
identity column; identity columns; liquid clustering; deletion vector; deletion vectors; partition; partitions;
disjoint conditions; disjoint command conditions; conflict exceptions; ConcurrentAppendException;
concurrent append exception; ConcurrentDeleteReadException; MetadataChangedException;
metadata changed exception; ProtocolChangedException; ConcurrentTransactionException; ACID; ACID guarantees;
atomicity; consistency; isolation; durability; optimistic concurrency control; occ; concurrency control;
begin atomic; BEGIN/END; BEGIN TRANSACTION; transaction; transactions; multi-table transactions;
multi-statement transactions; catalog commits; VACUUM; data file; data files; object storage;
cloud object storage; transactional commits; marker files; reader; readers; writer; writers; multiple writers;
cluster; clusters; workspace; commit; rollback; history; subquery; append; blind appends; compaction;
high cardinality; schema evolution; catalogManaged; catalog managed; deletionVectors; column mapping;
columnMapping; rowTracking; row tracking; v2Checkpoint; timestampNtz; typeWidening; variantType;
inCommitTimestamp; domainMetadata; generatedColumns; checkConstraints; appendOnly; changeDataFeed;
change data feed; invariants; identityColumns; vacuumProtocolCheck; checkpointProtection; geospatial;
icebergCompatV2; allowColumnDefaults; materializePartitionColumns;
DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD; DELTA_TABLE_NOT_FOUND;
DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY; guard; gate; drain; lease; lockout; quiet moment
"""
"""The words and phrases of the pages on isolation and on ACID guarantees, and of the features that tables have."""


@pytest.mark.parametrize("word", [each.strip() for each in " ".join(WORDS.split()).split(";")])
def test_each_word_of_the_pages_on_isolation_and_acid_is_explained(word: str) -> None:
    assert rows_about(word) or facts_about(word) or find_term(word)


@pytest.mark.parametrize("feature", [each.name for each in FEATURES])
def test_each_feature_is_explained_in_any_spelling(feature: str) -> None:
    assert rows_about(feature)
    assert rows_about(feature.upper())


def test_a_feature_names_the_clients_that_read_and_write_it(cli: Cli, repo: Repository) -> None:
    said = cli("explain", "catalogManaged").flat
    assert "a feature of the protocol that readers and writers must support" in said
    assert "read by spark 4.1.0" in said
    assert "`features: {catalogManaged: supported}`" in said


@pytest.mark.parametrize("file", ["attributes", "applying", "commands", "planning"])
def test_each_condition_that_a_message_names_is_explained(file: str) -> None:
    source = "".join(each.read_text() for each in (ROOT / "tablectl" / file).rglob("*.py"))
    named = set(re.findall(r'"(DELTA_[A-Z_.]{6,})"', source)) | {each.value for each in Conflict}
    assert {name for name in named if find_term(name) is None} == set()


@pytest.mark.parametrize(
    ("pasted", "name"),
    [
        ("[DELTA_METADATA_CHANGED] The metadata of the Delta table has been changed", "DELTA_METADATA_CHANGED"),
        ("io.delta.exceptions.ConcurrentAppendException: Files were added", "DELTA_CONCURRENT_APPEND"),
        ("concurrent append exception", "DELTA_CONCURRENT_APPEND"),
        ("write serializable", "WriteSerializable"),
    ],
)
def test_a_message_is_explained_as_it_is_pasted(pasted: str, name: str) -> None:
    found = find_term(pasted)
    assert found is not None
    assert found.name == name


def test_a_miss_lists_the_three_nearest(cli: Cli, repo: Repository) -> None:
    result = cli("explain", "photn")
    assert result.code == 64
    assert "did you mean photon? Or " in result.err
    assert nearest_words("lock contention")[0] == "lock"
    assert nearest_words("schema change in a stream")[0] == "schema change"
