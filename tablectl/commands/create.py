"""``tablectl create``: one CREATE TABLE with everything that the policy of a table declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tablectl.attributes.predictive_optimization import PredictiveOptimization
from tablectl.commands.output import Output
from tablectl.commands.parameters import (
    Cache,
    Env,
    Place,
    PolicyPaths,
    Remote,
    TextOrJson,
    VarValues,
    function,
    table_names,
)
from tablectl.commands.project import Project
from tablectl.delta.names import TableName
from tablectl.delta.schema import differences
from tablectl.delta.schema_sql import new_schema, schema_of_columns
from tablectl.delta.sql_tokens import SqlTextError
from tablectl.leases.clock import today
from tablectl.log.reader import ReadRequest, newest_version, read_many
from tablectl.model.errors import (
    EngineError,
    ExitCode,
    InputError,
    LiveError,
    MissingError,
    Problem,
    TablectlError,
    UsageError,
)
from tablectl.model.patterns import MAGIC
from tablectl.model.safe_text import value_text
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableLock
from tablectl.planning.diff import depth_for, diff
from tablectl.planning.new_table import PlannedBirth, plan_birth
from tablectl.policies.declared_tables import TableSpec
from tablectl.policies.repository import Paths, read_text, shown_path
from tablectl.policies.spelling_hints import is_slip
from tablectl.reports.render import ReportFormat
from tablectl.support.json_text import write_json
from tablectl.support.typed_json import Unwritten

_SHOWN = 10
_TWO = "give its columns (--schema FILE, in Python `schema`) or a table that has them (--like, `like`)"
_LEFT_BEHIND = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
"""Delta commits to the log before the catalog has its entry, and makes no managed table where files are."""
_EMPTY_IT = (
    "an earlier CREATE TABLE may have ended between its commit and the entry of the catalog: if nothing but _delta_log "
    "lies there, remove it, and run this again; if data lies there, it is a table without a name"
)


class RefusedError(TablectlError):
    """The table is something else, or no such table can have what its policy declares."""

    exit_code = ExitCode.REFUSED


@dataclass(frozen=True, slots=True)
class Created:
    """A table that has its policy from its first commit on."""

    table: str
    location: str
    version: int
    """Its version when it was read back."""
    made: Literal["created", "already"]
    """``already``: it existed, with the same columns and everything that the policy declares."""
    sql: str
    """The statement."""
    later: Unwritten[tuple[str, ...]] = ()
    """The statements of the next plan: no CREATE TABLE says them."""


def create_command(
    ctx: typer.Context,
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="The new table, as in policies.", autocompletion=table_names)
    ],
    paths: PolicyPaths = None,
    *,
    columns: Annotated[
        Path | None,
        typer.Option(
            "--schema", metavar="FILE", help="A file with the columns in SQL, or with a Spark schema in JSON."
        ),
    ] = None,
    like: Annotated[str, typer.Option("--like", metavar="TABLE", help="Take the columns of this table.")] = "",
    show: Annotated[bool, typer.Option("--show", help="Print the statement, and create nothing.")] = False,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    form: TextOrJson = ReportFormat.TEXT,
) -> ExitCode:
    """Create a table with everything that its policy declares. A table that exists is never changed.

    Example: tablectl create lake.sales.orders --schema orders.sql
    """
    out: Output = ctx.obj
    schema = read_text(columns) if columns else None
    with Place(variables=variables, env=env, remote=remote).open(out.note) as project:
        request = _request(project, table, schema, like, paths, shown_path(columns) if columns else "")
        if show:
            out.note(_known(project, request))
            sql = _masked(request, project)
            if form is ReportFormat.JSON:
                out.json_result({"table": request.name.text, "sql": sql})
            else:
                out.result(f"{sql}\n")
            return ExitCode.DONE
        made = replace(_create(project, request), sql=_masked(request, project))
    if form is ReportFormat.JSON:
        out.json_result(made)
    else:
        what = "created" if made.made == "created" else "exists already, as its policy declares:"
        out.result(f"{made.table} {what} at {made.location}, version {made.version}\n")
    for each in made.later:
        out.note(f"{made.table}: {each}: `tablectl plan` holds it")
    return ExitCode.DONE


@function
def create(
    spark: Any,
    table: str,
    schema: Any = None,
    like: str = "",
    paths: Paths = None,
    *,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
) -> Created:
    """Create a table by one CREATE TABLE with everything that its policy declares: ``create(spark, "lake.sales.orders",
    schema)``. ``schema`` is a Spark schema, its JSON, or the columns in SQL; ``like`` names a table instead.

    A table that exists as it would be created is left alone (``made`` is ``already``). Raises ``TablectlError`` for one
    that is something else, for a policy that no such table can have, and if no policy applies to the name.
    """
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    with place.open() as project:
        return _create(project, _request(project, table, schema, like, paths))


def _masked(request: _Request, project: Project) -> str:
    """The statement without the values that reports hide."""
    return project.mask.by_value(project.mask.sql(request.born.sql))


@dataclass(frozen=True, slots=True)
class _Request:
    name: TableName
    spec: TableSpec
    born: PlannedBirth
    lock: TableLock | None
    meant: str
    """The name that was probably meant; empty without a doubt."""


def _request(project: Project, table: str, schema: Any, like: str, paths: Paths, file: str = "") -> _Request:
    if any(each in table for each in MAGIC):
        raise UsageError(f"{table} is a pattern", "name one table")
    name, spec = project.find(table, paths)
    if spec is None:
        hint = "declare the table, or a pattern that matches it: a table is born with its policy"
        raise UsageError(f"no policy applies to {name.text}", hint)
    if schema is None and not like:
        _check_absent(project, name, name.parts[0] if name.is_path else spec.location or "")
        raise UsageError("the table has no columns", _TWO)
    if schema is not None and like:
        raise UsageError(_TWO, _TWO)
    location = "" if name.is_path else spec.location or ""
    options_now = spec.options.on(today())
    try:
        text = _schema_of(project, like, paths) if like else _schema_text(schema)
        born = plan_birth(name, text, spec.policy, project.dialect, options_now, location)
    except ValueError as error:
        hint = "give columns that a CREATE TABLE can name: id BIGINT NOT NULL, day DATE"
        if file:
            line, what = (error.line, error.what) if isinstance(error, SqlTextError) else (0, str(error))
            raise InputError((Problem(file, line, 1, what, hint),)) from None
        raise UsageError(f"{name.text}: {error}", hint) from None
    if born.refusals:
        reasons = "; ".join(f"{each.change}: {each.reason}" for each in born.refusals)
        raise RefusedError(f"{name.text} cannot be created: {reasons}", "; ".join(each.fix for each in born.refusals))
    lock = options_now.locked
    return _Request(name, spec, born, lock, _meant(project, paths, name, file))


def _check_absent(project: Project, name: TableName, location: str) -> None:
    """Raises ``UsageError`` if a table is there already, as far as its location is known without an engine."""
    try:
        version = newest_version(location, options=project.stores) if location else -1
    except TablectlError:  # it is not there, or whoever creates it learns why it cannot be read
        return
    if version >= 0:
        hint = "`tablectl plan` shows what differs from its policy; with columns, `create` compares them"
        raise UsageError(f"{name.text} exists already, at version {version}: create never changes a table", hint)


def _meant(project: Project, paths: Paths, name: TableName, file: str) -> str:
    """The table that was probably meant with a name that no entry has: an entry's, or that of the file with the
    columns.
    """
    named = [each.table for each in project.any_policies(paths).declarations.named if each.table]
    if any(each.key == name.key for each in named):
        return ""
    near = [each.last for each in named if each.key == _beside(name, each.last).key]
    return next((_beside(name, each).text for each in (*near, Path(file).stem) if is_slip(name.last, each)), "")


def _beside(name: TableName, last: str) -> TableName:
    """The table of another name in the same schema or folder."""
    folder, slash, _ = name.parts[-1].rpartition("/") if name.is_path else ("", "", "")
    return replace(name, parts=(*name.parts[:-1], f"{folder}{slash}{last}"))


def _schema_of(project: Project, like: str, paths: Paths) -> str:
    return project.read(*project.find(like, paths)).schema.text


def _schema_text(schema: Any) -> str:
    """The schema in JSON. Raises ``ValueError`` for columns in SQL that are not readable."""
    text = schema.json() if callable(getattr(schema, "json", None)) else str(schema)
    return text if text.lstrip().startswith("{") else schema_of_columns(text)


def _known(project: Project, request: _Request) -> str:
    """What is known of a table whose statement is only shown. No engine starts for it. Raises ``RefusedError`` for a
    table that is something else, or locked.
    """
    own = project.catalogs is not None and project.catalogs.directs(request.name)
    if not request.name.is_path and not own:
        _check_new(request)
        return f"whether {request.name.text} exists was not looked up: its catalog is that of the engine"
    found = _existing(project, request)
    if found is not None:
        return f"{request.name.text} exists already, as its policy declares: `create` would send nothing"
    _check_new(request)
    return f"{request.name.text} does not exist"


def _check_new(request: _Request) -> None:
    if request.meant:
        hint = f"did you mean {request.meant}? If not, name the table in the policies: `{request.name.text}: {{}}`"
        raise UsageError(f"no entry names {request.name.text}: only patterns match it", hint)
    if request.lock is not None:
        hint = f"wait until the lock has ended, or ask {request.lock.owner} to take `locked` out of the policy"
        raise RefusedError(f"{request.name.text} is not created: it is {request.lock.text}", hint)


def _create(project: Project, request: _Request) -> Created:
    """The catalog decides: of two that create the table at once, one gets the engine's error, and finds the table of
    the other.
    """
    found = _existing(project, request)
    if found is not None:
        return found
    _check_new(request)
    failure: EngineError | None = None
    engine = project.engines.open(write_json({"tablectl": {"create": request.name.text}}))
    try:
        engine.execute(request.born.sql)
    except EngineError as error:
        failure = error
    finally:
        engine.close()
    found = _existing(project, request, made="already" if failure else "created")
    if found is not None:
        return found
    if failure is None:
        raise TablectlError(f"{request.name.text} was created, and the catalog does not show it", "run this again")
    if failure.condition == _LEFT_BEHIND:
        raise RefusedError(f"{request.name.text} was not created: {failure.message}", _EMPTY_IT) from failure
    raise failure


def _existing(project: Project, request: _Request, made: Literal["created", "already"] = "already") -> Created | None:
    """The table, if it exists as it would be created; ``None`` if it does not exist. Raises ``RefusedError`` if it is
    something else.
    """
    name, spec, born = request.name, request.spec, request.born
    try:
        where = name.parts[0] if name.is_path else project.open_catalog().location(name)
    except MissingError:
        return None
    except LiveError as error:
        raise RefusedError(f"{name.text} was not created: {error.message}", error.hint) from error
    try:
        live = _read(project, name, spec, where)
    except LiveError:
        if name.is_path:
            return None
        raise
    apart = [f"column {each}" for each in differences(born.schema, _comparable(live))]
    apart += [
        f"{each.id} is {value_text(each.before)}, and the policy declares {value_text(each.after)}"
        for each in map(project.mask.change, diff(spec.policy, live, project.dialect))
        if not (born.later and each.attribute == PredictiveOptimization.name)
    ]
    if apart:
        what = "was created, and is not" if made == "created" else "exists, and is not"
        hint = "see what `tablectl plan` changes, or choose another name"
        more = f"; and {len(apart) - _SHOWN:,} more" if len(apart) > _SHOWN else ""
        raise RefusedError(f"{name.text} {what} as it is declared: {'; '.join(apart[:_SHOWN])}{more}", hint)
    statements = tuple(" ".join(each.lines(name)) for each in born.later)
    return Created(name.text, live.location, live.version, made, born.sql, statements)


def _comparable(live: LiveTable) -> str:
    """The schema of a live table as a CREATE TABLE makes it, if one can."""
    try:
        return new_schema(live.schema.text)
    except ValueError:
        return live.schema.text


def _read(project: Project, name: TableName, spec: TableSpec, where: str) -> LiveTable:
    request = ReadRequest(name, where, depth_for(spec, 0))
    (found,) = read_many([request], cache=project.cache, options=project.stores)
    if isinstance(found, TablectlError):
        raise found
    return found
