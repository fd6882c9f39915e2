"""Output that no terminal and no CI system obeys: the last step before text leaves, whoever made it.

Markers of CI systems, by their documents: GitHub Actions takes a line that begins with ``::`` after blanks, and
``##[`` anywhere in a line (actions/runner, ``src/Runner.Common/ActionCommand.cs``); Azure Pipelines ``##vso[`` and
``##[``; TeamCity ``##teamcity[``; GitLab and Travis lines that begin with ``section_start:`` and ``travis_fold:``.
Characters: controls, C1, what turns or hides text (UAX #9), line separators, half characters, tags.

The escapes mean the same character to whoever reads the format: a JSON string, a literal of Spark SQL, HTML, XML.
"""

from __future__ import annotations

import re

_SENT = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200c-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff"
)
_MARKER = re.compile(
    r"#(?=(?:vso|teamcity)?\[)(?<=##)|(?<![^\n])[^\S\n]*(?::(?=:)|s(?=ection_(?:start|end):)|t(?=ravis_fold:))",
    re.IGNORECASE,
)
_CHARACTER = re.compile(f"[{_SENT}]")
_COLOURED = re.compile(rf"\x1b\[[0-9;]{{1,8}}m()|[{_SENT}]")


def inert(text: str, *, colour: bool = False) -> str:
    r"""Text or JSON in which what would be obeyed is written as an escape (``\u0023``). With ``colour`` the sequences
    of ``reports.style`` stay, so text of others must have been made printable before.
    """
    if colour:
        text = _COLOURED.sub(lambda found: found[0] if found[1] is not None else _escape(found[0]), text)
    else:
        text = _CHARACTER.sub(lambda found: _escape(found[0]), text)
    return _MARKER.sub(lambda found: found[0][:-1] + _escape(found[0][-1]), text)


def inert_markup(text: str) -> str:
    """The same for HTML and XML, with references. Characters that XML cannot hold must be gone before."""
    return _MARKER.sub(lambda found: f"{found[0][:-1]}&#{ord(found[0][-1])};", text)


def _escape(char: str) -> str:
    """As UTF-16, in which JSON writes what lies outside of the first plane."""
    number = ord(char)
    if number < 0x10000:
        return f"\\u{number:04x}"
    high, low = divmod(number - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
