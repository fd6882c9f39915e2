"""Opens buckets, both for the log of a table and for its records."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import quote

from tablectl.model.store_options import CONCURRENCY, CONNECTION, FAMILIES, OPTIONS, PREFIXES
from tablectl.storage.failures import Failure, explain

if TYPE_CHECKING:
    from obstore.store import MemoryStore, ObjectStore

    from tablectl.model.catalog_answers import CatalogEntry, ManagedTable  # writers do without it


Provider = Callable[[], Any]
"""A credential provider in obstore's form. obstore calls it again before the credentials expire."""


@dataclass(frozen=True)
class TemporaryCredentials:
    """Credentials for the storage of one table."""

    family: str
    """The kind of store, ``s3``, ``gs`` or ``az``; empty if the storage needs none, as a local disk."""
    values: Mapping[str, str] = field(repr=False, default_factory=dict)
    """As obstore's providers return them: ``access_key_id``, ``secret_access_key``, ``token``; ``sas_token``."""
    expires: datetime | None = None
    """With its time zone; ``None`` if unknown."""
    prefixes: tuple[str, ...] = ()
    """The locations that they open, in canonical form."""


class StorageAccess(Protocol):
    """What catalogs know about locations. Thread-safe."""

    def provider(self, location: str, *, write: bool = False) -> Provider | None:
        """The credentials of a table's location; ``None`` if those of the environment apply.

        The provider raises ``LiveError`` if the catalog vends none.
        """
        ...

    def managed(self, location: str) -> ManagedTable | None:
        """The newest answer about a table whose commits go through its catalog; ``None`` for every other table.

        Raises ``LiveError`` if the catalog does not answer.
        """
        ...

    def entry(self, location: str) -> CatalogEntry | None:
        """What the catalog says about a table besides its state; ``None`` for a table without a configured catalog.

        Raises ``LiveError`` if the catalog does not answer.
        """
        ...


_NATIVE = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""The variables from which obstore itself takes credentials. As in boto3, they take precedence over any profile."""


@dataclass(frozen=True)
class StoreOptions:
    """How to reach object stores. Credentials come from the standard chain of each cloud, or from a catalog."""

    families: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    """Options by store kind, as in ``stores:`` of ``tablectl.yaml``: ``{"s3": {"endpoint": …, "region": …}}``."""
    concurrency: int = CONCURRENCY
    """The maximum number of tables that are read in parallel, and of requests for one bucket at a time."""
    processes: int | None = None
    """How many processes read many tables on disks of this machine; ``None`` for one for each core."""
    memory: MemoryStore | None = None
    """The store that ``memory:`` locations refer to."""
    access: StorageAccess | None = None
    """What catalogs vend and know, by location; ``None`` if no catalog does."""


@dataclass(frozen=True)
class RetryLimits:
    """How long to retry a request if a store does not answer, or answers with a server error."""

    tries: int
    seconds: int


class BucketError(Exception):
    """A bucket cannot be opened. Holds the reason."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def open_bucket(
    scheme: str, authority: str, options: StoreOptions, patience: RetryLimits, provider: Provider | None = None
) -> ObjectStore:
    """The store of a bucket or container. Makes no request. Raises ``BucketError``. With a ``provider``, the
    credentials of the environment are not used.

    The URL has no path: obstore would decode %xx in it, and Hadoop does not.
    """
    from obstore.exceptions import BaseError  # noqa: PLC0415  # slow to load, and not needed for disks
    from obstore.store import from_url  # noqa: PLC0415

    family = FAMILIES.get(scheme)
    if family is None:
        known = "known are local paths, s3, gs, az and abfss"
        raise BucketError(Failure(f"unknown kind of store {scheme!r}", known))
    given = options.families.get(family, {})
    unknown = sorted(set(given) - OPTIONS[family])
    if unknown:
        # for some of them obstore would panic instead of raising an error
        raise BucketError(Failure(f"unknown option {unknown[0]!r}", f"known are {', '.join(sorted(OPTIONS[family]))}"))
    try:
        return from_url(
            f"{scheme}://{quote(authority, safe='@.:-_')}",
            config=cast("Any", {key: value for key, value in given.items() if key not in CONNECTION}),
            client_options=cast("Any", _connection(family, given, os.environ)),
            retry_config={"max_retries": patience.tries, "retry_timeout": timedelta(seconds=patience.seconds)},
            **({"credential_provider": provider} if provider else _provider(family, given)),
        )
    except ProfileError as error:
        hint = "install it with `pip install boto3`" if "not installed" in str(error) else "see `aws configure`"
        raise BucketError(Failure(str(error), hint)) from error
    except (BaseError, OSError, ValueError, TypeError) as error:
        failure = explain(error, family)
        hint = failure.hint or f"check stores.{family} in tablectl.yaml, and {PREFIXES[family]}… in the environment"
        raise BucketError(Failure(f"cannot be opened: {failure.reason}", hint)) from error


