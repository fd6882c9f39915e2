"""What is generated for another program is data to it: no name and no value begins a line, a statement or a key of its
own. The text is parsed or executed as its reader would, and must give back what was put in.
"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tablectl.delta.names import NameSyntaxError, TableName
from tablectl.model.errors import InputError
from tablectl.model.patterns import escape_glob, make_catalog_pattern
from tablectl.planning.new_table import Birth
from tablectl.planning.table_makers import MAKERS, BirthScope, java_text, shell_word
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables, read_column, read_table_key
from tablectl.policies.write_yaml import quoted
from tests.fuzz.hostile import PIECES
from tests.planning.maker_files import READERS

PIECES_OF_TEXT = [each for each in PIECES if "\ud800" not in each and "\0" not in each]
HOSTILE = st.lists(st.sampled_from(PIECES_OF_TEXT) | st.characters(exclude_characters="\0", codec="utf-8"), max_size=6)
TEXT = HOSTILE.map("".join)
NAME = TEXT.filter(bool)
ATTACKS = (
    *(
        "x\nspark.driver.extraJavaOptions -Devil",
        "x\rspark.a b",
        "a\x85b",
        "a\u2028b",
        "a: b # c",
        "- x",
        "{{ env_var('X') }}",
    ),
    *(
        'x"\nimport os; os.system("id")\n#',
        "x\\",
        "x\\\n",
        "'; id; '",
        "$(id)",
        "`id`",
        "$'",
        "a$'b\n",
        "*/; DROP TABLE t --",
    ),
)
LEVEL = "delta.isolationLevel"


def scope(name: str, value: str, key: str = LEVEL, column: str = "day") -> BirthScope:
    birth = Birth(properties=((key, value),), partitions=(column,))
    return BirthScope(target=TableName("lake", ("sales", name)), birth=birth, place="policies/a.yaml:1")


def written(maker: str, *scopes: BirthScope) -> str:
    return MAKERS[maker].write(scopes, "oss", "shop").text


def recorded(text: str) -> dict[str, str]:
    """What a module sets, run with a session that only records. It must call nothing else."""
    assert {type(each) for each in ast.parse(text).body} <= {ast.Expr, ast.Assign}
    found: dict[str, str] = {}
    session = SimpleNamespace(conf=SimpleNamespace(set=found.__setitem__))
    exec(compile(text, "generated", "exec"), {"__builtins__": {}, "spark": session})
    return found


def java_properties(text: str) -> dict[str, str]:
    """``java.util.Properties.load``, written from its documentation, then Spark's ``trim`` of each value."""
    found = {}
    for line in re.split(r"[\n\r]+", text):
        body = line.lstrip(" \t\f")
        if not body or body[0] in "#!":
            continue
        parts = re.fullmatch(r"((?:\\.|[^\\ \t\f=:])*)[ \t\f]*[=:]?[ \t\f]*(.*)", body, re.DOTALL)
        assert parts
        found[unescaped(parts[1])] = unescaped(parts[2])
    return found


def unescaped(text: str) -> str:
    letters = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
    units = re.sub(
        r"\\(?:u([0-9a-f]{4})|(.))",
        lambda m: chr(int(m[1], 16)) if m[1] else letters.get(m[2], m[2]),
        text,
        flags=re.DOTALL,
    )
    return units.encode("utf-16", "surrogatepass").decode("utf-16")


@settings(deadline=None, max_examples=300)
@given(TEXT, NAME)
@example(ATTACKS[0], ATTACKS[7])
def test_a_session_in_python_sets_one_value(value: str, name: str) -> None:
    text = written("python", scope(name, value, column=name))
    assert recorded(text) == {"spark.databricks.delta.properties.defaults.isolationLevel": value}
    assert text.count("\n") == 2
    assert READERS["python"](text, "f") == {LEVEL: value}


@settings(deadline=None, max_examples=300)
@given(TEXT, TEXT)
@example(ATTACKS[0], ATTACKS[0])
def test_a_line_of_spark_defaults_is_one_property(value: str, key: str) -> None:
    text = written("spark", scope("orders", value, key=f"delta.feature.{key}"))
    assert text.count("\n") == 1
    assert java_properties(text) == {f"spark.databricks.delta.properties.defaults.feature.{key}": value}
    if key and value == value.strip():  # Spark itself trims values
        assert java_properties(f"{java_text(key, key=True)} {java_text(value)}\n") == {key: value}
        assert READERS["spark"](text, "f") == {f"delta.feature.{key}": value}


@settings(deadline=None, max_examples=200)
@given(TEXT)
@example(ATTACKS[-2])
def test_an_option_of_spark_submit_is_one_word(value: str) -> None:
    text = written("spark-submit", scope("orders", value))
    assert text.count("\n") == 1
    assert READERS["spark-submit"](text, "f") == {LEVEL: value}


def test_bash_reads_each_word_as_it_is() -> None:
    words = [*ATTACKS, *(f"x{each}1y" for each in PIECES_OF_TEXT), "".join(map(chr, range(1, 0x180)))]
    script = "printf '%s\\0' " + " ".join(map(shell_word, words))
    assert "\n" not in script
    subprocess.run(["bash", "-n", "-c", script], check=True, timeout=60)
    done = subprocess.run(["bash", "-c", script], check=True, timeout=60, capture_output=True)
    assert done.stdout.decode().split("\0")[:-1] == words
    assert all(shell_word(each) == shlex.quote(each) for each in words if each.isprintable())


