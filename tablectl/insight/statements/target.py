"""The table of the compared statements, and the names that refer to it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tablectl.delta.locations import canonical_location, is_local
from tablectl.delta.names import TableName
from tablectl.delta.schema import Field, Schema
from tablectl.insight.statements.literals import ColumnDomain, domain_of
from tablectl.insight.statements.predicates import Scope
from tablectl.model.table import LiveTable
from tablectl.support.files import real_path


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementTable:
    """The facts about the table that decide whether statements conflict."""

    name: TableName
    location: str
    schema: Schema
    partition_columns: tuple[str, ...] = ()
    vectors: int | None = None
    """Deletion vectors in the current version; ``None`` if unknown."""
    files: int | None = None

    @classmethod
    def of(cls, live: LiveTable) -> StatementTable:
        """The facts of a live table."""
        return cls(
            name=live.name,
            location=live.location,
            schema=live.schema,
            partition_columns=live.partition_columns,
            vectors=live.vectors,
            files=live.files,
        )

    @property
    def nested(self) -> bool:
        """Whether a column is a struct or contains structs."""
        return any(len(path) > 1 for path, _ in self.schema.every_field())

    @property
    def identity(self) -> bool:
        """Whether the table has identity columns."""
        return self.schema.has_identity()

    @property
    def partitions(self) -> tuple[str, ...]:
        """The folded names of the partition columns."""
        return tuple(each.casefold() for each in self.partition_columns)

    def generated_from(self, columns: Iterable[str]) -> frozenset[str]:
        """The folded names of the partition columns that Delta may compute from any of these columns.

        It compares the words of the names with those of the expression, so it may name too many, but never too few.
        """
        wanted = [_words(column) for column in columns]
        own = {name: _words(field.generated) for name, field in self._partition_fields() if field.generated}
        return frozenset(name for name, words in own.items() if any(each <= words for each in wanted))

    def _partition_fields(self) -> Iterator[tuple[str, Field]]:
        fields = ((field.name.casefold(), field) for field in self.schema.fields)
        return ((name, field) for name, field in fields if name in self.partitions)

    def domain(self, column: str) -> ColumnDomain | None:
        """The domain of a column by folded name; ``None`` if unknown."""
        return self._domains().get(column)

    def _domains(self) -> dict[str, ColumnDomain | None]:
        return {field.name.casefold(): domain_of(field) for field in self.schema.fields}

    def scope(self, written: Sequence[str], alias: str, *, alone: bool = True) -> Scope:
        """The scope of this table in a statement that names it like this."""
        parts = tuple(part.casefold() for part in written)
        own = ((alias.casefold(),),) if alias else tuple(parts[start:] for start in range(len(parts)))
        return Scope(own, self._domains(), self.partitions, alone)

    def named(self, written: Sequence[str]) -> bool:
        """Whether a name in a statement means this table: in full, or without the current catalog or schema. A table
        that has only a path is called by its last folders.
        """
        parts = tuple(part.casefold() for part in written)
        if len(parts) == 2 and parts[0] == "delta":
            places = {_folded(self.location)} | ({_folded(self.name.parts[0])} if self.name.is_path else set())
            relative = self.name.is_path and not written[1].startswith("/") and ":" not in written[1]
            return _folded(written[1]) in places or (relative and parts[1:] == self._folders(1))
        if self.name.is_path:
            return parts == self._folders(len(parts))
        whole = tuple(part.casefold() for part in (self.name.catalog, *self.name.parts))
        return parts == whole[-len(parts) :]

    def written_as(self, written: Sequence[str]) -> bool:
        """Whether a statement that is asked about may write this table by that name: one with only a path may have any
        schema in the session, so the last part decides.
        """
        by_name = self.name.is_path and (len(written), written[0].casefold()) != (2, "delta")
        return self.named(written) or (by_name and (written[-1].casefold(),) == self._folders(1))

    def _folders(self, count: int) -> tuple[str, ...]:
        """The last folders of the path."""
        return tuple(each.casefold() for each in self.name.parts[0].rstrip("/").split("/")[-count:])


def _folded(location: str) -> str:
    """A location without dots, and on local disks without links."""
    plain = canonical_location(location)
    if is_local(plain):
        return real_path(plain)
    scheme, _, rest = plain.partition("://")
    authority, _, path = rest.partition("/")
    return f"{scheme}://{authority}{posixpath.normpath(f'/{path}')}".rstrip("/")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))
