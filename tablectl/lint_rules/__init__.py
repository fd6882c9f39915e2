"""The lint rules. A rule is a ``LintRule`` in any module of this package: its page, its severity and its check. Codes
are stable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from tablectl.delta.names import TableName, matches
from tablectl.lint_rules.rule import LintRule
from tablectl.model.plan import Severity
from tablectl.model.table import LiveTable

_ORDER = "PLBRD"
"""The first letters of the codes in the order of the documentation."""


def _rules() -> Iterator[LintRule]:
    for module in iter_modules(__path__):
        members = vars(import_module(f"{__name__}.{module.name}")).values()
        yield from (each for each in members if isinstance(each, LintRule))


RULES: Mapping[str, LintRule] = MappingProxyType(
    {rule.code: rule for rule in sorted(_rules(), key=lambda rule: (_ORDER.index(rule.code[0]), rule.code))}
)
"""Every rule by code, in documentation order."""


@dataclass(frozen=True, slots=True)
class LintSetting:
    """The setting of one code in ``lint:`` of the configuration."""

    severity: Severity | None = None
    """``None`` only until the configuration is checked."""
    reason: str = ""
    tables: tuple[str, ...] = ()
    """Globs over table names, as in ``--select``; empty means every table."""

    def concerns(self, table: TableName) -> bool:
        """Whether the setting applies to a table."""
        return not self.tables or any(matches(table, glob) for glob in self.tables)


OwnChecks = Callable[[LiveTable], Iterable[tuple[str, str]]]
"""The rules of your own about one table: the code and the message of each finding."""


def _no_checks(_live: LiveTable) -> tuple[tuple[str, str], ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Severities:
    """The severity of each code in a repository, and the rules that it adds."""

    settings: Mapping[str, LintSetting] = field(default_factory=dict)
    own: OwnChecks = _no_checks
    """Bound to the policy of one table (``planning.lint.with_own_rules``)."""

    def of(self, code: str, table: TableName) -> tuple[Severity, str]:
        """The severity of a code on a table, and the configured reason; empty if none is given."""
        setting = self.settings.get(code)
        if setting is None or setting.severity is None or not setting.concerns(table):
            return (RULES[code].severity if code in RULES else "warning"), ""
        return setting.severity, setting.reason


DEFAULT_SEVERITIES = Severities()
