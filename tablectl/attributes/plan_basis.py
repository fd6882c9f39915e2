"""The basis of a live table: what its statements are derived from."""

from __future__ import annotations

from tablectl.attributes.policy import OWNED
from tablectl.delta.schema import TYPE_CHANGES
from tablectl.delta.table_features import SWITCHES
from tablectl.model.plan import Basis, ProtocolFact
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.model.writers import client_facts, partition_writers, writer_evidence

_STORED = OWNED.keys() | SWITCHES


def basis_of(live: LiveTable, options: TableOptions = NO_OPTIONS, runtime: str = "") -> Basis:
    """The basis of a live table under the options of its policy, for a Databricks Runtime if it is known."""
    return Basis(
        protocol=ProtocolFact.of(live.protocol),
        partitioned=bool(live.partition_columns),
        clustered=live.clustering is not None,
        identity=live.schema.has_identity(),
        schema_writers=live.schema_writers,
        overwrites=live.overwrites,
        clients=client_facts(live),
        partition_writers=partition_writers(live),
        evidence=writer_evidence(live),
        vectors=live.vectors,
        files=live.files,
        bytes=live.bytes,
        nested=any(each.fields or each.within for each in live.schema.fields),
        stored=tuple(sorted(pair for pair in live.properties.items() if pair[0].lower() in _STORED)),
        widened=TYPE_CHANGES in live.schema.text,
        marks=live.marks,
        truncation=live.truncation.due if live.truncation else 0,
        options=options,
        metadata_version=live.catalog.metadata_version if live.catalog else None,
        runtime=runtime,
    )
