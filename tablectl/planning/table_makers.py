"""The makers of tables, and the settings with which each makes a table that agrees with its policy.

What a table needs is its ``Birth``. A maker writes it in its own words, and names what it has no words for.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tablectl.attributes.policy import OWNED
from tablectl.delta import keys
from tablectl.delta.clients import in_the_way, known_clients, newest_version
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import TableName
from tablectl.delta.properties import feature_of, find_known
from tablectl.delta.protocol import SUPPORT, Protocol, with_needed
from tablectl.model.patterns import MAGIC, CatalogPattern, TablePattern
from tablectl.model.safe_text import marked_places, printable
from tablectl.planning.new_table import Birth, birth_clauses
from tablectl.policies.write_yaml import quoted, write_key

_DELTA_RS = frozenset(
    key.lower()
    for key in (
        *(keys.APPEND_ONLY, keys.AUTO_COMPACT, keys.CHANGE_DATA_FEED, keys.COLUMN_MAPPING, keys.DELETED_FILE_RETENTION),
        *(keys.DELETION_VECTORS, keys.INDEXED_COLUMNS, keys.ISOLATION_LEVEL, keys.LOG_CLEANUP, keys.LOG_RETENTION),
        *(keys.STATISTICS_COLUMNS, keys.TRANSACTION_RETENTION, "delta.autoOptimize.optimizeWrite"),
        *("delta.checkpoint.writeStatsAsJson", "delta.checkpoint.writeStatsAsStruct", "delta.checkpointInterval"),
        *("delta.randomizeFilePrefixes", "delta.randomPrefixLength", "delta.targetFileSize"),
    )
)
"""The properties that delta-rs takes for a new table, measured with deltalake 1.6.6 (docs/new-tables.md). It takes
``delta.checkpointPolicy``, too, but not the protocol feature that belongs to the value ``v2``.
"""
_RS_CLIENT = "deltalake"
_TABLE = TableName("lake", ("schema", "table"))
_ANY_NAME = "NAME"
_FIRST = "create the table with `tablectl create` first"
SESSION = "spark.databricks.delta.properties.defaults."
"""Before the name of a property without ``delta.``: its value for each table that a session creates
(``DeltaConfigs.mergeGlobalConfigs`` in Delta 4.4.0; docs.databricks.com, "Table properties reference").
"""
_KEY = re.compile(r"[\w.\-]")
_JAVA = {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}
_JINJA = re.compile(r"\{[{%#]")


@dataclass(frozen=True, slots=True, kw_only=True)
class BirthScope:
    """Tables that are made with the same settings: one table, or those that a pattern matches."""

    target: TableName | TablePattern
    birth: Birth
    place: str
    """The file and line of the declaration."""

    @property
    def text(self) -> str:
        """The name or the pattern, as in policies."""
        return self.target.text

    def left(self, what: str, why: str) -> Left:
        """Something that no maker's words say for these tables."""
        return Left(what, why, f"{self.text} ({self.place})")


@dataclass(frozen=True, slots=True)
class Left:
    """What a maker has no words for."""

    what: str
    """``clustering by id``, ``owner.team = data``."""
    why: str
    """Why, and what to do instead."""
    scope: str
    """The table or pattern that needs it, with its place."""


@dataclass(frozen=True, slots=True)
class Written:
    """The settings of a maker."""

    text: str
    left: tuple[Left, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """One kind of client that creates tables."""

    title: str
    also: tuple[str, ...]
    """Other names that people try: a hint names the maker."""
    write: Callable[[Sequence[BirthScope], str, str], Written]
    """Takes the scopes, the dialect and the name of a dbt project."""


def java_text(text: str, *, key: bool = False) -> str:
    """A key or a value for ``java.util.Properties.load``: no text ends its line, and no key its name."""
    escaped, hidden = [], marked_places(text)
    for place, char in enumerate(text):
        if char in _JAVA:
            escaped.append("\\" + _JAVA[char])
        elif char == "\\" or (char in " =:" and place == 0) or (key and place not in hidden and not _KEY.match(char)):
            escaped.append("\\" + char)
        elif place not in hidden:
            escaped.append(char)
        else:
            code = char.encode("utf-16-be", "surrogatepass").hex()
            escaped += [f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4)]
    return "".join(escaped)


