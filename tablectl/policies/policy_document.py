"""Parses policy files into ``Specs``: one ``TableSpec`` per table. Reports all errors in all files at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from tablectl.delta.dialects import DEFAULT_DIALECT
from tablectl.delta.names import DEFAULT_CATALOG, TableName
from tablectl.frozen import frozen
from tablectl.model.errors import InputError, Problem
from tablectl.policies.declarations import Declaration, Declarations, Profile, attached
from tablectl.policies.entries import AttributeEntries, check_unmanaged, read_block, read_defaults, read_profile
from tablectl.policies.find_files import read_files, shown_path
from tablectl.policies.policy_fields import is_profile_name
from tablectl.policies.resolve import check_patterns, resolve
from tablectl.policies.spec import Specs, find_repeated_patterns, find_repeats
from tablectl.policies.suggestions import did_you_mean, shown
from tablectl.policies.table_keys import read_table_key
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.yaml_document import parse_document
from tablectl.policies.yaml_nodes import Entry, MapNode, Scalar, SourceFile, kind_of

VERSION = "1"
KEYS = ("version", "defaults", "profiles", "tables")
_NOTHING = AttributeEntries()
_NO_PROFILES = "declare it under `profiles:` in one of the files of this command"
_ELSEWHERE = {"env": "environments stand in tablectl.yaml, and give values for `${NAME}` here"}


def load_specs(
    paths: Sequence[Path],
    *,
    variables: Mapping[str, str],
    environ: Mapping[str, str],
    dialect: str = DEFAULT_DIALECT,
    catalog: str = DEFAULT_CATALOG,
) -> Specs:
    """The policies in files and directories.

    ``variables`` are the ``--var`` values, ``environ`` the environment, with lower precedence. Raises ``InputError``
    with all errors in all files.
    """
    problems: list[Problem] = []
    reading = ValueReader(Variables(variables, environ), dialect, catalog, problems)
    return read_specs(((shown_path(path), data) for path, data in read_files(paths, problems).items()), reading)


def read_specs(files: Iterable[tuple[str, bytes]], reading: ValueReader) -> Specs:
    """The policies in the bytes of named files. Raises as ``load_specs``."""
    documents = [_read_file(file, data, reading) for file, data in files]
    profiles = _unique_profiles(chain.from_iterable(each.profiles for each in documents), reading)
    declarations = Declarations.of(chain.from_iterable(each.declarations for each in documents), profiles)
    _check_profiles(documents, declarations, reading)
    _check_unmanaged(declarations, reading)
    with_layers = ((name, (each, *declarations.matching(name))) for each in declarations.named if (name := each.name))
    specs = resolve(with_layers, declarations.profiles, reading.problems)
    reading.problems.extend((*find_repeats(specs), *find_repeated_patterns(declarations.patterns)))
    reading.problems.extend(check_patterns(declarations))
    if reading.problems:
        # A problem behind an alias is reported once per table that uses it.
        raise InputError(tuple(dict.fromkeys(reading.problems)))
    return Specs.of(specs, declarations)


def _check_unmanaged(declarations: Declarations, reading: ValueReader) -> None:
    """Runs after all files are parsed: a table can inherit from patterns in any file."""
    every = (*declarations.named, *declarations.patterns)
    of_defaults = frozenset[str]().union(*(each.defaults.named for each in every))
    of_profiles = frozenset[str]().union(*(each.block.named for each in declarations.profiles.values()))
    inherited = of_profiles.union(*(each.block.named | each.defaults.named for each in declarations.patterns))
    for each in every:
        if each.block.unmanaged:
            check_unmanaged(each.block, inherited | each.defaults.named, reading)
    for profile in declarations.profiles.values():
        check_unmanaged(profile.block, of_defaults, reading)


def _unique_profiles(profiles: Iterable[Profile], reading: ValueReader) -> tuple[Profile, ...]:
    known: dict[str, Profile] = {}
    for each in profiles:
        first = known.setdefault(each.name, each)
        if first is not each:
            message = f"the profile {shown(each.name)} is declared twice: first at {first.source}"
            reading.report(each.source, message, "give one of them another name")
    return tuple(known.values())


def _check_profiles(documents: Iterable[_Document], declarations: Declarations, reading: ValueReader) -> None:
    """Runs after all files are parsed: a profile of any file can be attached in all of them."""
    for document in documents:
        for block in (document.defaults, *(each.block for each in document.declarations)):
            for name in attached(block):
                if name not in declarations.profiles:
                    hint = did_you_mean(name, tuple(declarations.profiles)) if declarations.profiles else _NO_PROFILES
                    reading.report(block.declared["profiles"].source, f"no profile is called {shown(name)}", hint)


@frozen
class _Document:
    """The contents of one file."""

    declarations: tuple[Declaration, ...] = ()
    profiles: tuple[Profile, ...] = ()
    defaults: AttributeEntries = _NOTHING


def _read_file(file: str, data: bytes, reading: ValueReader) -> _Document:
    found = len(reading.problems)
    root = parse_document(data, file, reading.problems)
    if not isinstance(root, MapNode):
        if len(reading.problems) == found:
            what = f"a policy file is a map, and here is {kind_of(root)}" if root else "the file is empty"
            source = root.source if root else SourceFile(file, 1, 1)
            reading.report(source, what, "start it with `version: 1`, and declare `tables:`")
        return _Document()
    if not _check_version(root, reading):
        return _Document()
    for entry in root.entries:
        if entry.key not in KEYS:
            reading.refuse(entry, (), KEYS, _ELSEWHERE)
    given = root.find("defaults")
    defaults = read_defaults(given.value, reading) if given else _NOTHING
    tables = _read_tables(root.find("tables"), defaults, reading)
    return _Document(tuple(tables), tuple(_read_profiles(root.find("profiles"), reading)), defaults)


def _read_profiles(entry: Entry | None, reading: ValueReader) -> Iterator[Profile]:
    if entry is None:
        return
    if not isinstance(entry.value, MapNode):
        hint = "for example `profiles: {gold: {isolation: Serializable}}`"
        reading.report(entry.value.source, f"`profiles` takes a map of profiles, not {kind_of(entry.value)}", hint)
        return
    for each in entry.value.entries:
        if not is_profile_name(each.key):
            message = f"{shown(each.key)} is not the name of a profile"
            reading.report(each.source, message, "a name is made of letters, digits, _ . and -")
        yield Profile(each.key, read_profile(each.value, reading), each.source)


def _check_version(root: MapNode, reading: ValueReader) -> bool:
    """Whether the rest of the file can be checked. A file of another version can have any meaning."""
    entry = root.find("version")
    if entry is None:
        reading.report(root.source, "`version` is missing", "start the file with `version: 1`")
        return True
    match entry.value:
        case Scalar(tag="int", text=text) if text == VERSION:
            return True
        case Scalar(tag="str", text=text) if text == VERSION:
            reading.report(entry.value.source, "`version` takes a number", "write `version: 1`, without quotes")
            return True
        case Scalar(text=text):
            reading.report(
                entry.value.source, f"version {shown(text)} is not supported", "this tablectl reads version 1"
            )
        case _:
            reading.report(entry.value.source, "`version` takes a number", "write `version: 1`")
    return False


def _read_tables(entry: Entry | None, defaults: AttributeEntries, reading: ValueReader) -> list[Declaration]:
    if entry is None:
        return []
    if not isinstance(entry.value, MapNode):
        hint = "for example `tables: {lake.sales.orders: {isolation: Serializable}}`"
        reading.report(entry.value.source, f"`tables` takes a map of tables, not {kind_of(entry.value)}", hint)
        return []
    read = (_read_table(table, defaults, reading) for table in entry.value.entries)
    return [declaration for declaration in read if declaration is not None]


def _read_table(entry: Entry, defaults: AttributeEntries, reading: ValueReader) -> Declaration | None:
    read = partial(read_table_key, variables=reading.variables, catalog=reading.catalog)
    target = reading.name(entry.key, entry.source, read)
    pattern = target is not None and not isinstance(target, TableName)
    block = read_block(entry.value, reading, pattern=pattern)
    if target is None:
        return None
    location = block.declared.get("location")
    if location and isinstance(target, TableName) and target.is_path:
        reading.report(location.source, "a table known by its path takes no `location`", "remove it")
    return Declaration(target, block, defaults, entry.source)
