"""One way to open a bucket, for the log of a table and for the records beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import quote

from obstore.exceptions import BaseError
from obstore.store import MemoryStore, ObjectStore, from_url

from tablectl.model.store_options import CONNECTION, FAMILIES, OPTIONS, PREFIXES
from tablectl.storage.failures import Failure, explain
from tablectl.storage.profiles import ProfileError, profile_credentials


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How object stores are reached. Credentials always come from each cloud's standard chain, never from here."""

    families: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    """Options by family, as ``stores:`` of ``tablectl.yaml`` has them: ``{"s3": {"endpoint": …, "region": …}}``."""
    memory: MemoryStore | None = None
    """What ``memory:`` locations mean."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request is tried again when a store does not answer, or answers with an error of its own."""

    tries: int
    seconds: int


class BucketError(Exception):
    """A bucket cannot be opened, and why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def open_bucket(scheme: str, authority: str, options: StoreOptions, patience: Patience) -> ObjectStore:
    """The store of a bucket or container; no request is made. Raises ``BucketError``.

    The URL carries no path: obstore would decode %xx in it, which Hadoop does not.
    """
    family = FAMILIES.get(scheme)
    if family is None:
        known = "known are local paths, s3, gs, az and abfss"
        raise BucketError(Failure(f"unknown kind of store {scheme!r}", known))
    given = options.families.get(family, {})
    unknown = sorted(set(given) - OPTIONS[family])
    if unknown:
        # obstore would not only refuse some of them: it would panic.
        raise BucketError(Failure(f"unknown option {unknown[0]!r}", f"known are {', '.join(sorted(OPTIONS[family]))}"))
    try:
        return from_url(
            f"{scheme}://{quote(authority, safe='@.:-_')}",
            config=cast("Any", {key: value for key, value in given.items() if key not in CONNECTION}),
            client_options=cast("Any", _connection(family, given, os.environ)),
            retry_config={"max_retries": patience.tries, "retry_timeout": timedelta(seconds=patience.seconds)},
            **_provider(family, given),
        )
    except ProfileError as error:
        hint = (
            "install it with `pip install 'tablectl[aws]'`" if "not installed" in str(error) else "see `aws configure`"
        )
        raise BucketError(Failure(str(error), hint)) from error
    except (BaseError, OSError, ValueError, TypeError) as error:
        failure = explain(error, family)
        hint = failure.hint or f"check stores.{family} in tablectl.yaml, and {PREFIXES[family]}… in the environment"
        raise BucketError(Failure(f"cannot be opened: {failure.reason}", hint)) from error


def _connection(family: str, given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str] | None:
    """The options of the HTTP client. obstore forgets those of the environment as soon as one is given."""
    named = {key: value for key, value in given.items() if key in CONNECTION}
    if not named:
        return None
    variables = {key: f"{PREFIXES[family]}{key.upper()}" for key in CONNECTION}
    return {**{key: environ[name] for key, name in variables.items() if environ.get(name)}, **named}


def _provider(family: str, given: Mapping[str, str]) -> dict[str, Any]:
    if family != "s3" or given.get("skip_signature", "").lower() == "true":
        return {}
    provider = profile_credentials(os.environ, Path.home())
    return {} if provider is None else {"credential_provider": provider}