def shell_word(text: str) -> str:
    """One word of a POSIX shell. A character that a terminal would obey or hide is written by number, as bash, zsh and
    POSIX.1-2024 read it (``$'…'``).
    """
    hidden = marked_places(text)
    if not hidden:
        return shlex.quote(text)
    quoted = (
        f"\\{char}"
        if char in "\\'"
        else char
        if place not in hidden
        else "".join(f"\\{byte:03o}" for byte in char.encode(errors="surrogatepass"))
        for place, char in enumerate(text)
    )
    return f"$'{''.join(quoted)}'"


# Spark: one set of defaults for all tables that a session creates


def _session(scopes: Sequence[BirthScope], dialect: str) -> tuple[dict[str, str], tuple[Left, ...]]:
    """What a session sets for every table that it creates, and what it cannot set."""
    common = dict(scopes[0].birth.properties)
    for scope in scopes[1:]:
        theirs = dict(scope.birth.properties)
        common = {key: value for key, value in common.items() if theirs.get(key) == value}
    set_ = {key: value for key, value in common.items() if _is_session_key(key, dialect)}
    if len(scopes) > 1:
        set_.pop(keys.STATISTICS_COLUMNS, None)
    return set_, tuple(left for scope in scopes for left in _left_by_session(scope, set_, dialect))


def _is_session_key(key: str, dialect: str) -> bool:
    folded = key.lower()
    return folded.startswith(SUPPORT) or folded in OWNED or find_known(key, dialect) is not None


def _left_by_session(scope: BirthScope, set_: Mapping[str, str], dialect: str) -> Iterator[Left]:
    for key, value in scope.birth.properties:
        if key in set_:
            continue
        if not _is_session_key(key, dialect):
            why = f"a session sets only properties that Delta knows; {_FIRST}"
        elif key == keys.STATISTICS_COLUMNS:
            why = "a session sets it for every table, and the columns are those of one; name it with --select"
        else:
            why = "a session sets it for every table; print the settings of these tables alone with --select"
        yield scope.left(f"{key} = {value}", why)
    yield from _clustering_left(scope, "a session and a DataFrame cannot set it")
    yield from _later(scope)


def _partitions_left(scopes: Sequence[BirthScope], why: str) -> tuple[Left, ...]:
    return tuple(
        scope.left(f"partitioning by {', '.join(scope.birth.partitions)}", why)
        for scope in scopes
        if scope.birth.partitions
    )


def _clustering_left(scope: BirthScope, why: str) -> Iterator[Left]:
    columns = _clustering(scope.birth)
    if columns:
        yield scope.left(f"clustering by {', '.join(columns)}", f"{why}; {_FIRST}")


def _later(scope: BirthScope) -> Iterator[Left]:
    for each in scope.birth.later:
        yield scope.left(
            " ".join(each.lines(_TABLE)[-1].split()),
            "it is a statement for a table that exists, which the next plan holds",
        )


def _clustering(birth: Birth) -> tuple[str, ...]:
    if birth.clustering is None:
        return ()
    return ("auto",) if birth.clustering.automatic else birth.clustering.columns


def _name(key: str) -> str:
    return SESSION + key[len("delta.") :]


def session_settings(scopes: Sequence[BirthScope], dialect: str) -> tuple[dict[str, str], tuple[Left, ...]]:
    """The settings of a session that makes these tables, and what it cannot set."""
    set_, left = _session(scopes, dialect)
    return {_name(key): value for key, value in set_.items()}, (*left, *_partitions_left(scopes, _IN_WRITE))


def _conf(scopes: Sequence[BirthScope], dialect: str, _project: str) -> Written:
    set_, left = session_settings(scopes, dialect)
    return Written("".join(f"{java_text(key, key=True)} {java_text(value)}\n" for key, value in set_.items()), left)


