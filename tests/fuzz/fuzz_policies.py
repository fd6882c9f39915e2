"""Policy files: damaged bytes, and entries made of hostile keys and values."""

from __future__ import annotations

import json
from random import Random

from tablectl.model.errors import InputError
from tablectl.model.safe_text import escape_output
from tablectl.policies.declared_tables import Specs
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tests.fuzz.damage import damaged_bytes
from tests.fuzz.hostile import hostile_text
from tests.fuzz.subject import Subject
from tests.output_commands import obeyed

_POLICY = b"""version: 1
defaults: {isolation: default, properties: {owner.team: no one}, tags: [all]}
tables:
  lake.sales.orders:
    clustering: [customer_id, "`a.b`"]
    location: s3://lake/${WHERE}/orders
    unmanaged: [owner.team]
    properties: {delta.checkpointRetentionDuration: interval 60 days, "x.y": "a: b", debug: null}
  "lake.*.raw_[ab]?": {isolation: Serializable, deletion_vectors: enabled, optimize: full}
  delta.`/lake/*/raw`: &one
    partitioning: [day]
    rewrite: allowed
    max_bytes: 20GB
    clients: {deltalake: 1.6.3}
    retention: {log: interval 60 days, deleted_files: 2 weeks}
    data_skipping: [day, "`a,b`", address.city]
    allow: [lockout, partition_writers]
"""
_WORDS = (
    *("isolation", "properties", "clustering", "tags", "location", "unmanaged", "Serializable", "default", "none"),
    *(
        "retention",
        "log",
        "data_skipping",
        "allow",
        "lockout",
        "clients",
        "max_bytes",
        "interval 1 day",
        "`a,b`",
        "a.b",
    ),
    *("lake.s.t", "lake.s.*", "delta.`/lake/t`", "delta.`s3://K:S@b/t`", "delta.appendOnly", "${WHERE}", "${NO}", "*"),
)


def damaged_policy(random: Random) -> str:
    return _read(damaged_bytes(random, _POLICY))


def made_policy(random: Random) -> str:
    entries = ((_word(random), _entry(random)) for _ in range(random.randint(1, 4)))
    tables = dict(entries) if random.random() < 0.5 else {f"lake.s.{key}": _entry(random) for key in "ab"}
    body = {"version": 1, "tables": tables, "defaults": _entry(random)}
    if random.random() < 0.8:
        del body["defaults"]
    return _read(json.dumps(body, ensure_ascii=random.random() < 0.5).encode(errors="surrogatepass"))


def _word(random: Random) -> str:
    return random.choice(_WORDS) if random.random() < 0.7 else hostile_text(random)


def _entry(random: Random) -> object:
    """Half of them with properties alone, which take nearly any text."""
    if random.random() < 0.3:
        return _value(random, 3)
    pairs = {f"x.{random.random()}{random.choice(['', _word(random)])}": _plain(random) for _ in range(3)}
    return {"properties": pairs}


def _plain(random: Random) -> str:
    """Text that YAML and a property take: no NUL, no half characters, no variables."""
    return "".join(char for char in hostile_text(random) if char not in "\0$" and not "\ud800" <= char <= "\udfff")


def _value(random: Random, depth: int) -> object:
    kind = random.randrange(6) if depth else 0
    if kind < 2:
        return _word(random)
    if kind == 2:
        return [_value(random, depth - 1) for _ in range(random.randrange(3))]
    if kind == 3:
        return random.choice([None, True, 0, -1, 1.5, 10**30, ""])
    return {_word(random): _value(random, depth - 1) for _ in range(random.randrange(4))}


def _read(data: bytes) -> str:
    try:
        specs = _specs(data)
    except InputError as error:
        _check_problems(error)
        return "refused"
    assert specs.digest == _specs(data).digest
    return "read"


def _check_problems(error: InputError) -> None:
    assert error.problems
    for problem in error.problems:
        assert problem.file == "p.yaml"
        assert problem.message
        assert len(problem.message) < 10_000
    assert obeyed(escape_output(str(error))) == []


def _specs(data: bytes) -> Specs:
    return read_specs([("p.yaml", data)], ValueReader(Variables({"WHERE": "here"}), "oss", "spark_catalog", []))


SUBJECTS = (
    Subject("policy-bytes", "a policy of any bytes is read, or refused with problems at places", damaged_policy),
    Subject("policy-entries", "any keys and values are read, or refused with problems at places", made_policy),
)
