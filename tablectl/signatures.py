"""Signatures of plan files, made and checked by OpenSSH (``ssh-keygen -Y``, PROTOCOL.sshsig in OpenSSH's sources).

A signature lies next to its plan, as ``PLAN.sig``. It covers the bytes of the file, in a namespace of its own: a
signature that was made for Git or for mail is not valid for a plan.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from tablectl.files import read_regular, size_text
from tablectl.frozen import frozen
from tablectl.model.errors import PlanFileError, TablectlError

NAMESPACE = "tablectl-plan"
LARGEST_SIGNATURE = 64_000
LARGEST_SIGNERS = 1 << 20
"""Bytes of an allowed-signers file: several thousand keys."""

_TIMEOUT = 30.0
_SIGNING_TIMEOUT = 300.0
"""Seconds in which a person enters a passphrase or touches a security key."""
_MOST_OUTPUT = 64_000
_MOST_PRINCIPALS = 20
_MOST_NAMED = 10
_LONGEST_NAME = 100
_KEPT = ("PATH", "TZ", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")
"""What ssh-keygen needs of the environment to verify. ``TZ`` counts for ``valid-before``."""


@frozen
class _Answer:
    code: int
    out: bytes
    err: str
    """Its first line of standard error."""


def signature_file(plan: Path) -> Path:
    """Where the signature of a plan file lies."""
    return plan.with_name(f"{plan.name}.sig")


def sign(data: bytes, plan: Path, key: Path) -> bytes:
    """The signature of a plan file's bytes, armored.

    ``key`` is a private key, or a public key whose private one an ssh-agent holds; ssh-keygen itself asks for a
    passphrase on the terminal. Raises ``TablectlError`` where it cannot sign.
    """
    args = ("-Y", "sign", "-n", NAMESPACE, "-f", str(key.absolute()))
    answer = _run(args, data, os.environ, _SIGNING_TIMEOUT)
    if answer.code != 0 or not answer.out.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        why = answer.err or f"ssh-keygen ended with exit code {answer.code}"
        raise TablectlError(
            f"{plan} was not signed with {key}: {why}",
            "give --key a private key that only you can read, or the public key of one that your ssh-agent holds",
        )
    return answer.out


def check_signature(data: bytes, plan: Path, signers: Path) -> str:
    """The identity that signed these bytes, one of those that the allowed-signers file names.

    ``data`` is what was read of ``plan``; the file itself is not opened again. Raises ``PlanFileError`` where the
    signature is missing, is not of these bytes and of plans, or is by a key that is not allowed now, and
    ``TablectlError`` where ssh-keygen is missing.
    """
    allowed = _read_signers(plan, signers)
    path = signature_file(plan)
    try:
        signature = read_regular(path, LARGEST_SIGNATURE, follow=False)
    except FileNotFoundError:
        raise _refused(plan, f"it is not signed: there is no {path.name} next to it", allowed, signers) from None
    except OSError as error:
        why = f"its signature {path.name} cannot be read: {_reason(error)}"
        raise _refused(plan, why, allowed, signers) from None
    # ssh-keygen opens files by name: it gets copies that no other process can replace.
    with tempfile.TemporaryDirectory(prefix="tablectl-") as folder:
        copies = (Path(folder, "signature"), Path(folder, "signers"))
        copies[0].write_bytes(signature)
        copies[1].write_bytes(allowed)
        found = _verified(data, *copies)
        if found is None:
            raise _refused(plan, _why_not(data, *copies), allowed, signers)
    return found


def _verified(data: bytes, signature: Path, signers: Path) -> str | None:
    """Who signed; ``None`` where ssh-keygen verifies it for none of the allowed identities."""
    named = _ask("find-principals", b"", signature, "-f", str(signers)).out.decode(errors="replace").splitlines()
    for each in named[:_MOST_PRINCIPALS]:
        # One word, so that a name which begins with a dash is no option.
        more = ("-f", str(signers), f"-I{each}", "-n", NAMESPACE)
        if each and _ask("verify", data, signature, *more).code == 0:
            return _name(each)
    return None


def _why_not(data: bytes, signature: Path, signers: Path) -> str:
    """Why a signature was refused. Decides nothing."""
    checked = _ask("check-novalidate", data, signature, "-n", NAMESPACE)
    if checked.code == 0:
        key = _name(checked.out.decode(errors="replace").strip().rpartition(" ")[2])
        err = _ask("find-principals", b"", signature, "-f", str(signers)).err
        if "expired" in err or "not yet valid" in err:
            return f"it is signed by a key that is not valid now, {key}"
        return f"it is signed by a key that is not allowed, {key}"
    if "namespace" in checked.err:
        return f"its signature was made for something else: its namespace is not {NAMESPACE}"
    if "parse" in checked.err:
        return "its signature file holds no signature of ssh-keygen"
    return "its signature is not of these bytes: it was changed after it was signed, or another file was signed"


def _refused(plan: Path, why: str, allowed: bytes, signers: Path) -> PlanFileError:
    named = list(dict.fromkeys(_identities(allowed)))
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    who = f"{', '.join(named[:_MOST_NAMED])}{more}" if named else "no signer"
    return PlanFileError(
        f"{plan}: {why}. Allowed to sign, by {signers}: {who}",
        f"have one of them review this plan and run `tablectl sign {shlex.quote(str(plan))} --key FILE`",
    )


def _read_signers(plan: Path, signers: Path) -> bytes:
    try:
        return read_regular(signers, LARGEST_SIGNERS)
    except (OSError, ValueError) as error:
        raise PlanFileError(
            f"{plan}: its signature cannot be checked: {signers}: {_reason(error)}",
            "`signatures: {signers: FILE}` in tablectl.yaml names a file with a line `NAME KEY` for each signer, as in "
            "`man ssh-keygen`, ALLOWED SIGNERS",
        ) from None


def _identities(allowed: bytes) -> Iterator[str]:
    for line in allowed.decode(errors="replace").splitlines():
        text = line.strip()
        if text and not text.startswith("#"):
            field = text[1:].partition('"')[0] if text.startswith('"') else text.split()[0]
            yield _name(field)


def _name(text: str) -> str:
    """A name or fingerprint for people."""
    return "".join(each if each.isprintable() else "?" for each in text[:_LONGEST_NAME])


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def _ask(what: str, data: bytes, signature: Path, *more: str) -> _Answer:
    environ = {key: os.environ[key] for key in _KEPT if key in os.environ}
    return _run(("-Y", what, "-s", str(signature), *more), data, environ, _TIMEOUT)


def _run(args: Sequence[str], data: bytes, environ: Mapping[str, str], timeout: float) -> _Answer:
    """ssh-keygen on some bytes as its standard input, for a bounded time."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise TablectlError(
            "ssh-keygen is not on the PATH: it makes and checks the signatures of plans",
            "install OpenSSH's client, 8.2 or newer (`openssh-client` on Debian and Ubuntu)",
        )
    # Files and no pipes: whatever is left unread or written blocks neither side.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(data)
        given.seek(0)
        try:
            ran = subprocess.run(  # noqa: S603  # no shell, and each name is an argument of its own
                [program, *args], stdin=given, stdout=out, stderr=err, env=dict(environ), timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise TablectlError(f"ssh-keygen did not end within {timeout:g} s", "try again") from None
        except OSError as error:
            raise TablectlError(f"ssh-keygen cannot be run: {_reason(error)}", "check the PATH") from None
        return _Answer(ran.returncode, _start(out), _error_text(_start(err)))


def _start(file: IO[bytes]) -> bytes:
    if os.fstat(file.fileno()).st_size > _MOST_OUTPUT:
        raise TablectlError(f"ssh-keygen wrote more than {size_text(_MOST_OUTPUT)}", "check which one is on the PATH")
    file.seek(0)
    return file.read(_MOST_OUTPUT)


def _error_text(err: bytes) -> str:
    lines = [line.strip() for line in err.decode(errors="replace").splitlines()]
    told = [line for line in lines if line and not line.startswith("Signing data on")]
    return "".join(each if each.isprintable() else "?" for each in (told[0] if told else ""))[:300]
