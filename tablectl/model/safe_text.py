"""Shows untrusted text to people: policies, logs and plan files can contain anything."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from tablectl.delta.credentials import scrub
from tablectl.delta.names import INVISIBLE

_SENT = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200c-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff" + INVISIBLE
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

    With ``colour`` the colour sequences of ``documents.style`` are kept. Text from outside must then be printable
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


LONGEST_VALUE = 10_000
"""The longest property value in changes, plans and reports, in characters. A longer value is replaced by its beginning
and a digest.
"""
_SHOWN = 100
_DIGITS = re.compile(r"([0-9]+)")
_CUT = re.compile(r".{100}… \([0-9,]+ characters, SHA-256 [0-9a-f]{32}\)", re.DOTALL)


def cut(value: str) -> str:
    """The unchanged value, or the beginning of a long value with its length and digest.

    The results are equal exactly if the values are, so long values can still be compared. Credentials are removed
    before the cut, because half of one has no form.
    """
    if len(value) <= LONGEST_VALUE:
        return value
    digest = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{scrub(value[:1000])[:_SHOWN]:<{_SHOWN}}… ({len(value):,} characters, SHA-256 {digest})"


def is_cut(value: str) -> bool:
    """Whether a value is a result of ``cut`` for a long value. The original cannot be recovered from it."""
    return _CUT.fullmatch(value) is not None


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def printable(text: str) -> str:
    """Text that cannot move the cursor or change colours, and in which no two names look the same: control characters,
    invisible characters and look-alikes are shown as escapes.
    """
    if text.isascii() and text.isprintable():
        return text
    marked = marked_places(text)
    return "".join(
        char.encode("unicode_escape").decode() if place in marked else char for place, char in enumerate(text)
    )


def marked_places(text: str) -> frozenset[int]:
    """Where a text has characters that readers cannot see, or take for others: control and invisible characters,
    variants of ASCII letters and digits (``NFKC``), and letters of other scripts in a Latin word.

    The last is the level "Highly Restrictive" of Unicode Technical Standard 39, section 5.2, applied to each word.
    """
    found = {place for place, char in enumerate(text) if not char.isprintable() or _INVISIBLE.match(char)}
    if text.isascii():
        return frozenset(found)
    word = list[int]()
    escapes = {place: each[0] for each in _SHOWN_BEFORE.finditer(text) for place in range(*each.span())}
    for place, char in enumerate(text):
        escape = escapes.get(place, "")
        kind = unicodedata.category(escape.encode().decode("unicode_escape") if escape else char)
        if kind[0] in "LM":
            word += [] if escape else [place]
        elif word:
            found |= _foreign(text, word)
            word = []
        if kind[0] in "LN" and not char.isascii() and not escape and _is_variant(char):
            found.add(place)
    return frozenset(found | _foreign(text, word))


def _is_variant(char: str) -> bool:
    """Whether a letter or digit is a variant of ASCII ones: fullwidth, mathematical, a ligature. Ordinals (``1ª``),
    exponents and circled digits are told apart.
    """
    form = unicodedata.decomposition(char).partition(" ")[0]
    shown_as_such = form in {"", "<super>", "<sub>", "<circle>", "<square>", "<fraction>"}
    return not (shown_as_such and form) and unicodedata.normalize("NFKC", char).isascii()


def _foreign(text: str, word: Sequence[int]) -> frozenset[int]:
    """The letters of a word that are not of its main script: Latin, if it has a Latin letter, or else the first one."""
    if all(text[place].isascii() for place in word):
        return frozenset()
    scripts = {place: script for place in word if (script := _script(text[place]))}
    main = "LATIN" if "LATIN" in scripts.values() else next(iter(scripts.values()), "")
    return frozenset(place for place, script in scripts.items() if script != main)


def _script(char: str) -> str:
    """The script of a letter by its name in Unicode's data (``CYRILLIC SMALL LETTER O``); empty for signs, and for the
    scripts of East Asia, which stand next to each other and to Latin.
    """
    first, _, rest = unicodedata.name(char, "").partition(" ")
    return first if "LETTER" in rest.split() and first not in _TOGETHER else ""


_TOGETHER = frozenset({"BOPOMOFO", "FULLWIDTH", "HALFWIDTH", "HANGUL", "HIRAGANA", "KATAKANA", "MODIFIER"})
_SHOWN_BEFORE = re.compile(r"\\(?:[nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})")
"""What ``printable`` wrote: an escape counts as its character, so that a second call changes nothing."""
_INVISIBLE = re.compile(f"[{INVISIBLE}]")


def value_text(value: str | tuple[str, ...] | None) -> str:
    """A value for people, without credentials. Text that is ambiguous or contains control characters is quoted."""
    if value is None:
        return "not set"
    if isinstance(value, tuple):
        return f"[{', '.join(printable(scrub(item)) for item in value)}]"
    value = scrub(value)
    plain = printable(value)
    odd = plain != value or not value or value != value.strip() or value == "not set"
    return printable(repr(value)) if odd else value


def time_text(milliseconds: int) -> str:
    """``2026-11-21 11:00:00 UTC``; empty if the time is unknown or out of range: writers can put any number
    into a log.
    """
    if milliseconds <= 0:
        return ""
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return ""


def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """A sort key that orders numbers in names by their value: ``t9`` before ``t10``.

    The key compares numbers as text after their length, so a name with millions of digits costs nothing special.
    """
    parts = _DIGITS.split(text.replace("`", ""))  # a quoted name that goes on comes after one that ends
    return tuple(
        (len(number := part.lstrip("0")) + 1, number) if index % 2 else (0, part) for index, part in enumerate(parts)
    )


def size_text(size: int) -> str:
    """A size in bytes for people: ``4.1 kB``."""
    value, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def minutes_text(seconds: float) -> str:
    """``5 min``, below a minute ``40 s``."""
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


_PYTHON = "(spark."
"""The start of each DataFrame write that ``operations`` renders. No SQL statement starts like this."""
_SQL = re.compile(r"'(?:[^'\\]|\\.)*(?:'|\\?\Z)|`[^`]*`|(?P<end>\n)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Code:
    """A statement. ``lines`` hold the statement unchanged: a name in a line can contain control characters."""

    language: Literal["sql", "python", "yaml", "diff", "text"]
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text for the engine, or for readers if it is Python."""
        return "\n".join(self.lines)

    def shown(self) -> tuple[str, ...]:
        """The lines for people: printable, with a semicolon after SQL."""
        *first, last = map(printable, self.lines)
        return (*first, last + ";" * (self.language == "sql"))


def read_code(text: str) -> Code:
    """Parses the text of a statement in a plan file or a report. The inverse of ``Code.text``."""
    if text.startswith(_PYTHON):
        return Code("python", tuple(text.split("\n")))
    lines, start = list[str](), 0
    for token in _SQL.finditer(text):
        if token["end"]:
            lines.append(text[start : token.start()])
            start = token.end()
    return Code("sql", (*lines, text[start:]))
