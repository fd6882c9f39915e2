"""Profiles in ``~/.aws``, including single sign-on. obstore does not read them; boto3 does, if it is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_NATIVE = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""The variables from which obstore itself takes credentials. As in boto3, they take precedence over any profile."""


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
    return _from_boto3(profile)


def shared_files(environ: Mapping[str, str], home: Path) -> tuple[Path, Path]:
    """The files that can contain profiles, whether or not they exist."""
    named = environ.get("AWS_SHARED_CREDENTIALS_FILE"), environ.get("AWS_CONFIG_FILE")
    return (
        Path(named[0]).expanduser() if named[0] else home / ".aws" / "credentials",
        Path(named[1]).expanduser() if named[1] else home / ".aws" / "config",
    )


def _from_boto3(profile: str | None) -> Callable[[], Any] | None:
    # Slow to import, and needed only for profiles.
    import boto3  # noqa: PLC0415
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