def _connection(family: str, given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str] | None:
    """The options of the HTTP client. obstore ignores those in the environment as soon as one is given."""
    named = {key: value for key, value in given.items() if key in CONNECTION}
    if not named:
        return None
    variables = {key: f"{PREFIXES[family]}{key.upper()}" for key in CONNECTION}
    return {**{key: environ[name] for key, name in variables.items() if environ.get(name)}, **named}


def _provider(family: str, given: Mapping[str, str]) -> dict[str, Any]:
    unsigned = given.get("skip_signature") or os.environ.get(f"{PREFIXES[family]}SKIP_SIGNATURE", "")
    if family == "gs" and unsigned.lower() in {"1", "true"}:
        # obstore's puts to GCS look for a token even with `skip_signature`, which its other requests respect.
        return {"credential_provider": _no_token}
    if family != "s3" or given.get("skip_signature", "").lower() == "true":
        return {}
    provider = profile_credentials(os.environ, Path.home())
    return {} if provider is None else {"credential_provider": provider}


def _no_token() -> dict[str, Any]:
    """What a put without a signature sends as its token. Servers without logins ignore it, and GCS refuses it."""
    return {"token": "anonymous", "expires_at": None}


class ProfileError(Exception):
    """The requested profile cannot be used. The message says why."""


def profile_credentials(environ: Mapping[str, str], home: Path) -> Callable[[], Any] | None:
    """A credential provider for obstore; ``None`` if obstore finds credentials without one.

    Raises ``ProfileError`` if ``AWS_PROFILE`` names a profile that cannot be used.
    """
    profile = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE")
    if any(environ.get(key) for key in _NATIVE) or environ.get("AWS_SKIP_SIGNATURE", "").lower() in {"1", "true"}:
        return None
    if not profile and not any(path.is_file() for path in shared_files(environ, home)):
        return None
    if find_spec("boto3") is None:
        if profile:
            raise ProfileError(f"AWS_PROFILE is {profile!r}, and profiles are read by boto3, which is not installed")
        return None
    import boto3  # noqa: PLC0415  # slow to import, and needed only for profiles
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415
    from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415

    try:
        session = boto3.Session(profile_name=profile)
        provider: Callable[[], Any] = Boto3CredentialProvider(session)
    except (BotoCoreError, ValueError) as error:
        if profile:
            raise ProfileError(f"the profile {profile!r} of AWS_PROFILE cannot be used: {error}") from error
        return None  # no usable default profile in the files: the machine's role is next
    return provider


def shared_files(environ: Mapping[str, str], home: Path) -> tuple[Path, Path]:
    """The files that can contain profiles, whether or not they exist."""
    named = environ.get("AWS_SHARED_CREDENTIALS_FILE"), environ.get("AWS_CONFIG_FILE")
    return (
        Path(named[0]).expanduser() if named[0] else home / ".aws" / "credentials",
        Path(named[1]).expanduser() if named[1] else home / ".aws" / "config",
    )