def _options(scopes: Sequence[BirthScope], dialect: str, _project: str) -> Written:
    set_, left = session_settings(scopes, dialect)
    pairs = (shell_word(f"{key}={value}") for key, value in set_.items())
    return Written("".join(f"--conf {pair} \\\n" for pair in pairs), left)


def _python(scopes: Sequence[BirthScope], dialect: str, _project: str) -> Written:
    """A DataFrame and a stream create their tables in their session, and name the partition columns."""
    set_, left = _session(scopes, dialect)
    lines = [f"spark.conf.set({quoted(_name(key))}, {quoted(value)})\n" for key, value in set_.items()]
    methods = [
        f"# {printable(scope.text)}: .partitionBy({', '.join(map(quoted, scope.birth.partitions))})\n"
        for scope in scopes
        if scope.birth.partitions
    ]
    return Written("".join((*lines, *methods)), left)


_IN_WRITE = "a session cannot set it; write `.partitionBy(…)` in the job"


# delta-rs and Polars: the arguments of one write


def _delta_rs(scopes: Sequence[BirthScope], _dialect: str, _project: str) -> Written:
    lines, left = ["NEW_TABLES = {"], list[Left]()
    for scope in scopes:
        birth = scope.birth
        if cannot := _cannot_write(birth):
            left.append(scope.left("every setting", f"{cannot}: create and write it with another engine"))
            continue
        taken = {key: value for key, value in birth.properties if key.lower() in _DELTA_RS}
        given: dict[str, object] = {"configuration": taken} if taken else {}
        if birth.partitions:
            given["partition_by"] = list(birth.partitions)
        lines.append(f"    {quoted(scope.text)}: {printable(repr(given))},")
        others = (pair for pair in birth.properties if pair[0] not in taken and not _off(*pair))
        left += [scope.left(f"{key} = {value}", f"delta-rs does not take it; {_FIRST}") for key, value in others]
        left += _later(scope)
    if len(lines) == 1:
        return Written("# No new table that these policies describe takes anything from delta-rs.\n", tuple(left))
    return Written("\n".join([*_RS_USE, *lines, "}", ""]), tuple(left))


def _cannot_write(birth: Birth) -> str:
    """Why delta-rs cannot write a table that has everything which it needs; empty if it can. Settings for a part of it
    would make a table that the next plan locks delta-rs out of.
    """
    brought = [feature for pair in birth.properties if (feature := feature_of(*pair))]
    names = with_needed([*brought, *(["clustering"] if birth.clustering else [])])
    client = next(each for each in known_clients() if each.name == _RS_CLIENT)
    version = ".".join(map(str, newest_version(client)))
    needed = Protocol(3, 7, names, names)
    found = [name for name, access in in_the_way(client.name, version, needed) if access == "write"]
    return f"delta-rs {version} cannot write a table with {', '.join(found)}" if found else ""


def _off(key: str, value: str) -> bool:
    """Whether a value is that of a table without the property: delta-rs has no defaults of a session."""
    return key.lower() in OWNED and value in {"false", "none"}


_RS_USE = (
    "# deltalake: write_deltalake(LOCATION, data, **NEW_TABLES[TABLE])",
    "# polars: frame.write_delta(LOCATION, delta_write_options=NEW_TABLES[TABLE])",
)


# dbt: the configuration of folders and models


