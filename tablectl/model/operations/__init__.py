"""The operations that tablectl can run on a table: a closed set. None of them drops a table, a column or a row."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tablectl.model.catalog_answers import Right
from tablectl.model.operations.base import PARTITIONS, Operation, StatementForm
from tablectl.model.operations.constraints import AddConstraint, DropConstraint, DropNotNull, SetNotNull
from tablectl.model.operations.drop_feature import DropFeature
from tablectl.model.operations.layout import ClusterBy, OptimizeData, Repartition, ReplacePartitions
from tablectl.model.operations.reorg import Purge, UpgradeUniform, VacuumFiles
from tablectl.model.operations.settings import (
    OptimizationWord,
    RemoveMapping,
    SetManaged,
    SetOptimization,
    SetProperties,
    UnsetManaged,
    UnsetProperties,
)
from tablectl.model.plan import Verb

__all__ = [
    "OPERATIONS",
    "PARTITIONS",
    "RIGHTS",
    "AddConstraint",
    "ClusterBy",
    "DropConstraint",
    "DropFeature",
    "DropNotNull",
    "Operation",
    "OptimizationWord",
    "OptimizeData",
    "Purge",
    "RemoveMapping",
    "Repartition",
    "ReplacePartitions",
    "SetManaged",
    "SetNotNull",
    "SetOptimization",
    "SetProperties",
    "StatementForm",
    "UnsetManaged",
    "UnsetProperties",
    "UpgradeUniform",
    "VacuumFiles",
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
    AddConstraint,
    DropConstraint,
    SetNotNull,
    DropNotNull,
    VacuumFiles,
)
"""Every operation."""
RIGHTS: Mapping[Verb, Right] = MappingProxyType({each.verb: each.right for each in OPERATIONS})
"""The right that a statement of each kind needs on Databricks."""
