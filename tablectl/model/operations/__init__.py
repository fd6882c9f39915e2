"""The operations that tablectl can run on a table: a closed set, one file each. None of them drops a table, a column or
a row.
"""

from __future__ import annotations

from tablectl.delta.names import TableName
from tablectl.model.code_block import Code
from tablectl.model.operations.base import PARTITIONS, Operation, TableState
from tablectl.model.operations.cluster_by import ClusterBy
from tablectl.model.operations.drop_feature import DropFeature
from tablectl.model.operations.optimize_data import OptimizeData
from tablectl.model.operations.purge import Purge
from tablectl.model.operations.remove_mapping import RemoveMapping
from tablectl.model.operations.repartition import Repartition
from tablectl.model.operations.replace_partitions import ReplacePartitions
from tablectl.model.operations.set_managed import SetManaged
from tablectl.model.operations.set_optimization import SetOptimization
from tablectl.model.operations.set_properties import SetProperties
from tablectl.model.operations.unset_managed import UnsetManaged
from tablectl.model.operations.unset_properties import UnsetProperties
from tablectl.model.operations.upgrade_uniform import UpgradeUniform

__all__ = [
    "OPERATIONS",
    "PARTITIONS",
    "ClusterBy",
    "DropFeature",
    "Operation",
    "OptimizeData",
    "Purge",
    "RemoveMapping",
    "Repartition",
    "ReplacePartitions",
    "SetManaged",
    "SetOptimization",
    "SetProperties",
    "TableState",
    "UnsetManaged",
    "UnsetProperties",
    "UpgradeUniform",
    "render",
    "render_code",
]

OPERATIONS: tuple[type[Operation], ...] = (
    SetProperties,
    UnsetProperties,
    ClusterBy,
    Purge,
    RemoveMapping,
    UpgradeUniform,
    DropFeature,
    OptimizeData,
    Repartition,
    ReplacePartitions,
    SetOptimization,
    SetManaged,
    UnsetManaged,
)
"""Every operation."""


def render(operation: Operation, table: TableName) -> str:
    """The statement as text. The engine runs this text, unless the operation is a DataFrame write."""
    return operation.code(table).text


def render_code(operation: Operation, table: TableName) -> Code:
    """The statement as code in its language."""
    return operation.code(table)
