"""Tokens that an environment gives."""

from __future__ import annotations

from collections.abc import Mapping

from tablectl.model.errors import UsageError


def token_of(environ: Mapping[str, str], variable: str) -> str:
    """The token in a variable, without space around it; empty if there is none.

    Raises ``UsageError`` for characters that no header of HTTP can carry. The text is not shown: it can be a secret
    that was pasted with a line break.
    """
    token = environ.get(variable, "").strip()
    if not token.isprintable() or not token.isascii():
        raise UsageError(f"{variable} holds no token: it has characters that no token has", "set it again, on one line")
    return token
