"""Writers that name a table's partition columns. They fail permanently once a plan changes these columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablectl.lint_rules.rule import RuleFinding
from tablectl.model.plan import Basis, Change, Refusal
from tablectl.model.writers import PartitionWriter

CONSENT = "partition_writers"
_SHOWN = 5


def partition_refusals(changes: Sequence[Change], basis: Basis) -> tuple[Refusal, ...]:
    """A refusal if the history has such writers and the policy does not consent."""
    change, writers = _changed(changes), basis.partition_writers
    if change is None or not writers or CONSENT in basis.options.allow:
        return ()
    return (
        Refusal(
            change=change.id,
            reason=f"existing writers of the table would fail on every run: {_text(writers)}",
            fix="take `partitionBy` out of their code (a write that names no columns takes those of the table), "
            f"then consent with `allow: [{CONSENT}]`; commits made before the fix still count",
            condition="DELTA_METADATA_MISMATCH",
        ),
    )


def partition_findings(changes: Sequence[Change], basis: Basis) -> Iterator[RuleFinding]:
    """P006: the same, if the policy consents."""
    if _changed(changes) is not None and basis.partition_writers and CONSENT in basis.options.allow:
        yield RuleFinding(
            "P006", f"existing writers of the table will fail on every run: {_text(basis.partition_writers)}"
        )


def _changed(changes: Sequence[Change]) -> Change | None:
    return next((each for each in changes if each.attribute == "partitioning"), None)


def _text(writers: Sequence[PartitionWriter]) -> str:
    shown = "; ".join(map(_one, writers[:_SHOWN]))
    return f"{shown}; and {len(writers) - _SHOWN} more" if len(writers) > _SHOWN else shown


def _one(writer: PartitionWriter) -> str:
    who = f" ({writer.who})" if writer.who else ""
    does = (
        "names the partition columns"
        if writer.certain
        else "may name the partition columns, which the log does not tell"
    )
    return f"{writer.operation} by {writer.client}{who}, last in version {writer.version}, {does}"
