"""Makes output inert: no terminal and no CI system interprets it as commands. The last step before any text is written.

The markers of CI systems, from their documentation: GitHub Actions acts on a line that begins with ``::`` after blanks,
and on ``##[`` anywhere in a line (actions/runner, ``src/Runner.Common/ActionCommand.cs``). Azure Pipelines acts on
``##vso[`` and ``##[``, TeamCity on ``##teamcity[``, GitLab and Travis on lines that begin with ``section_start:`` and
``travis_fold:``. The characters: control characters, C1, characters that change direction or hide text (UAX #9), line
separators, surrogates, tags.

The escapes stand for the same character in each format: a JSON string, a Spark SQL literal, HTML, XML.
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
_OF_MARKERS = ("##", "::", "ection_start:", "ection_end:", "ravis_fold:")
_CHARACTER = re.compile(f"[{_SENT}]")
_COLOURED = re.compile(rf"\x1b\[[0-9;]{{1,8}}m()|[{_SENT}]")


def escape_output(text: str, *, colour: bool = False) -> str:
    r"""Text or JSON with every active character or marker written as an escape (``\u0023``).

    With ``colour`` the colour sequences of ``reports.style`` are kept. Text from outside must then be printable
    already.
    """
    if colour:
        text = _COLOURED.sub(lambda found: found[0] if found[1] is not None else _escape(found[0]), text)
    else:
        text = _CHARACTER.sub(lambda found: _escape(found[0]), text)
    return _MARKER.sub(lambda found: found[0][:-1] + _escape(found[0][-1]), text) if _may_have_marker(text) else text


def escape_markup(text: str) -> str:
    """The same for HTML and XML, with character references. Characters that XML cannot represent must be
    removed first.
    """
    return _MARKER.sub(lambda found: f"{found[0][:-1]}&#{ord(found[0][-1])};", text) if _may_have_marker(text) else text


def _may_have_marker(text: str) -> bool:
    """Whether ``_MARKER`` may match. Most texts have none, and the pattern takes seven times longer to say so."""
    lower = text.lower() if text.isascii() else text.casefold().replace("ı", "i")  # `re` takes ı for i, and ſ for s
    return any(part in lower for part in _OF_MARKERS)


def _escape(char: str) -> str:
    """The JSON escape, in UTF-16: two escapes for a character outside the basic multilingual plane."""
    number = ord(char)
    if number < 0x10000:
        return f"\\u{number:04x}"
    high, low = divmod(number - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
