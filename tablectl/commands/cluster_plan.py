"""``plan --on spark``: tables are read and planned on the executors of a cluster, whose credentials reach the lake.

The tables are located here, by the policies and the catalogs. Each executor gets the policies and a part of the
locations, runs the function that plans a shard, and returns the plan file of its part. The parts are merged as shards
are, so the result equals a plan that was made at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tablectl.commands.make_plan import MOST_WITH_LOSSES, plan_located
from tablectl.commands.project import Project
from tablectl.commands.read_tables import locate_tables, sorted_failures
from tablectl.commands.selection import LocatedTable, Selection
from tablectl.delta.names import parse_table
from tablectl.engine.port import Executors, RemoteWork
from tablectl.model.errors import EngineError, UsageError
from tablectl.model.plan import Plan
from tablectl.planning.merge_plans import MOST_SHARDS, Shard, merge_plans
from tablectl.planning.plan_file import MAX_BYTES, dump_plan, load_plan
from tablectl.policies.config import CONFIG
from tablectl.policies.config_file import FILE, config_values, load_config
from tablectl.policies.fields import environment_variables
from tablectl.policies.repository import Paths, Repository, variables_for
from tablectl.policies.spec import expand
from tablectl.policies.variables import ENVIRON_PREFIX, variables_of
from tablectl.support.json_text import MOST_VALUES, read_json, write_json
from tablectl.version import __version__

_A_PART = 50
"""The number of tables that one task plans, if there are few enough."""
_NEEDED = frozenset({"lint", "reports", "stores", "variables"})
_OF_ENGINE = frozenset({"catalog", "dialect", "runtime"})
"""The sections of the configuration, and the keys of ``engine``, that a plan depends on. The others hold addresses,
commands and settings that can be secrets.
"""


def plan_on_cluster(project: Project, paths: Paths, selection: Selection) -> Plan:
    """The plan of the selected tables, made on the executors of the engine.

    Raises as ``make_plan``; ``UsageError`` for an engine without executors, and ``EngineError`` if they lack tablectl
    or have another version of it.
    """
    repository, specs = project.repository(paths)
    located = locate_tables(project, specs, selection)
    engine = project.engines.start()
    if not isinstance(engine, Executors):
        raise UsageError("this engine has no executors", "leave `--on spark` out")
    if not located.tables:
        return plan_located(project, located, selection.shard, losses=False)
    parts = _parts(located)
    common = _bundle(project, repository, losses=len(located.tables) <= MOST_WITH_LOSSES)
    texts = engine.on_executors(RemoteWork(__name__, plan_part.__name__, common), parts)
    names = [f"part {number}" for number in range(1, len(parts) + 1)]
    merged = merge_plans([(name, load_plan(text.encode(), name)) for name, text in zip(names, texts, strict=True)])
    if merged.policies != specs.digest:
        raise EngineError("the executors read other policies", "install the same version of tablectl on them")
    failures = {*merged.failures, *located.failures}
    return replace(
        merged,
        policies=located.policies,
        changed_since=located.changed_since,
        failures=sorted_failures(failures),
        unmatched=located.unmatched,
        shard=selection.shard.text if selection.shard else "",
    )


def _parts(located: LocatedTable) -> list[str]:
    """The tables and their locations, divided among tasks: as JSON, each with the number of its part."""
    tables = [(spec.name.text, where) for spec, where in located.tables]
    count = min(MOST_SHARDS, -(-len(tables) // _A_PART))
    return [
        write_json({"shard": Shard(number + 1, count).text, "tables": tables[number::count]}) for number in range(count)
    ]


def _bundle(project: Project, repository: Repository, *, losses: bool) -> str:
    """What all executors need: what a plan depends on of the configuration, the policies, the variables in them."""
    texts, environ = repository.texts(), project.environ
    used = {name for text in texts.values() for name in variables_of(text)}
    names = {f"{ENVIRON_PREFIX}{name}" for name in used}
    names |= {name for name, keys in environment_variables(CONFIG) if keys[0] in _NEEDED or _of_engine(keys)}
    return write_json(
        {
            "version": __version__,
            "config": write_json(_planned(config_values(project.directory, environ))),
            "environment": project.config.environment,
            "environ": {name: environ[name] for name in names if name in environ},
            "variables": {name: value for name, value in project.given.items() if name in used},
            "policies": texts,
            "losses": losses,
        }
    )


def _of_engine(keys: Sequence[str]) -> bool:
    return keys[0] == "engine" and keys[1] in _OF_ENGINE


def _planned(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the configuration that a plan depends on, at the top and in environments."""
    found = {key: value for key, value in values.items() if key in _NEEDED}
    found["engine"] = {key: value for key, value in (values.get("engine") or {}).items() if key in _OF_ENGINE}
    sections = (values.get("env") or {}).items()
    return {**found, **({"env": {name: _planned(each or {}) for name, each in sections}} if sections else {})}


def plan_part(common: str, part: str) -> str:
    """The plan file of one part, made on an executor. Both texts are JSON, of ``_bundle`` and ``_parts``."""
    bundle, given = read_json(common, MAX_BYTES, MOST_VALUES), read_json(part, MAX_BYTES, MOST_VALUES)
    if bundle["version"] != __version__:
        raise RuntimeError(f"this executor has tablectl {__version__}, and the plan is made by {bundle['version']}")
    with TemporaryDirectory(prefix="tablectl-plan-") as directory:
        (Path(directory) / FILE).write_text(bundle["config"], "utf-8")
        config = load_config(Path(directory), bundle["environ"], bundle["environment"])
    # The locations are known, and the cluster's credentials reach them: no catalog is asked here. Each core of an
    # executor has a task of its own.
    config = replace(config, catalogs={}, stores=replace(config.stores, processes=1))
    variables = variables_for(config, bundle["variables"], bundle["environ"])
    project = Project(config, given=bundle["variables"], environ=bundle["environ"])
    specs = Repository({}, variables, config).read(bundle["policies"])
    locations = {parse_table(name): where for name, where in given["tables"]}
    known = {spec.name.key: spec for spec in expand(specs, locations).tables}
    tables = tuple((known[name.key], where) for name, where in locations.items())
    located = LocatedTable(tables, (), (), policies=specs.digest)
    return dump_plan(plan_located(project, located, Shard.parse(given["shard"]), losses=bundle["losses"])).decode()
