"""``tablectl init``: create a repository. The texts of its files are in ``templates/``."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Annotated

import typer

from tablectl.commands.import_tables import Imported, import_policies, tell
from tablectl.commands.lock import CI, ci_files, lock_files, recorded_source, template, wheel_hashes
from tablectl.commands.output import Output
from tablectl.commands.parameters import WHERE, Env, Place, Remote, TextOrJson, VarValues, read_as
from tablectl.commands.read_tables import NO_TABLE, NO_TABLE_BELOW
from tablectl.commands.user_files import write_file
from tablectl.delta.names import TableName
from tablectl.model.errors import ExitCode, InputError, Problem, TablectlError, UsageError
from tablectl.model.install_source import CiSystem, InstallSource, parse_source
from tablectl.model.patterns import MAGIC
from tablectl.model.plan import TableFailure
from tablectl.model.safe_text import listed
from tablectl.policies.catalog_config import CONNECTOR, why_no_catalog
from tablectl.policies.config import Config
from tablectl.policies.repository import Repository, requested_tables, shown_path
from tablectl.policies.schemas import policy_schema
from tablectl.policies.variables import Variables
from tablectl.policies.write_yaml import quoted, write_text
from tablectl.reports.render import ReportFormat
from tablectl.reports.short_names import shared_folder
from tablectl.support.json_text import write_json

POLICIES = "policies/tables.yaml"
SCHEMA = "tablectl.schema.json"
KEPT = (".gitignore", ".pre-commit-config.yaml")
"""Files that most repositories have: those that exist are kept, and the user is shown what to add."""
_EDITOR_LINE = f"# yaml-language-server: $schema=../{SCHEMA}\n"
"""Tells editors which schema a policy file has."""
_NONE: Mapping[str, str] = MappingProxyType({})


class CatalogKind(StrEnum):
    """Where the names of tables are looked up."""

    HIVE = "hive"
    GLUE = "glue"
    UNITY = "unity"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class CatalogOptions:
    """The catalog of a new repository."""

    catalog: CatalogKind | None = None
    """``None`` for the catalog of the ``tablectl.yaml`` in the current folder, if there is one."""
    catalog_url: str = ""
    catalog_name: str = ""
    catalog_driver: Path | None = None


@dataclass(frozen=True, kw_only=True)
class _Asked(CatalogOptions, Place):
    """What a new repository holds."""

    target: str
    """Its folder."""
    tables: Sequence[str]
    ci: CiSystem
    source: InstallSource | None


def init_command(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="The new repository's folder. Default: the current one.", show_default=False
        ),
    ] = ".",
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLES", help="Live tables for the first policies: folders, names and patterns."),
    ] = None,
    *,
    ci: CI = CiSystem.GITHUB,
    source: Annotated[
        InstallSource | None,
        typer.Option(
            "--source",
            metavar="SOURCE",
            parser=read_as(parse_source),
            help="Where CI installs tablectl from: git+https://HOST/PATH@COMMIT, or a folder with its two wheels.",
        ),
    ] = None,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    catalog: Annotated[
        CatalogKind | None,
        typer.Option(
            "--catalog",
            help="Where names of tables are looked up; none: tables by path only.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    catalog_url: Annotated[
        str,
        typer.Option(
            "--catalog-url",
            metavar="URL",
            help="Of a Hive metastore (thrift://… or jdbc:…) or a Unity Catalog (https://…).",
            rich_help_panel=WHERE,
        ),
    ] = "",
    catalog_name: Annotated[
        str,
        typer.Option(
            "--catalog-name",
            metavar="NAME",
            help="The catalog's name in policies. Default: lake.",
            rich_help_panel=WHERE,
        ),
    ] = "",
    catalog_driver: Annotated[
        Path | None,
        typer.Option(
            "--catalog-driver",
            metavar="JAR",
            help="The JDBC driver of a Hive metastore's database.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    form: TextOrJson = ReportFormat.TEXT,
) -> ExitCode:
    """Start a repository: policies, configuration, a CI workflow, a pre-commit hook. It overwrites no file.

    Example: tablectl init lake-policies 'sales.*' --catalog hive --catalog-url thrift://metastore:9083
    """
    out: Output = ctx.obj
    options = _Asked(
        target=target,
        tables=tables or (),
        ci=ci,
        source=source,
        catalog=catalog,
        catalog_url=catalog_url,
        catalog_name=catalog_name,
        catalog_driver=catalog_driver.absolute() if catalog_driver else None,
        variables=variables,
        env=env,
        remote=remote,
    )
    _check_catalog(options)
    options = _with_folder(options)
    directory = Path(options.target)
    found, hashes = _source_of(options, directory)
    files = _files(_Policies(), options, found, hashes)
    _check_free(directory, files)
    failures: tuple[TableFailure, ...] = ()
    if options.tables:
        config = files["tablectl.yaml"] if options.catalog else None
        policies, failures = _first_policies(options, out, config)
        files = _files(policies, options, found, hashes)
    kept = [name for name in KEPT if os.path.lexists(directory / name)]
    written = [name for name in files if name not in kept]
    for name in written:
        write_file(directory / name, files[name].encode(), root=directory)
    following = _following(options)
    notes = [_addition(name, files[name]) for name in kept]
    if found is None and options.ci is not CiSystem.NONE:
        notes.append(_NO_SOURCE)
    if form is ReportFormat.JSON:
        failed = [{"name": each.name, "message": each.message, "hint": each.hint} for each in failures]
        out.json_result({"created": written, "kept": kept, "next": following, "failures": failed})
    else:
        created = "".join(f"created {shown_path(directory / name)}\n" for name in written)
        told = "".join(f"\n{note}" for note in notes)
        out.result(f"{created}{told}\nNext:\n" + "".join(f"  {line}\n" for line in following))
    return ExitCode.ERROR if failures else ExitCode.DONE


_NO_SOURCE = """The workflow cannot install tablectl yet: this one was installed from a place
that other machines do not have. Say in tablectl.yaml where CI finds it, a
commit of a repository or a folder with the two wheels, and write the rest:
  install: {source: git+https://HOST/PATH@COMMIT}
  tablectl lock
"""


@dataclass(frozen=True, slots=True)
class _Policies:
    """The first policies, and the folder of their tables, which is a variable in them."""

    text: str = ""
    lake: str = ""


def _with_folder(options: _Asked) -> _Asked:
    """The options with the folder of the repository first. A name that can only be that of tables is one of tables.

    Raises ``UsageError`` for a folder of tables, where a repository does not belong.
    """
    first = options.target
    if first.lower().startswith("delta.") or any(char in first for char in "`*?[") or "://" in first:
        return replace(options, target=".", tables=(first, *options.tables))
    # The current folder, or a checkout, may well hold a sample of a lake further down. Another folder that does is one.
    known = Path(first).absolute() == Path.cwd() or Path(first, ".git").exists()
    if any(any(Path(first).glob("*/" * depth + "_delta_log")) for depth in range(2 if known else 5)):
        asked = " ".join(map(shlex.quote, (str(Path(first).absolute()), *options.tables)))
        raise UsageError(
            f"{first} holds Delta tables, and the first folder is that of the new repository",
            f"for example tablectl init lake-policies {asked}",
        )
    return options


_BY_PATH = shlex.quote("delta.`/data/lake/*`")
"""What to import without a catalog, as an example: tables by path."""


def _source_of(options: _Asked, directory: Path) -> tuple[InstallSource | None, Mapping[str, str]]:
    """Where CI installs tablectl from, and the hashes of its wheels."""
    source, hashes = options.source, dict[str, str]()
    recorded = recorded_source()
    if recorded is not None and source in {None, recorded[0]}:
        source, known = recorded
        hashes = {name: value for name, value in known.items() if value}
    return source, {} if source is None else wheel_hashes(source, hashes, directory)


def _files(
    policies: _Policies, options: _Asked, source: InstallSource | None, hashes: Mapping[str, str]
) -> Mapping[str, str]:
    files = dict(scaffold(policies.text, source, hashes, policies.lake))
    files["tablectl.yaml"] = _with_catalog(files["tablectl.yaml"], options, os.environ)
    locks = {} if source is None or options.ci is CiSystem.NONE else lock_files(source, hashes)
    return {**files, **ci_files(options.ci), **locks}


def _addition(name: str, text: str) -> str:
    lines = "".join(f"  {line}\n" for line in text.splitlines())
    return f"{name} exists and is kept. Add to it:\n{lines}"


def _check_free(directory: Path, files: Mapping[str, str]) -> None:
    """Raise ``InputError`` with every file that already exists, but for those that are kept."""
    if directory.exists() and not directory.is_dir():
        raise InputError((Problem(shown_path(directory), 0, 0, "this is not a folder"),))
    taken = [name for name in files if name not in KEPT and os.path.lexists(directory / name)]
    if taken:
        hint = "init overwrites nothing: move these files away, or edit them by hand"
        problems = [Problem(shown_path(directory / name), 0, 0, "this file exists") for name in taken]
        problems[-1] = Problem(problems[-1].file, 0, 0, problems[-1].message, hint)
        raise InputError(tuple(problems))


def _first_policies(options: _Asked, out: Output, config: str | None) -> tuple[_Policies, tuple[TableFailure, ...]]:
    """The policies of live tables, found as ``config`` says, which is not written yet, or the configuration in the
    current folder; and the failures, which are comments in them. Raises ``TablectlError`` if no table can be read.
    """
    with TemporaryDirectory(prefix="tablectl-init-") as folder:
        if config is not None:
            Path(folder, "tablectl.yaml").write_text(config, encoding="utf-8")
            options = replace(options, directory=folder)
        with options.open(out.note) as project, out.progress() as on_read:
            asked = requested_tables(options.tables, project.catalog, project.variables)
            found = import_policies(project, asked, {}, on_read)
    empty = [
        each.name if each.message == NO_TABLE else TableName("", (f"{each.name.rstrip('/')}/*",)).text
        for each in found.failures
        if each.message in {NO_TABLE, NO_TABLE_BELOW}
    ]
    if empty and not found.text and len(empty) == len(found.failures):
        out.note(f"no table matches {listed(empty, 3)} yet: `tablectl create` makes the first one")
        return _Policies(_no_tables(empty)), ()
    if not found.text and found.failures:
        raise InputError(tuple(Problem(each.name, 0, 0, each.message, each.hint) for each in found.failures))
    if not found.text:
        raise TablectlError("no table was found to import")
    tell(found, out)
    return _with_variable(found), found.failures


def _no_tables(patterns: Sequence[str]) -> str:
    """Policies for the tables that patterns will match."""
    entries = "".join(f"  {quoted(each)}:\n    may_be_empty: true\n{_FIRST_TABLE}" for each in patterns)
    return f"version: 1\n\ntables:\n{entries}"


_FIRST_TABLE = """\
#    isolation: Serializable
#    deletion_vectors: enabled
#    properties: {owner.team: payments}
"""


def _with_variable(found: Imported) -> _Policies:
    """The policies with ``${LAKE}`` for the folder that all tables by path share: other machines and environments have
    another one.
    """

    def names(text: str, variables: Variables) -> set[str]:
        return {spec.name.text for spec in Repository({}, variables, Config()).read({"the imported": text}).tables}

    tables = names(found.text, Variables())
    folder = shared_folder(tables).rstrip("/")
    if not folder or "${" in found.text or any(char in folder for char in f'\\"{MAGIC}'):
        return _Policies(found.text)
    text = found.text.replace(f"delta.`{folder}/", "delta.`${LAKE}/")
    same = names(text, Variables({"LAKE": folder})) == tables
    return _Policies(text, folder) if same else _Policies(found.text)


def _following(options: _Asked) -> list[str]:
    """The commands to run next."""
    directory, catalog = Path(options.target), options.catalog
    here = [] if directory.resolve() == Path.cwd() else [f"cd {shlex.quote(str(directory))}"]
    tables = "TABLES…" if catalog is None else _BY_PATH if catalog is CatalogKind.NONE else "--all"
    first = [] if options.tables else [f"tablectl import {tables} --out {POLICIES} --force", "tablectl validate"]
    start = "" if _is_in_git(directory) else "git init && "
    return [*here, *first, "tablectl plan", f"{start}git add --all && pre-commit install"]


def _is_in_git(directory: Path) -> bool:
    root = directory.absolute()
    return any((each / ".git").exists() for each in (root, *root.parents))


# The files of a new repository, but those of CI

_UNKNOWN_SOURCE = """
# install:                       # where CI installs tablectl from (docs/install.md); then run `tablectl lock`
#   source: git+https://HOST/PATH@COMMIT
"""


def scaffold(
    policies: str = "", source: InstallSource | None = None, hashes: Mapping[str, str] = _NONE, lake: str = ""
) -> Mapping[str, str]:
    """The files by path in the repository but those of CI. ``policies`` is the text of the first policies; without it,
    an example. ``lake`` is the value of the variable LAKE in them, if they have it.
    """
    value = write_text(lake, flow=True)
    variables = f"variables: {{LAKE: {value}}} # where the tables lie; `env` can say it of each environment"
    return {
        "tablectl.yaml": template("tablectl.yaml")
        .replace("VARIABLES\n", f"{variables}\n" if lake else "")
        .replace("INSTALL\n", _install_section(source, hashes)),
        POLICIES: _EDITOR_LINE + (policies or template("tables.yaml")),
        "policies/README.md": template("policies_readme.md"),
        SCHEMA: f"{write_json(policy_schema(), indent=2)}\n",
        "plans/.gitignore": template("plans_gitignore"),
        "plans/README.md": template("plans_readme.md"),
        ".gitignore": template("gitignore"),
        ".pre-commit-config.yaml": _pre_commit(source),
    }


def _pre_commit(source: InstallSource | None) -> str:
    """The hook that pre-commit installs from the commit of a repository; else one that runs the installed tablectl."""
    if source is None or not source.is_git:
        return template("pre_commit.yaml")
    address, _, commit = source.text.removeprefix("git+").rpartition("@")
    return f"repos:\n  - repo: {address}\n    rev: {commit}\n    hooks:\n      - id: tablectl-validate\n"


def _install_section(source: InstallSource | None, hashes: Mapping[str, str]) -> str:
    if source is None:
        return _UNKNOWN_SOURCE
    lines = [f"    {name}: {value}\n" for name, value in hashes.items()] if source.is_url else []
    comment = "# where CI installs tablectl from; `tablectl lock` writes requirements/ from it"
    section = f"install: {comment}\n  source: {source.text}\n"
    return "\n" + section + ("  hashes:\n" + "".join(lines) if lines else "") + "\n"


# The sections of tablectl.yaml that connect a catalog (docs/catalogs.md)

_SECRET = re.compile(r"//[^/@]*@|[?&;](?:user|password|user_name|token)=", re.IGNORECASE)
_DRIVERS = {"postgresql": "org.postgresql.Driver", "mysql": "com.mysql.cj.jdbc.Driver"}
_JAR = "https://repo1.maven.org/maven2/org/postgresql/postgresql/42.7.8/postgresql-42.7.8.jar"
_CATALOG_LINE = "#   catalog: spark_catalog       # of names with two parts\n"
_CONF_LINE = "#   conf: {spark.driver.memory: 4g}\n"
_JDO = "spark.hadoop.javax.jdo.option.Connection"


def _with_catalog(config: str, chosen: CatalogOptions, environ: Mapping[str, str]) -> str:
    """The text of a ``tablectl.yaml`` with its commented ``engine`` section filled in."""
    name = chosen.catalog_name or "lake"
    match chosen.catalog:
        case CatalogKind.NONE | None:
            return config
        case CatalogKind.HIVE:
            conf = "".join(f"    {key}: {quoted(value)}\n" for key, value in _hive(chosen).items())
            section = f"engine:\n  conf:                          # a Hive metastore: docs/catalogs.md\n{conf}"
            return config.replace("# engine:\n", section).replace(_CONF_LINE, "")
        case CatalogKind.GLUE:
            return _with_entry(config, name, _glue(environ))
        case CatalogKind.UNITY:
            written = _with_entry(config, name, f"{{type: unity, url: {quoted(chosen.catalog_url)}}}")
            return written.replace(_CONF_LINE, _connector(name))


def _with_entry(config: str, catalog: str, entry: str) -> str:
    name = quoted(catalog)
    section = f"catalogs: # docs/catalogs.md\n  {name}: {entry}\n\nengine:\n  catalog: {name}\n"
    return config.replace("# engine:\n", section).replace(_CATALOG_LINE, "")


def _connector(catalog: str) -> str:
    """The commented settings of the connector, of which a release has one for each minor version of Spark."""
    try:
        spark = ".".join(metadata.version("pyspark").split(".")[:2])
    except metadata.PackageNotFoundError:
        spark = "4.1"
    lines = (
        "  conf:                        # an apply needs the connector, for your Spark: docs/unity-catalog.md",
        f"    spark.jars.packages: io.unitycatalog:unitycatalog-spark_{spark}_2.13:0.6.0",
        f"    {quoted(f'spark.sql.catalog.{catalog}')}: {CONNECTOR}",
    )
    return "".join(f"# {line}\n" for line in lines)


def _glue(environ: Mapping[str, str]) -> str:
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    return f"{{type: glue, region: {quoted(region)}}}" if region else "{type: glue}"


def _hive(chosen: CatalogOptions) -> Mapping[str, str]:
    hive = {"spark.sql.catalogImplementation": "hive"}
    if not chosen.catalog_url:
        return hive
    if chosen.catalog_url.startswith("thrift://"):
        return {**hive, "spark.hadoop.hive.metastore.uris": chosen.catalog_url}
    database = {**hive, f"{_JDO}URL": chosen.catalog_url}
    if chosen.catalog_url.startswith("jdbc:derby:"):
        return database
    return {
        **database,
        f"{_JDO}DriverName": _DRIVERS[chosen.catalog_url.split(":")[1]],
        # Hadoop reads the environment for values of this form (``Configuration``, "Variable Expansion").
        f"{_JDO}UserName": "${env.METASTORE_USER}",
        f"{_JDO}Password": "${env.METASTORE_PASSWORD}",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        # Hive loads the driver by the class path of the JVM; jars of `spark.jars.packages` come too late for it.
        "spark.driver.extraClassPath": str(chosen.catalog_driver),
    }


def _check_catalog(chosen: CatalogOptions) -> None:
    """Raise ``UsageError`` for options that do not go together."""
    kind, url, name, driver = chosen.catalog, chosen.catalog_url, chosen.catalog_name, chosen.catalog_driver
    if kind is None:
        if url or name or driver:
            raise UsageError("--catalog-url, --catalog-name and --catalog-driver go with --catalog", "add --catalog")
        return
    if not url.isprintable() or _SECRET.search(url):
        hint = "METASTORE_USER and METASTORE_PASSWORD, or the variable of the token, are read when a command runs"
        raise UsageError("--catalog-url holds a user, a password or control characters", hint)
    if kind in {CatalogKind.NONE, CatalogKind.GLUE} and url:
        raise UsageError(f"--catalog-url does not go with --catalog {kind}", "leave it out")
    if kind is CatalogKind.UNITY and not url.startswith(("https://", "http://")):
        raise UsageError("--catalog unity needs --catalog-url", "for example --catalog-url https://unity.example.com")
    if name and (kind in {CatalogKind.NONE, CatalogKind.HIVE} or why_no_catalog(name)):
        raise UsageError(f"--catalog-name {name!r} cannot be used with --catalog {kind}", "leave it out")
    database = _database(url) if kind is CatalogKind.HIVE else ""
    if database and (driver is None or not driver.is_file()):
        raise UsageError("this metastore needs --catalog-driver, the jar of its JDBC driver", f"download it: {_JAR}")
    if driver is not None and not database:
        raise UsageError("--catalog-driver goes with a jdbc: address of a Hive metastore only", "leave it out")


def _database(url: str) -> str:
    """The database server of a metastore's address; empty if it has none. Raises ``UsageError``."""
    if not url or url.startswith(("thrift://", "jdbc:derby:")):
        return ""
    protocol, _, rest = url.partition(":")
    database = rest.partition(":")[0]
    if protocol != "jdbc" or database not in _DRIVERS:
        hint = "thrift://HOST:9083, jdbc:postgresql://HOST/DATABASE, or jdbc:derby:;databaseName=/FOLDER"
        raise UsageError(f"--catalog-url {url!r} is not a Hive metastore", hint)
    return database