def _dbt(scopes: Sequence[BirthScope], dialect: str, project: str) -> Written:
    databricks = dialect_of(dialect).catalog_settings
    root: dict[str, object] = {}
    left = list[Left]()
    for scope in scopes:
        # The folder and the model of a table, or the folder of a pattern. The folder of a schema has its name, as in
        # dbt's own examples. ``None`` for what dbt has no folder for.
        target = scope.target
        if isinstance(target, TableName):
            path = None if target.is_path else target.parts
        elif not isinstance(target, CatalogPattern) or target.table != "*":
            path = None
        else:
            path = () if target.schema == "*" else None if any(map(target.schema.count, MAGIC)) else (target.schema,)
        if path is None:
            left.append(scope.left("every setting", "dbt configures the folder of a schema and models, no pattern"))
            continue
        rendered = {pair for pair in scope.birth.properties if _JINJA.search(pair[1])}
        left += [scope.left(f"{key} = {value}", f"dbt runs its text as Jinja; {_FIRST}") for key, value in rendered]
        if any(map(_JINJA.search, (*scope.birth.partitions, *_clustering(scope.birth)))):
            left.append(scope.left("every setting", f"dbt runs the name of a column as Jinja; {_FIRST}"))
            continue
        kept = tuple(pair for pair in scope.birth.properties if pair not in rendered)
        scope = replace(scope, birth=replace(scope.birth, properties=kept))  # noqa: PLW2901
        folder = root
        for part in (project, *path):
            folder = folder.setdefault(part, {})  # type: ignore[assignment]
        birth = scope.birth
        config: dict[str, object] = {"+file_format": "delta"}
        properties = {key: value for key, value in birth.properties if not _is_check(key)}
        if properties:
            config["+tblproperties"] = properties
        if birth.partitions:
            config["+partition_by"] = list(birth.partitions)
        columns = _clustering(birth)
        if databricks and columns:
            config |= (
                {"+auto_liquid_cluster": "true"} if columns == ("auto",) else {"+liquid_clustered_by": list(columns)}
            )
        folder.update(config)
        if not databricks:
            left += _clustering_left(scope, "dbt-spark has no liquid clustering")
        checks = (pair for pair in scope.birth.properties if _is_check(pair[0]))
        left += [scope.left(f"{key} = {value}", f"dbt has `constraints` of a model; {_FIRST}") for key, value in checks]
        left += _later(scope)
    return Written("".join(("models:\n", *_yaml(root, 1))) if root else "models: {}\n", tuple(left))


def _is_check(key: str) -> bool:
    """Whether it is a CHECK constraint: dbt alters the properties of a table that exists, and Delta takes none then."""
    return key.lower().startswith(keys.CONSTRAINTS)


def _yaml(value: Mapping[str, object], depth: int) -> Iterator[str]:
    """A map of maps, lists and texts as YAML."""
    for key, inner in value.items():
        name = write_key(key) if re.fullmatch(r"\+?[a-z_][a-z0-9_]*", key) else quoted(key)
        if isinstance(inner, Mapping):
            yield f"{'  ' * depth}{name}:\n"
            yield from _yaml(inner, depth + 1)
        else:
            text = f"[{', '.join(map(quoted, inner))}]" if isinstance(inner, list) else quoted(str(inner))
            yield f"{'  ' * depth}{name}: {text}\n"


# CREATE TABLE


def _sql(scopes: Sequence[BirthScope], _dialect: str, _project: str) -> Written:
    text = "\n\n".join("\n".join(_create(scope)) + ";" for scope in scopes)
    return Written(f"{text}\n", tuple(each for scope in scopes for each in _later(scope)))


def _create(scope: BirthScope) -> Iterable[str]:
    named = scope.target.sql if isinstance(scope.target, TableName) else _ANY_NAME
    comment = () if isinstance(scope.target, TableName) else (f"-- each table that {printable(scope.text)} matches",)
    return (*comment, f"CREATE TABLE {named} (", "  -- columns", ")", *birth_clauses(scope.birth))


MAKERS: Mapping[str, Maker] = MappingProxyType(
    {
        "spark": Maker(title="spark-defaults.conf", also=("spark-defaults.conf",), write=_conf),
        "spark-submit": Maker(title="options of spark-submit", also=("conf",), write=_options),
        "python": Maker(
            title="a Spark session in Python, for DataFrames and streams",
            also=("pyspark", "streaming"),
            write=_python,
        ),
        "dbt": Maker(title="dbt_project.yml", also=("dbt-spark", "dbt-databricks"), write=_dbt),
        "delta-rs": Maker(title="delta-rs and Polars", also=("polars", "deltalake"), write=_delta_rs),
        "sql": Maker(title="CREATE TABLE", also=("ddl",), write=_sql),
    }
)
"""Each maker by its name."""
