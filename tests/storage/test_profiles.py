from __future__ import annotations

from pathlib import Path

import pytest

from tablectl.storage import object_stores
from tablectl.storage.object_stores import ProfileError, profile_credentials, shared_files

_KEYS = "aws_access_key_id = mine\naws_secret_access_key = secret\n"


def write(home: Path, text: str, name: str = "credentials") -> None:
    (home / ".aws").mkdir(exist_ok=True)
    (home / ".aws" / name).write_text(text, encoding="utf-8")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, for boto3 too."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_without_profiles_obstore_looks_for_itself(home: Path) -> None:
    assert profile_credentials({}, home) is None


def test_the_default_profile_is_taken(home: Path) -> None:
    write(home, f"[default]\n{_KEYS}")
    provider = profile_credentials({}, home)
    assert provider is not None
    assert provider()["access_key_id"] == "mine"


def test_a_profile_by_name_with_its_region(home: Path) -> None:
    write(home, f"[work]\n{_KEYS}")
    write(home, "[profile work]\nregion = eu-north-1\n", "config")
    provider = profile_credentials({"AWS_PROFILE": "work"}, home)
    assert provider is not None
    assert provider.config == {"region": "eu-north-1"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "variable",
    ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
)
def test_the_environment_comes_before_profiles(home: Path, variable: str) -> None:
    write(home, f"[default]\n{_KEYS}")
    assert profile_credentials({variable: "x", "AWS_PROFILE": "default"}, home) is None


def test_public_buckets_need_no_profile(home: Path) -> None:
    write(home, f"[default]\n{_KEYS}")
    assert profile_credentials({"AWS_SKIP_SIGNATURE": "true"}, home) is None


def test_a_profile_that_is_not_there_is_an_error(home: Path) -> None:
    with pytest.raises(ProfileError, match="'work' of AWS_PROFILE cannot be used"):
        profile_credentials({"AWS_PROFILE": "work"}, home)


def test_files_without_a_default_profile_leave_the_machines_own_role(home: Path) -> None:
    write(home, "[profile other]\nregion = x\n", "config")
    assert profile_credentials({}, home) is None


def test_without_boto3_only_a_profile_asked_for_is_an_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_stores, "find_spec", lambda _name: None)
    write(home, f"[default]\n{_KEYS}")
    assert profile_credentials({}, home) is None
    with pytest.raises(ProfileError, match="boto3, which is not installed"):
        profile_credentials({"AWS_PROFILE": "default"}, home)


def test_the_files_may_lie_elsewhere() -> None:
    environ = {"AWS_CONFIG_FILE": "/etc/aws"}
    assert shared_files(environ, Path("/home/me")) == (Path("/home/me/.aws/credentials"), Path("/etc/aws"))
