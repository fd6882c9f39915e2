"""Credentials in the locations of policies and variables: refused, and repeated by no message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablectl.model.errors import InputError
from tablectl.policies.repository import load_specs

PLACES = {
    "a path table": "delta.`s3://KEY:SECRET@bkt/t`: {isolation: Serializable}",
    "a pattern of paths": "delta.`s3://KEY:SECRET@bkt/*`: {isolation: Serializable}",
    "a bare location": '"s3://KEY:SECRET@bkt/t": {isolation: Serializable}',
    "a location": "s.t: {location: 'abfss://box@acc.net/t?sv=1&sig=SECRET', isolation: Serializable}",
    "a variable in a name": "delta.`${PLACE}/t`: {isolation: Serializable}",
    "a variable in a location": "s.t: {location: '${PLACE}/t', isolation: Serializable}",
    "a key that is not known": "s.t: {'s3://KEY:SECRET@bkt/t': x}",
    "a table declared twice": "s.t: {isolation: 'https://KEY:SECRET@bkt'}",
    "a long one": "delta.`s3://KEY" + "x" * 60 + ":SECRET@bkt/t`: {isolation: Serializable}",
}


@pytest.mark.parametrize("entry", PLACES.values(), ids=PLACES)
def test_no_message_repeats_a_credential(tmp_path: Path, entry: str) -> None:
    (tmp_path / "p.yaml").write_text(f"version: 1\ntables:\n  {entry}\n")
    with pytest.raises(InputError) as caught:
        load_specs([tmp_path / "p.yaml"], variables={"PLACE": "s3://KEY:SECRET@bkt"}, environ={})
    assert "SECRET" not in str(caught.value)
    assert ":3:" in str(caught.value)
