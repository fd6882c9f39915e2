"""Text that is shown or generated: secrets in values, look-alikes, and what makers of tables print."""

from __future__ import annotations

import ast
import string
from random import Random
from types import SimpleNamespace

import yaml

from tablectl.delta.credentials import scrub
from tablectl.delta.names import TableName
from tablectl.model.safe_text import printable, value_text
from tablectl.planning.new_table import Birth
from tablectl.planning.table_makers import MAKERS, BirthScope
from tests.credential_corpus import HARMLESS, SECRETS
from tests.fuzz.hostile import hostile_text
from tests.fuzz.subject import Subject
from tests.planning.maker_files import READERS

_LEVEL = "delta.isolationLevel"
_AROUND = ("", " ", "\n", ", ", "; ", "(", ")", '"', "'", "é", "\u3164", " value ", " = ", " at ")


def secret(random: Random) -> str:
    """A secret of the corpus, made of other characters of its alphabet, between harmless text."""
    name = random.choice(list(SECRETS))
    text, hidden = SECRETS[name]
    other = "".join(_alike(random, char) for char in hidden) if name in _FREE else hidden
    before, after = random.choice(_AROUND), random.choice(_AROUND)
    shown = scrub(f"{before}{text.replace(hidden, other)}{after}")
    assert other not in shown, (name, shown)
    assert scrub(shown) == shown
    assert other not in value_text(text.replace(hidden, other))
    return "hidden"


_FREE = frozenset(
    {
        *("user in a URL", "user in a JDBC URL", "mongodb", "amqp", "snowflake", "parameter of JDBC", "ODBC", "libpq"),
        *("SAS", "Service Bus", "JAAS", "JSON", "YAML", "properties", "environment", "XML", "Ruby", "GitHub", "GitLab"),
        *("Databricks", "npm", "Google API", "Slack", "AWS key", "private key"),
    }
)
"""Secrets of one alphabet, so that a character can be replaced by any of its kind."""


def _alike(random: Random, char: str) -> str:
    if char in "0123456789abcdef" and char.isdigit():
        return random.choice("2345678")
    if char in string.ascii_lowercase:
        return random.choice("abcdef")
    return random.choice("ABCDEFGH") if char in string.ascii_uppercase else char


def harmless(random: Random) -> str:
    text = random.choice(HARMLESS)
    assert scrub(text) == text
    return "shown"


def generated(random: Random) -> str:
    """Each maker gives back what was put in, and nothing of it runs."""
    name, value = (hostile_text(random).encode(errors="ignore").decode().replace("\0", "") for _ in range(2))
    birth = Birth(properties=((_LEVEL, value),), partitions=(name or "x",))
    scope = BirthScope(target=TableName("lake", ("sales", name or "x")), birth=birth, place="a.yaml:1")
    maker = random.choice(["spark", "spark-submit", "python", "delta-rs", "sql", "dbt"])
    text = MAKERS[maker].write([scope], "oss", "shop").text
    match maker:
        case "python":
            found: dict[str, str] = {}
            session = SimpleNamespace(conf=SimpleNamespace(set=found.__setitem__))
            exec(compile(text, "generated", "exec"), {"__builtins__": {}, "spark": session})
            assert list(found.values()) == [value]
        case "delta-rs":
            (assigned,) = ast.parse(text).body
            assert isinstance(assigned, ast.Assign)
            assert ast.literal_eval(assigned.value)[scope.text]["configuration"] == {_LEVEL: value}
        case "dbt":
            assert set(yaml.safe_load(text)) == {"models"}
        case "spark" | "spark-submit":
            assert text.count("\n") == 1
            assert value != value.strip() or READERS[maker](text, "f") == {_LEVEL: value}
        case _:
            assert len(READERS[maker](text, "f")) == 4
    return maker


def shown(random: Random) -> str:
    text = hostile_text(random)
    once = printable(text)
    assert once.isprintable()
    assert printable(once) == once
    return "changed" if once != text else "as it is"


SUBJECTS = (
    Subject("secrets", "no secret of the corpus is in what is shown", secret, 200),
    Subject("harmless", "text that only looks like a secret is shown", harmless),
    Subject(
        "generated",
        "what is printed for another program gives back the names and values, and runs nothing",
        generated,
        100,
    ),
    Subject("shown", "what is shown is printable, and stays the same when it is shown again", shown, 200),
)
