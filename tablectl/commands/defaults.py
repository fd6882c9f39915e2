"""``tablectl defaults``: the settings with which makers of tables create them as the policies declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer

from tablectl.commands.output import Output
from tablectl.commands.parameters import (
    WHICH,
    Cache,
    Env,
    Place,
    PolicyPaths,
    Remote,
    TextOrJson,
    VarValues,
    function,
    table_names,
    texts,
)
from tablectl.commands.project import Project
from tablectl.commands.selection import selects
from tablectl.commands.user_files import check_writable, write_file
from tablectl.delta.names import TableName
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.patterns import MAGIC
from tablectl.model.safe_text import listed
from tablectl.planning.new_table import birth_of
from tablectl.planning.table_makers import MAKERS, BirthScope, Left, session_settings
from tablectl.policies.declared_tables import Specs
from tablectl.policies.effective_policy import spec_for
from tablectl.policies.merge_layers import effective, merge, policy_of, rank
from tablectl.policies.repository import Paths, shown_path
from tablectl.policies.spelling_hints import did_you_mean, shown
from tablectl.reports.render import ReportFormat

_MOST = 3
_HIDDEN = "`reports.mask` hides its value"
_CREDENTIAL = "its value holds a credential"


@function
def set_defaults(
    spark: Any,
    select: Sequence[str] | None = None,
    paths: Paths = None,
    *,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
) -> tuple[Left, ...]:
    """Give a Spark session the settings with which it creates tables as the policies declare:
    ``set_defaults(spark, ["lake.sales.*"])``. A guarded session is one, too. Only what all selected tables need alike
    is set, for every table that the session creates from then on.

    Returns what a session cannot set, with the reason. Raises as ``plan``.
    """
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    with place.open() as project:
        scopes = scopes_of(project, project.policies(paths), texts(select, "select"), paths)
        settings, left = session_settings(scopes, project.dialect)
    for key, value in settings.items():
        spark.conf.set(key, value)
    return left


def defaults_command(
    ctx: typer.Context,
    maker: Annotated[
        str,
        typer.Argument(
            metavar="MAKER", help=f"Who creates tables: {', '.join(MAKERS)}.", autocompletion=lambda: list(MAKERS)
        ),
    ],
    paths: PolicyPaths = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file. Default: standard output."),
    ] = None,
    dbt_project: Annotated[
        str, typer.Option("--project", metavar="NAME", help="The name of the dbt project.")
    ] = "my_project",
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="GLOB",
            help="Only these tables and patterns of the policies. Repeatable.",
            autocompletion=table_names,
            rich_help_panel=WHICH,
        ),
    ] = None,
    variables: VarValues = None,
    env: Env = None,
    form: TextOrJson = ReportFormat.TEXT,
) -> ExitCode:
    """Print what makers of tables must set, to create them as declared. What a maker cannot set is named.

    Example: tablectl defaults spark --output conf/spark-defaults.conf
    """
    out: Output = ctx.obj
    project = Place(variables=variables, env=env).open(out.note)
    found = MAKERS.get(maker)
    if found is None:
        raise UsageError(f"{shown(maker)} is not a maker of tables", _meant(maker))
    scopes, hidden = _unmasked(project, scopes_of(project, project.policies(paths), select or (), paths))
    wanted = found.write(scopes, project.dialect, dbt_project)
    left = (*hidden, *wanted.left)
    if file is not None:
        check_writable(file)
        write_file(file, wanted.text.encode())
        out.note(f"wrote the settings for {found.title} to {shown_path(file)}")
    if form is ReportFormat.JSON:
        out.json_result({"maker": maker, "text": wanted.text, "left": left})
    elif file is None:
        out.result(wanted.text)
    _tell(left, out)
    return ExitCode.DONE


def _meant(word: str) -> str:
    """A hint for a word that names no maker."""
    found = next((name for name, maker in MAKERS.items() if word.casefold() in maker.also), "")
    return f"did you mean `{found}`, {MAKERS[found].title}?" if found else did_you_mean(word, MAKERS)


def _tell(left: Sequence[Left], out: Output) -> None:
    told: dict[tuple[str, str], list[str]] = {}
    for each in left:
        told.setdefault((each.what, each.why), []).append(each.scope)
    for (setting_, why), of in told.items():
        out.note(f"not set: {setting_}: {why}: {listed(of, _MOST)}")


def scopes_of(project: Project, specs: Specs, select: Sequence[str], paths: Paths = None) -> tuple[BirthScope, ...]:
    """The tables and patterns of the policies, each with what its tables need. A name in ``select`` can be that of a
    table which a pattern matches. Raises ``UsageError`` if there is none.
    """
    declared = specs.declarations
    every = [
        *(
            BirthScope(
                target=each.name, birth=birth_of(each.policy), place=f"{each.declared.file}:{each.declared.line}"
            )
            for each in specs.tables
        ),
        *(
            BirthScope(
                target=each.pattern,
                birth=birth_of(policy_of(effective(merge(rank((each,), declared.profiles))))),
                place=f"{each.source.file}:{each.source.line}",
            )
            for each in declared.patterns
            if each.pattern
        ),
    ]
    if not every:
        raise UsageError("no policy names a table or a pattern", "declare them under `tables:`")
    if not select:
        return tuple(every)
    chosen = {scope.text: scope for scope in every if any(_selected(scope, glob) for glob in select)}
    for glob in select:
        if not any(_selected(scope, glob) for scope in every):
            found = _by_name(project, specs, glob, paths)
            chosen[found.text] = found
    return tuple(chosen.values())


def _selected(scope: BirthScope, glob: str) -> bool:
    same = fnmatchcase(scope.text.casefold(), glob.casefold())
    return same or (isinstance(scope.target, TableName) and selects(glob, scope.target))


def _by_name(project: Project, specs: Specs, text: str, paths: Paths) -> BirthScope:
    hint = "name a table or a pattern as the policies do"
    if any(map(text.count, MAGIC)):
        raise UsageError(f"--select {text!r} matches no table and no pattern of the policies", hint)
    name = project.named(text, paths)
    spec = spec_for(specs, name)
    if spec is None:
        raise UsageError(f"no policy names or matches {name.text}", hint)
    return BirthScope(target=name, birth=birth_of(spec.policy), place=f"{spec.declared.file}:{spec.declared.line}")


def _unmasked(project: Project, scopes: Sequence[BirthScope]) -> tuple[tuple[BirthScope, ...], tuple[Left, ...]]:
    """The scopes without the values that reports hide: what is printed is committed to Git."""
    mask, kept, hidden = project.mask, list[BirthScope](), list[Left]()
    for scope in scopes:
        shown = tuple(each for each in scope.birth.properties if mask.value(*each) == each[1])
        hidden += [
            scope.left(key, _HIDDEN if mask.hides(key) else _CREDENTIAL)
            for key, value in scope.birth.properties
            if (key, value) not in shown
        ]
        kept.append(replace(scope, birth=replace(scope.birth, properties=shown)))
    return tuple(kept), tuple(hidden)
