"""One repository, opened for one command: configuration, variables, policies, stores and engine, each once.

Nothing is read or started before it is needed: most commands start no engine, and some reach no store.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self

from tablectl.attributes.policy import VALUE_TYPES
from tablectl.catalogs.open_catalogs import connector_conf, open_catalogs
from tablectl.delta.credentials import server_text
from tablectl.delta.databricks_runtimes import Runtime
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import TableName
from tablectl.engine import spark
from tablectl.engine.interface import Catalog, Engine, EngineOptions
from tablectl.engine.sql_endpoint import open_endpoint
from tablectl.log.disk_cache import DiskCache, cache_directory
from tablectl.log.reader import read_table
from tablectl.log.state import TableCache
from tablectl.model.errors import EngineError, InputError, PlanFileError, UsageError
from tablectl.model.plan import Plan
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.planning.plan_file import check_environment
from tablectl.policies.config import THRIFT, WAREHOUSE, Config, with_settings
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.effective_policy import AmbiguousNameError, called, is_word, parse_name, spec_for
from tablectl.policies.own_rules import OwnRule, own_rules
from tablectl.policies.read_config import BASE, ENV, FILE, check_merged, load_config, repository_above
from tablectl.policies.repository import (
    Paths,
    Repository,
    has_policies,
    open_repository,
    relevant_files,
    requested_tables,
    variables_for,
    whole_catalog,
)
from tablectl.policies.variables import Variables
from tablectl.reports.mask import Mask
from tablectl.storage.mounts import own_place
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.records import open_records

if TYPE_CHECKING:  # they load obstore and SSL, which `validate` and `explain` do without
    from tablectl.catalogs.registry import Catalogs
    from tablectl.storage.records import RecordStore

SHARED = "shared"
"""The value of ``driver``: all writers of the tables commit in the driver of the given session."""


class CatalogEngine(Engine, Catalog, Protocol):
    """An engine that also finds tables by name."""


def silent(_what: str) -> None:
    """Reports nothing."""


@dataclass(frozen=True, slots=True)
class EngineSource:
    """Where a command gets its engine, if not from the configuration."""

    spark: Any = None
    """A session that was passed in."""
    driver: str | None = None
    """``SHARED`` states that the tables' writers commit in the driver of that session."""
    on_start: Callable[[str], None] = silent
    """Called with a text before an engine is started."""
    open: Callable[[str], CatalogEngine] | None = None
    """Opens an engine with a stamp, instead of Spark."""


class Engines:
    """The engine of a command, started on first use: most plans never need one."""

    def __init__(self, config: Config, source: EngineSource = EngineSource()) -> None:
        self._config = config
        self._source = source
        self._lookup: CatalogEngine | None = None
        self._broken: EngineError | None = None
        self._told: set[str] = set()

    def start(self) -> CatalogEngine:
        """An engine without a stamp, shared by all look-ups of the command. A failed start is not retried."""
        if self._broken is not None:
            raise self._broken
        if self._lookup is None:
            try:
                self._lookup = self.open("")
            except EngineError as error:
                self._broken = error
                raise
        return self._lookup

    def open(self, stamp: str) -> CatalogEngine:
        """An engine whose commits carry the stamp. The caller closes it."""
        if self._source.open is not None:
            return self._source.open(stamp)
        check_merged(self._config.unmerged)
        engine = self._config.engine
        remote = engine.server
        options = EngineOptions(
            engine.dialect,
            remote,
            connector_conf(engine.conf, self._config.catalogs, os.environ),
            float(engine.heartbeat),
            float(engine.dead_after),
            statement_bound=None if engine.statement_bound is None else float(engine.statement_bound),
            commit_bound=float(engine.commit_bound),
            stores=self._config.stores.families(),
            serverless=engine.runtime is not None and engine.runtime.version is None,
            cluster=engine.cluster,
            thrift_login=engine.thrift_login,
            thrift_tls=engine.thrift_tls,
        )
        session = self._source.spark
        if session is not None:
            stated = self._source.driver == SHARED
            return spark.wrap_spark(session, engine.dialect, stamp, options, stated=stated)
        what = f"connecting to {server_text(remote)}" if remote else "starting Spark"
        if what not in self._told:
            self._source.on_start(what)
            self._told.add(what)
        if remote and remote.startswith((THRIFT, WAREHOUSE)):
            return open_endpoint(remote, options, os.environ, stamp)
        return spark.open_spark(options, stamp)

    def close(self) -> None:
        """Closes the engine of the look-ups."""
        if self._lookup is not None:
            self._lookup.close()


