"""Conflicts between writers of a table, in its current state and after its policy is applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from tablectl.attributes.policy import Policy, basis_of
from tablectl.conflicts.expected_writers import ExpectedWriters
from tablectl.conflicts.streaming_readers import stream_reader
from tablectl.conflicts.transactions import Level
from tablectl.delta.dialects import dialect_for
from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.insight.matrix.context import NO_ASSUMPTION, Assumption, ConflictContext
from tablectl.insight.matrix.matrix import Matrix, MatrixCell, MatrixDifference, RowLevel, compare, matrix, row_levels
from tablectl.insight.matrix.operations import TableOperation
from tablectl.model.plan import Change
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.derive_statements import operations_for, refusals_for
from tablectl.planning.diff import diff
from tablectl.support.frozen import frozen
from tablectl.support.json_text import UNWRITTEN, in_json


@frozen
class StreamingReader:
    """A stream that reads the table, after a commit of an operation."""

    committed: TableOperation
    effect: str
    """``goes_on``, ``restarts`` or ``stops``."""
    condition: str
    """Delta's error class, if known."""
    reason: str
    source: str
    avoid: str
    """What to do; empty if it goes on."""


def streaming_readers(found: Matrix) -> tuple[StreamingReader, ...]:
    """What each operation does to a stream."""
    dialect = dialect_for(found.setting.client.family).name
    readers = []
    for each in found.all_committed:
        made = [transaction.committed for transaction in each.transactions(found.setting, "a")]
        stop = stream_reader(made, dialect)
        effect = stop.effect.name.lower()
        readers.append(StreamingReader(each, effect, stop.condition, stop.reason, stop.source, stop.fix))
    return tuple(readers)


@frozen
class PolicyEffect:
    """What a policy changes in the matrix of a client."""

    equal: int
    """How many pairs have the same outcome as before."""
    different: tuple[MatrixDifference, ...]
    row_level: tuple[RowLevel, ...]
    """Row-level concurrency after the policy is applied."""


@frozen
class ContextComparison:
    """The matrices of one client, or of several clients with equal outcomes."""

    clients: tuple[Client, ...]
    live: Matrix = field(metadata=UNWRITTEN)
    planned: Matrix | None = field(metadata=UNWRITTEN)
    """The matrix after the policy is applied; ``None`` if it changes nothing."""

    @property
    @in_json
    def isolation(self) -> Level:
        """The level at which these clients commit."""
        return self.live.setting.level

    @property
    @in_json
    def isolation_pinned(self) -> bool:
        """Whether the table sets the level."""
        return self.live.setting.stored_level is not None

    @property
    @in_json
    def pairs(self) -> tuple[MatrixCell, ...]:
        """All pairs of operations."""
        return self.live.cells

    @property
    @in_json
    def streaming_readers(self) -> tuple[StreamingReader, ...]:
        """The streams that read the table."""
        return streaming_readers(self.live)

    @property
    @in_json
    def row_level(self) -> tuple[RowLevel, ...]:
        """Row-level concurrency as the table is."""
        return row_levels(self.live.setting)

    @property
    @in_json
    def policy(self) -> PolicyEffect | None:
        """What the policy changes; ``None`` if it changes nothing."""
        if self.planned is None:
            return None
        different, equal = compare(self.live, self.planned)
        return PolicyEffect(equal, different, row_levels(self.planned.setting))


@frozen
class ConflictReport:
    """The conflicts on one table."""

    live: LiveTable = field(metadata=UNWRITTEN)
    declared: bool
    """Whether a policy applies to the table."""
    changes: tuple[Change, ...]
    """The changes that the policy requires."""
    refused: tuple[str, ...]
    """The ids of those changes that tablectl would refuse."""
    views: tuple[ContextComparison, ...]
    format: int = 2

    @property
    @in_json
    def table(self) -> TableName:
        """Its name."""
        return self.live.name

    @property
    @in_json
    def version(self) -> int:
        """The version that the outcomes are of."""
        return self.live.version

    @property
    @in_json
    def operations(self) -> Mapping[str, str]:
        """The names of all operations, by key."""
        found = (matrix for view in self.views for matrix in (view.live, view.planned) if matrix)
        return {each.key: each.name for matrix in found for each in matrix.all_committed}


def conflict_report(
    live: LiveTable,
    policy: Policy | None,
    dialect: str,
    assumption: Assumption = NO_ASSUMPTION,
    options: TableOptions = NO_OPTIONS,
) -> ConflictReport:
    """The matrices of a table, for the clients of the assumption, otherwise for those that its history suggests."""
    changes = diff(policy, live, dialect) if policy else ()
    basis = basis_of(live, options)
    refused = tuple(refusal.change for refusal in refusals_for(changes, live, dialect, options))
    expected = assumption.clients or [(client, None) for client in ExpectedWriters.of(basis, dialect).clients]
    views: list[ContextComparison] = []
    # After the policy is applied, even if that needs a rewrite that is refused.
    operations = [each.operation for each in operations_for(changes, basis)]
    for client, photon in expected:
        setting = ConflictContext.of(live, client, photon=photon, auto_compact=assumption.auto_compact)
        after = setting.after(operations)
        view = ContextComparison((client,), matrix(setting), matrix(after) if changes else None)
        same = next((each for each in views if _alike(each, view)), None)
        if same is None:
            views.append(view)
        else:
            views[views.index(same)] = replace(same, clients=(*same.clients, client))
    return ConflictReport(live, policy is not None, changes, refused, tuple(views))


def _alike(one: ContextComparison, other: ContextComparison) -> bool:
    pairs = ((one.live, other.live), (one.planned, other.planned))
    return all(_outcomes(left) == _outcomes(right) for left, right in pairs)


def _outcomes(found: Matrix | None) -> list[tuple[object, ...]]:
    cells = found.cells if found else ()
    return [(cell.current.key, cell.committed.key, cell.overlapping, cell.separate) for cell in cells]