@settings(deadline=None, max_examples=200)
@given(NAME, TEXT, TEXT)
@example(ATTACKS[0], ATTACKS[0], ATTACKS[0])
def test_a_project_of_dbt_has_the_keys_and_values_that_were_given(name: str, key: str, value: str) -> None:
    found = MAKERS["dbt"].write([scope(name, value, key=f"k{key}", column=name)], "oss", "shop")
    body = yaml.safe_load(found.text)["models"]
    jinja = [bool(re.search(r"\{[{%#]", each)) for each in (value, name)]
    if jinja[1]:
        assert body == {}
        assert len(found.left) == 1 + jinja[0]
        return
    model = body["shop"]["sales"][name]
    assert model.get("+tblproperties") == (None if jinja[0] else {f"k{key}": value})
    assert model["+partition_by"] == [name]
    assert "{{" not in found.text or "{{" in key


@settings(deadline=None, max_examples=200)
@given(NAME, TEXT)
@example(ATTACKS[7], ATTACKS[7])
def test_the_arguments_of_delta_rs_are_constants(name: str, value: str) -> None:
    given = scope(name, value, column=name)
    text = written("delta-rs", given)
    (assigned,) = ast.parse(text).body
    assert isinstance(assigned, ast.Assign)
    assert ast.literal_eval(assigned.value) == {given.text: {"configuration": {LEVEL: value}, "partition_by": [name]}}
    assert text.count("\n") == 5


@settings(deadline=None, max_examples=200)
@given(NAME, TEXT, TEXT)
@example(ATTACKS[-1], ATTACKS[-1], ATTACKS[0])
def test_a_create_table_is_one_statement(name: str, key: str, value: str) -> None:
    text = written("sql", scope(name, value, key=f"k{key}", column=name))
    tokens = [
        each for each in SQL.finditer(text) if each["word"] or each["name"] is not None or each["text"] is not None
    ]
    assert "".join(each[0] for each in SQL.finditer(text)) == text
    assert " ".join(each["word"] or "x" for each in tokens) == (
        "CREATE TABLE x x x USING DELTA PARTITIONED BY x TBLPROPERTIES x x"
    )
    names = [each["name"].replace("``", "`") for each in tokens if each["name"] is not None]
    assert names == ["lake", "sales", name, name]
    assert [spark_text(each["text"]) for each in tokens if each["text"] is not None] == [f"k{key}", value]


SQL = re.compile(
    r"`(?P<name>(?:[^`]|``)*)`|'(?P<text>(?:[^'\\]|\\.)*)'|(?P<word>[A-Z]+)|[(),=.;\s]|-- columns\n", re.DOTALL
)
"""The tokens of a CREATE TABLE that we write: names, literals and words of Spark's grammar."""


def spark_text(literal: str) -> str:
    """A literal as ``SparkParserUtils.unescapeSQLString`` reads it."""
    letters = {"n": "\n", "r": "\r", "t": "\t"}
    escape = re.compile(r"\\(?:u([0-9a-f]{4})|(.))", re.DOTALL)
    return escape.sub(lambda found: chr(int(found[1], 16)) if found[1] else letters.get(found[2], found[2]), literal)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_pattern_begins_no_line_of_a_comment(attack: str) -> None:
    pattern = BirthScope(
        target=make_catalog_pattern("lake", escape_glob(attack), "*"),
        birth=Birth(properties=((LEVEL, "x"),), partitions=("day",)),
        place="p:1",
    )
    assert len(recorded(written("python", pattern))) == 1
    assert READERS["sql"](written("sql", pattern), "f")["TABLE"] == "NAME"
    assert written("python", pattern).count("\n") == 2
    assert [line[:6] for line in written("sql", pattern).split("\n")][:2] == ["-- eac", "CREATE"]


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=8) | TEXT)
def test_a_quoted_text_is_the_same_for_yaml_and_python_and_has_one_line(text: str) -> None:
    written = quoted(text)
    assert yaml.safe_load(f"a: [{written}]") == {"a": [text]}
    assert ast.literal_eval(written) == text
    assert len(written.splitlines()) == 1


CONTROLS = [*map(chr, range(1, 32)), *map(chr, range(127, 160)), "\u2028", "\u2029", "\0"]


@pytest.mark.parametrize("char", CONTROLS, ids=ascii)
@pytest.mark.parametrize("text", ["lake.`a{}b`.t", "lake.`a{}b`.*", "delta.`/lake/a{}b`", "delta.`/lake/a{}b/*`"])
def test_no_name_of_a_policy_has_a_control_character(char: str, text: str) -> None:
    with pytest.raises(NameSyntaxError, match=r"control character|NUL"):
        read_table_key(text.format(char), Variables(), "spark_catalog")
    with pytest.raises(NameSyntaxError, match=r"control character|NUL"):
        read_column(f"`a{char}b`", Variables())


@pytest.mark.parametrize(
    ("policy", "place"),
    [
        ('tables: {"lake.`a\\nb`.t": {isolation: Serializable}}', "p.yaml:2:10"),
        ('tables: {lake.s.t: {clustering: ["a\\nb"]}}', "p.yaml:2:"),
        ('tables: {lake.s.t: {properties: {"a\\u2028b": x}}}', "p.yaml:2:"),
        ('tables: {lake.s.t: {properties: {"a\\rb": x}}}', "p.yaml:2:"),
    ],
)
def test_a_control_character_in_a_name_is_reported_with_its_place(policy: str, place: str) -> None:
    with pytest.raises(InputError) as caught:
        read_specs([("p.yaml", f"version: 1\n{policy}\n".encode())], ValueReader(Variables(), "oss", "c", []))
    (problem,) = caught.value.problems
    assert str(problem).startswith(place)
    assert "control character" in problem.message
