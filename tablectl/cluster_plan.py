"""``plan --on spark``: tables are read and planned on the executors of a cluster, whose credentials reach the lake.

The tables are located here, by the policies and the catalogs. Each executor gets the policies and a part of the
locations, runs the function that plans a shard, and returns the plan file of its part. The parts are merged as shards
are, so the result equals a plan that was made at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tablectl.delta.credentials import server_text
from tablectl.delta.names import parse_table
from tablectl.engine.port import Executors, RemoteWork
from tablectl.json_text import MOST_VALUES, read_json
from tablectl.model.errors import EngineError, UsageError
from tablectl.model.plan import Plan
from tablectl.planning.merge_plans import MOST_SHARDS, Shard, merge_plans
from tablectl.planning.plan_file import MAX_BYTES, dump_plan, load_plan
from tablectl.policies.branch import BASE
from tablectl.policies.config import CONFIG, FILE, load_config
from tablectl.policies.fields import environment_variables
from tablectl.policies.repository import Paths, Repository, variables_for
from tablectl.policies.resolve import expand
from tablectl.policies.variables import ENVIRON_PREFIX
from tablectl.project import Project
from tablectl.selection import LocatedTable, Selection
from tablectl.version import __version__
from tablectl.workflow.plan import MOST_WITH_LOSSES, plan_located
from tablectl.workflow.tables import locate_tables, sorted_failures

_A_PART = 50
"""The number of tables that one task plans, if there are few enough."""
_PLANNED = frozenset({"engine", "window", "state", "stores"})
"""The sections of the configuration whose variables the executors get. The others say where files of this machine are.
"""
_REMOTE = ("engine", "remote")


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
        json.dumps({"shard": Shard(number + 1, count).text, "tables": tables[number::count]}) for number in range(count)
    ]


def _bundle(project: Project, repository: Repository, *, losses: bool) -> str:
    """What all executors need: the configuration, the policies, the values of variables. No credentials.

    Where a base branch's file decides (``BASE``), its text is a part of the configuration.
    """
    base = project.environ.get(BASE)
    return json.dumps(
        {
            "version": __version__,
            "config": _text(project.directory / FILE),
            "base": _text(Path(base)) if base else None,
            "environment": project.config.environment,
            "environ": _settings(project.environ),
            "variables": dict(project.given),
            "policies": repository.texts(),
            "losses": losses,
        }
    )


def _text(file: Path) -> str:
    return file.read_text("utf-8") if file.is_file() else ""


def _settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that set values in policies and in the sections of the configuration that a plan depends on.

    The address of an engine can hold a token, so only its server is sent.
    """
    found = {key: value for key, value in environ.items() if key.startswith(ENVIRON_PREFIX)}
    for variable, keys in environment_variables(CONFIG):
        if keys[0] in _PLANNED and variable in environ:
            value = environ[variable]
            found[variable] = server_text(value) if keys == _REMOTE else value
    return found


def plan_part(common: str, part: str) -> str:
    """The plan file of one part, made on an executor. Both texts are JSON, of ``_bundle`` and ``_parts``."""
    bundle, given = read_json(common, MAX_BYTES, MOST_VALUES), read_json(part, MAX_BYTES, MOST_VALUES)
    if bundle["version"] != __version__:
        raise RuntimeError(f"this executor has tablectl {__version__}, and the plan is made by {bundle['version']}")
    with TemporaryDirectory(prefix="tablectl-plan-") as directory:
        (Path(directory) / FILE).write_text(bundle["config"], "utf-8")
        environ = dict(bundle["environ"])
        if bundle["base"] is not None:
            base = Path(directory) / "base.yaml"
            base.write_text(bundle["base"], "utf-8")
            environ[BASE] = str(base)
        config = load_config(Path(directory), environ, bundle["environment"])
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