@dataclass(frozen=True)
class Project:
    """One repository. A context manager, which closes the engine of the look-ups at its end."""

    config: Config
    """The configuration of the chosen environment."""
    directory: Path = Path()
    given: Mapping[str, str] = field(default_factory=dict)
    """Values of variables that the caller gave."""
    source: EngineSource = EngineSource()
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    cached: bool = False
    """Whether what is read of tables is kept for the next command."""

    @classmethod
    def open(  # what a caller may say about a repository
        cls,
        directory: str | Path = ".",
        *,
        env: str | None = None,
        variables: Mapping[str, str] | None = None,
        source: EngineSource = EngineSource(),
        plan: Plan | None = None,
        cached: bool = False,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> Self:
        """The repository in a directory, by default the current one or the nearest above it with a ``tablectl.yaml``,
        in the environment ``env``: by default that of ``TABLECTL_ENV``, or that of a
        ready ``plan``; an empty text means the top level alone. ``settings`` override those of the configuration.

        Raises ``InputError`` for a wrong ``tablectl.yaml``, ``UsageError`` for an unknown environment. For a plan,
        raises ``PlanFileError`` if ``env`` or ``TABLECTL_ENV`` names another environment than the plan's, or if that no
        longer exists.
        """
        directory = repository_above() if str(directory) == "." else Path(directory)
        config = load_config(directory, os.environ, env) if plan is None else _config_of(plan, env, directory)
        return cls(with_settings(config, settings), Path(directory), variables or {}, source, cached=cached)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.engines.close()

    @property
    def dialect(self) -> str:
        """The dialect of statements."""
        return self.config.engine.dialect

    def in_dialect(self, name: str) -> Project:
        """The same repository, as if ``engine.dialect`` were another one."""
        return replace(self, config=replace(self.config, engine=replace(self.config.engine, dialect=name)))

    @property
    def runtime(self) -> Runtime | None:
        """The Databricks Runtime of the engine; ``None`` if it is not stated, or if the dialect has no runtimes."""
        return self.config.engine.runtime if dialect_of(self.dialect).runtime else None

    @property
    def catalog(self) -> str:
        """The catalog of identifiers with two parts."""
        return self.config.engine.catalog

    @cached_property
    def variables(self) -> Variables:
        """The values of variables. Precedence, highest first: given, ``TABLECTL_VAR_…``, the configuration."""
        return variables_for(self.config, self.given, self.environ)

    @cached_property
    def _opened(self) -> dict[tuple[str, ...], tuple[Repository, Specs]]:
        return {}

    def repository(self, paths: Paths = None) -> tuple[Repository, Specs]:
        """The policy files in ``paths``, by default those of the configuration, and the policies in them. The same
        paths are read once. Raises ``InputError`` with all errors.
        """
        key = (str(paths),) if isinstance(paths, str | Path) else tuple(map(str, paths or ()))
        if key not in self._opened:
            self._opened[key] = open_repository(paths, self.config, self.directory, self.variables)
        return self._opened[key]

    def policies(self, paths: Paths = None) -> Specs:
        """The policies in ``paths``, as ``repository``."""
        return self.repository(paths)[1]

    def policies_about(self, name: TableName, paths: Paths = None) -> Specs:
        """The policies in the files that can concern one table. Raises as ``policies``."""
        choose = partial(relevant_files, tables=(name,))
        try:
            return open_repository(paths, self.config, self.directory, self.variables, choose)[1]
        except InputError:  # it may be an error only without the other files: a profile refers to their defaults
            return self.policies(paths)

    def any_policies(self, paths: Paths = None, asked: Specs | None = None) -> Specs:
        """As ``policies``, for commands that need none: empty if no paths are given and the repository has none. Where
        tables are asked for, policies with an error are left out with a note.
        """
        try:
            return self.policies(paths) if paths or has_policies(self.config, self.directory) else Specs.of(())
        except InputError as error:
            if paths or asked is None:
                raise
            self.source.on_start(f"the policies of this folder are left out: {str(error.problems[0]).splitlines()[0]}")
            return Specs.of(())

    def requested(self, tables: Sequence[str], *, everything: bool = False) -> Specs | None:
        """Specs without policies for named tables and patterns, and for the whole catalog with ``everything``; ``None``
        if nothing is requested. Raises ``UsageError`` for text that is not a name.
        """
        texts = list(map(self._asked, tables))
        texts += [whole_catalog(self.catalog)] if everything else []
        return requested_tables(texts, self.catalog, self.variables) if texts else None

    def _asked(self, text: str) -> str:
        """What a word alone means: a table that the policies name, otherwise a folder here."""
        if not is_word(text) or not has_policies(self.config, self.directory):
            return text
        try:
            return self.named(text).text
        except AmbiguousNameError:
            raise
        except UsageError:
            if Path(text).is_dir():
                return f"./{text}"
            raise

    def policies_of_plan(self, paths: Paths = None) -> Specs:
        """The policies to compare a plan with. Raises as ``policies``, and ``UsageError`` if there are none."""
        if not paths and not (self.directory / self.config.policies).exists():
            raise UsageError(
                "this folder has no policies to compare the plan with",
                "run this where the policies are, or name them; `--without-policies` (`without_policies=True`) takes "
                "the plan's word for which tables are changed, to what, and with which consent",
            )
        return self.policies(paths)

    def named(self, text: str, paths: Paths = None) -> TableName:
        """The table of a name. Where policies are at hand, an unambiguous last part is enough. Raises ``UsageError``
        for other text.
        """
        if is_word(text) and text not in VALUE_TYPES and (paths or has_policies(self.config, self.directory)):
            return called(self.policies(paths), text)
        return parse_name(text, self.catalog, self.dialect)

    def find(self, table: str, paths: Paths = None) -> tuple[TableName, TableSpec | None]:
        """A table by its name, with its policy if there is one. Raises ``UsageError`` for text that is not a name."""
        name = self.named(table, paths)
        specs = self.policies_about(name, paths) if paths or has_policies(self.config, self.directory) else Specs.of(())
        return name, spec_for(specs, name)

    @cached_property
    def engines(self) -> Engines:
        """The engine of the command."""
        return Engines(self.config, self.source)

    @cached_property
    def stores(self) -> StoreOptions:
        """How to reach object stores: the same for the log of a table and for the records next to it."""
        stores = self.config.stores
        return StoreOptions(
            families=stores.families(),
            concurrency=stores.concurrency,
            processes=stores.processes,
            access=self.catalogs,
        )

    @cached_property
    def catalogs(self) -> Catalogs | None:
        """The configured catalogs; ``None`` if all catalogs are the engine's. Raises ``UsageError``, also for keys that
        an unmerged branch must not decide: all that reads tables or their records comes through here.
        """
        check_merged(self.config.unmerged)
        if not self.config.catalogs:
            return None
        if any(each.login == "databricks" for each in self.config.catalogs.values()):
            self.source.on_start("logging in to Databricks")
        return open_catalogs(self.config.catalogs, self.engines.start, self.environ)

    def open_catalog(self) -> Catalog:
        """Where names of tables are looked up. Starts an engine only if that has to do with one."""
        return self.catalogs or self.engines.start()

    def expect(self, plan: Plan) -> None:
        """Looks up the tables of a plan whose catalog says how to read them. A table that cannot be found fails when it
        is read.
        """
        if self.catalogs is not None:
            for table in plan.tables:
                self.catalogs.expect(table.table, table.location)

    @cached_property
    def own_rules(self) -> tuple[OwnRule, ...]:
        """The lint rules of installed packages."""
        return own_rules()

    @cached_property
    def mask(self) -> Mask:
        """The values that reports must not show."""
        return Mask(self.config.reports.mask, self._secret_values())

    def _secret_values(self) -> frozenset[str]:
        """The values that masked keys take from variables: a policy can give them to another key, too. The policies of
        the base branch decide along with those at hand; if any cannot be read, every variable counts.
        """
        if not self.variables.private_values():
            return frozenset()
        base = Path(self.environ.get(BASE, ""))
        try:
            found = [specs for _, specs in self._opened.values()] or [self.any_policies()]
            if base.name == FILE:
                merged = load_config(base.parent, {}, "")
                if self.config.environment in merged.env:
                    merged = load_config(base.parent, {}, self.config.environment)
                if has_policies(merged, base.parent):
                    given = variables_for(merged, self.given, self.environ)
                    found.append(open_repository(None, merged, base.parent, given)[1])
        except InputError:
            return self.variables.private_values()
        return self.variables.private_values({name for each in found for name in each.declarations.secret_variables})

    def records(self, location: str) -> RecordStore:
        """The lease records of the table at a location. Raises ``LiveError`` if its folder is a link."""
        return open_records(location, self.config.state, own_place(location), self.stores)

    @cached_property
    def cache(self) -> TableCache:
        """What earlier reads of tables left, in the configured directory or in the user's, if the project uses it."""
        if not self.cached:
            return TableCache()
        check_merged(self.config.unmerged)
        configured = self.directory / self.config.cache if self.config.cache else None
        directory = configured or cache_directory(self.environ)
        return DiskCache(directory) if directory else TableCache()

    def read(self, name: TableName, spec: TableSpec | None, depth: Depth | None = None) -> LiveTable:
        """A live table, by default with its history and its write history. The engine is asked for its location only if
        neither the name nor the policy has it. Raises ``LiveError`` if it cannot be read.
        """
        location = name.parts[0] if name.is_path else (spec and spec.location) or self.open_catalog().location(name)
        depth = depth or Depth(LOOK_BACK, writers=lambda _live: True)
        return read_table(name, location, depth, cache=self.cache, options=self.stores)


def _config_of(plan: Plan, env: str | None, directory: str | Path) -> Config:
    """The configuration for applying a ready plan: that of the plan's environment."""
    check_environment(plan, (os.environ.get(ENV) or None) if env is None else env)
    try:
        return load_config(Path(directory), os.environ, plan.env)
    except UsageError as error:
        raise PlanFileError(f"the plan is for the environment {plan.env}: {error.message}", error.hint) from None
