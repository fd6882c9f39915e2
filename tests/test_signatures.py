"""Signed plans, against whoever can write the plan and its signature but has no allowed key."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import tablectl
from tablectl import signatures
from tablectl.model.errors import PlanFileError, TablectlError
from tablectl.signatures import check_signature, sign
from tests.cli.conftest import Cli, FakeSpark, Repository, cli, fake_spark, repo
from tests.cli.log_lake import Logged, set_property

__all__ = ["Cli", "FakeSpark", "Repository", "cli", "fake_spark", "repo"]

PLAN = Path("p.json")
SIGNATURE = Path("p.json.sig")


@dataclass(frozen=True)
class Keys:
    """SSH keys without passphrases, and a file of those that may sign."""

    folder: Path
    signers: Path

    def make(self, name: str) -> Path:
        key = self.folder / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
        return key

    def allow(self, *lines: tuple[str, Path]) -> None:
        """Each line has names and options, and the key that they are for."""
        self.signers.write_text("".join(f"{words} {key.with_suffix('.pub').read_text()}" for words, key in lines))


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    folder = tmp_path / "keys"
    folder.mkdir()
    return Keys(folder, tmp_path / "signers")


@pytest.fixture
def alice(keys: Keys) -> Path:
    key = keys.make("alice")
    keys.allow(("alice@example.com", key))
    return key


@pytest.fixture
def planned(repo: Repository, fake_spark: FakeSpark, cli: Cli, keys: Keys) -> Path:
    """A saved plan of one table, in a repository that applies only signed ones."""
    table = repo.table("orders", properties={"owner.team": "web"})
    repo.policies({"orders": "{properties: {owner.team: pay}}"})
    Path("tablectl.yaml").write_text(f"signatures: {{signers: {keys.signers}, required: true}}\n")
    assert cli("plan", "--out", PLAN).code == 0
    return table


def refusal(data: bytes, plan: Path, keys: Keys) -> str:
    with pytest.raises(PlanFileError) as refused:
        check_signature(data, plan, keys.signers)
    assert str(plan) in refused.value.message
    assert "tablectl sign " in refused.value.hint
    return refused.value.message


def signed(tmp_path: Path, key: Path, data: bytes = b"plan") -> Path:
    plan = tmp_path / "plan.json"
    plan.write_bytes(data)
    (tmp_path / "plan.json.sig").write_bytes(sign(data, plan, key))
    return plan


def test_a_signed_plan_is_applied(planned: Path, alice: Path, cli: Cli) -> None:
    made = cli("sign", PLAN, "--key", alice)
    assert (made.code, "signed the plan " in made.err) == (0, True)
    assert cli("apply", PLAN).code == 0
    assert Logged(planned).properties == {"owner.team": "pay"}


def test_an_unsigned_plan_is_refused_with_the_names_of_the_signers_and_the_fix(
    planned: Path, alice: Path, cli: Cli, fake_spark: FakeSpark
) -> None:
    ran = cli("apply", PLAN)
    assert (ran.code, fake_spark.sent) == (3, [])
    assert "p.json: it is not signed: there is no p.json.sig next to it" in ran.err
    assert "alice@example.com" in ran.err
    assert "tablectl sign p.json --key FILE" in ran.err


def test_the_signature_comes_before_anything_else_is_believed(planned: Path, alice: Path, cli: Cli) -> None:
    PLAN.write_text("no plan at all")
    assert "it is not signed" in cli("apply", PLAN).err


def test_a_plan_edited_after_signing_is_refused(planned: Path, alice: Path, cli: Cli, fake_spark: FakeSpark) -> None:
    assert cli("sign", PLAN, "--key", alice).code == 0
    PLAN.write_bytes(PLAN.read_bytes() + b"\n")
    ran = cli("apply", PLAN, "--without-policies")
    assert (ran.code, fake_spark.sent) == (3, [])
    assert "its signature is not of these bytes" in ran.err


def test_the_option_requires_what_the_configuration_does_not(planned: Path, alice: Path, keys: Keys, cli: Cli) -> None:
    Path("tablectl.yaml").write_text(f"signatures: {{signers: {keys.signers}}}\n")
    assert cli("apply", PLAN, "--require-signature").code == 3
    Path("tablectl.yaml").write_text("")
    ran = cli("apply", PLAN, "--require-signature")
    assert (ran.code, "signatures: {signers: FILE}" in ran.err) == (3, True)
    assert cli("apply", PLAN).code == 0


def test_no_environment_of_a_plan_can_switch_the_check_off(planned: Path, alice: Path, cli: Cli) -> None:
    with Path("tablectl.yaml").open("a") as file:
        file.write("env: {dev: {signatures: {required: false}}}\n")
    ran = cli("apply", PLAN)
    assert ran.code == 1
    assert 'unknown key "env.dev.signatures"' in ran.err


def test_without_a_plan_file_there_is_nothing_to_sign(planned: Path, alice: Path, cli: Cli) -> None:
    ran = cli("apply", "--yes")
    assert (ran.code, "only signed plans may be applied" in ran.err) == (3, True)
    assert cli("apply", "--yes", "--require-signature").code == 64


def test_the_python_functions_check_it_too(planned: Path, alice: Path, keys: Keys, cli: Cli) -> None:
    with pytest.raises(PlanFileError, match="it is not signed"):
        tablectl.apply(PLAN)
    with pytest.raises(PlanFileError, match="this is no plan file"):
        tablectl.apply(tablectl.plan())
    Path("tablectl.yaml").write_text(f"signatures: {{signers: {keys.signers}}}\n")
    with pytest.raises(PlanFileError, match="it is not signed"):
        tablectl.apply(PLAN, require_signature=True)
    assert cli("sign", PLAN, "--key", alice).code == 0
    assert tablectl.apply(PLAN, require_signature=True).exit_code == 0


def test_what_is_no_plan_is_not_signed(planned: Path, alice: Path, cli: Cli) -> None:
    PLAN.write_text("{}")
    assert cli("sign", PLAN, "--key", alice).code == 3
    assert not SIGNATURE.exists()


def test_a_new_plan_needs_a_new_signature(planned: Path, alice: Path, cli: Cli) -> None:
    assert cli("sign", PLAN, "--key", alice).code == 0
    set_property(planned, "owner.team", "ops")
    assert cli("plan", "--out", PLAN).code == 0
    assert "its signature is not of these bytes" in cli("apply", PLAN).err


def test_a_signature_of_another_file_is_refused(tmp_path: Path, keys: Keys, alice: Path) -> None:
    plan = signed(tmp_path, alice, b"another plan")
    assert "its signature is not of these bytes" in refusal(b"plan", plan, keys)


def test_a_signature_of_another_namespace_is_refused(
    tmp_path: Path, keys: Keys, alice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(signatures, "NAMESPACE", "git")
        plan = signed(tmp_path, alice)
    assert "its namespace is not tablectl-plan" in refusal(b"plan", plan, keys)


def test_a_key_that_may_sign_other_things_only_is_refused(tmp_path: Path, keys: Keys, alice: Path) -> None:
    keys.allow(('alice@example.com namespaces="git"', alice))
    refusal(b"plan", signed(tmp_path, alice), keys)


def test_a_key_that_is_not_allowed_is_named(tmp_path: Path, keys: Keys, alice: Path) -> None:
    message = refusal(b"plan", signed(tmp_path, keys.make("mallory")), keys)
    assert "it is signed by a key that is not allowed, SHA256:" in message
    assert message.endswith(": alice@example.com")


@pytest.mark.parametrize("option", ['valid-before="20200101Z"', 'valid-after="20990101Z"'])
def test_a_key_that_is_not_valid_now_is_refused(tmp_path: Path, keys: Keys, alice: Path, option: str) -> None:
    keys.allow((f"alice@example.com {option}", alice))
    assert "a key that is not valid now, SHA256:" in refusal(b"plan", signed(tmp_path, alice), keys)


def test_no_signer_is_allowed_by_an_empty_file(tmp_path: Path, keys: Keys, alice: Path) -> None:
    keys.signers.write_text("# soon\n\n")
    assert refusal(b"plan", signed(tmp_path, alice), keys).endswith(": no signer")


def test_the_bytes_that_were_read_count_and_not_the_file(tmp_path: Path, keys: Keys, alice: Path) -> None:
    plan = signed(tmp_path, alice)
    plan.write_bytes(b"swapped meanwhile")
    assert check_signature(b"plan", plan, keys.signers) == "alice@example.com"
    plan.write_bytes(b"plan")
    refusal(b"swapped meanwhile", plan, keys)


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_link(path: Path) -> None:
    real = path.with_name("real")
    real.write_bytes(path.read_bytes() if path.exists() else b"")
    path.unlink(missing_ok=True)
    path.symlink_to(real)


def a_huge_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize("made", [a_fifo, a_link, a_huge_file, Path.mkdir])
def test_what_is_no_small_file_is_no_signature(
    tmp_path: Path, keys: Keys, alice: Path, made: Callable[[Path], None]
) -> None:
    plan = signed(tmp_path, alice)
    path = tmp_path / "plan.json.sig"
    if made is not a_link:
        path.unlink()
    made(path)
    assert "its signature plan.json.sig cannot be read: " in refusal(b"plan", plan, keys)


@pytest.mark.parametrize("bytes_", [b"", b"-----BEGIN SSH SIGNATURE-----\n", b"\0" * 1000, b"-Y\n" * 100])
def test_rubbish_is_no_signature(tmp_path: Path, keys: Keys, alice: Path, bytes_: bytes) -> None:
    plan = signed(tmp_path, alice)
    (tmp_path / "plan.json.sig").write_bytes(bytes_)
    refusal(b"plan", plan, keys)


def test_names_that_begin_with_a_dash_are_no_options(
    repo: Repository, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(keys.folder)
    keys.make("key").rename("-Oprint-pubkey")
    Path("key.pub").rename("-Oprint-pubkey.pub")
    Path("-nfile").write_text(f"-Overify-time=20200101 {Path('-Oprint-pubkey.pub').read_text()}")
    plan = Path("-Y.json")
    plan.write_bytes(b"plan")
    Path("-Y.json.sig").write_bytes(sign(b"plan", plan, Path("-Oprint-pubkey")))
    assert check_signature(b"plan", plan, Path("-nfile")) == "-Overify-time=20200101"


def test_names_of_signers_reach_a_message_without_control_characters(tmp_path: Path, keys: Keys, alice: Path) -> None:
    lines = [f'"a\x1b[31m{number}" ssh-ed25519 AAAA\n' for number in range(30)]
    keys.signers.write_text("".join(lines) + "x" * 500)
    message = refusal(b"plan", signed(tmp_path, alice), keys)
    assert "a?[31m0, a?[31m1" in message
    assert message.endswith("a?[31m9 and 21 more")


def test_signers_that_cannot_be_read_are_a_refusal(tmp_path: Path, keys: Keys, alice: Path) -> None:
    plan = signed(tmp_path, alice)
    for made in (Path.mkdir, a_fifo, None):
        keys.signers.unlink() if keys.signers.is_file() else None
        if made:
            made(keys.signers)
        with pytest.raises(PlanFileError, match="its signature cannot be checked") as refused:
            check_signature(b"plan", plan, keys.signers)
        assert "signatures: {signers: FILE}" in refused.value.hint
        keys.signers.rmdir() if keys.signers.is_dir() else keys.signers.unlink(missing_ok=True)


def test_a_missing_ssh_keygen_is_said(tmp_path: Path, keys: Keys, alice: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = signed(tmp_path, alice)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TablectlError, match="ssh-keygen is not on the PATH") as missing:
        check_signature(b"plan", plan, keys.signers)
    assert "install OpenSSH" in missing.value.hint


@pytest.mark.parametrize(
    ("script", "message"),
    [("exec sleep 60", "did not end within 0.2 s"), ("head -c 100000 /dev/zero", "wrote more than 64 kB")],
)
def test_an_ssh_keygen_that_hangs_or_floods_is_bounded(
    tmp_path: Path, keys: Keys, alice: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    plan = signed(tmp_path, alice)
    fake = tmp_path / "bin" / "ssh-keygen"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(signatures, "_TIMEOUT", 0.2 if "sleep" in script else 30.0)
    with pytest.raises(TablectlError, match=message):
        check_signature(b"plan", plan, keys.signers)


def test_a_key_that_cannot_sign_is_said(tmp_path: Path, keys: Keys) -> None:
    with pytest.raises(TablectlError, match=r"was not signed with .*: Couldn't load public key"):
        sign(b"plan", tmp_path / "plan.json", keys.folder / "none")


def test_the_environment_asks_for_signatures_and_takes_them_not_back(
    planned: Path, keys: Keys, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sets a variable of the job would switch off what the reviewed file requires."""
    Path("tablectl.yaml").write_text("signatures: {signers: signers, required: true}\n")
    monkeypatch.setenv("TABLECTL_SIGNATURES_REQUIRED", "false")
    assert cli("apply", PLAN).code == 3
    Path("tablectl.yaml").write_text("signatures: {signers: signers}\n")
    assert cli("apply", PLAN).code == 0
    monkeypatch.setenv("TABLECTL_SIGNATURES_REQUIRED", "true")
    assert cli("apply", PLAN).code == 3


def test_a_branch_does_not_decide_who_signs(
    planned: Path, alice: Path, keys: Keys, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "tablectl.yaml").write_text("signatures: {signers: signers, required: true}\n")
    (base / "signers").write_text(keys.signers.read_text())
    mallory = keys.make("mallory")
    keys.allow(("mallory@example.com", mallory))
    Path("signers").write_text(keys.signers.read_text())
    Path("tablectl.yaml").write_text("signatures: {signers: signers, required: false}\n")
    monkeypatch.setenv("TABLECTL_BASE_CONFIG", str(base / "tablectl.yaml"))
    assert cli("sign", PLAN, "--key", mallory).code == 0
    ran = cli("apply", PLAN)
    assert (ran.code, "alice@example.com" in ran.err, "mallory@" in ran.err) == (3, True, False)
    assert cli("sign", PLAN, "--key", alice).code == 0
    assert cli("apply", PLAN).code == 0
