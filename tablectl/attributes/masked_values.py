"""The values that ``reports.mask`` hides: property keys by glob, and the attributes of such keys."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

from tablectl.attributes.policy import OWNED

HIDDEN = "••••••"
_BEFORE_KEY = ("access", "account", "api", "auth", "encrypt", "master", "private", "service", "shared", "sign")
SECRET_KEYS = (
    *("*password*", "*passwd*", "*passphrase*", "*secret*", "*token*", "*credential*"),
    *(f"*{word}*key*" for word in _BEFORE_KEY),
)
"""The default of ``reports.mask``: keys that look like secrets. No key that Delta knows is among them, and no key whose
name is that of columns, such as ``primary_key`` or ``partition.keys``.
"""
_OWNERS = frozenset(OWNED.values())


@dataclass(frozen=True)
class MaskedKeys:
    """Globs over property keys (``*password*``, ``owner.*``), without regard to letter case."""

    patterns: tuple[str, ...] = ()

    @cached_property
    def _keys(self) -> re.Pattern[str]:
        return re.compile("|".join(translate(each) for each in self.patterns), re.IGNORECASE)

    @cached_property
    def _attributes(self) -> frozenset[str]:
        return frozenset(attribute for key, attribute in OWNED.items() if self.hides(key))

    def hides(self, key: str) -> bool:
        """Whether the values of a property are hidden."""
        return bool(self.patterns) and self._keys.match(key) is not None

    def hides_value(self, attribute: str, key: str) -> bool:
        """Whether the values of an attribute are hidden. ``key`` is that of a change."""
        of_property = key and attribute not in _OWNERS
        return bool(self.patterns) and (self.hides(key) if of_property else attribute in self._attributes)


NO_MASK = MaskedKeys()
