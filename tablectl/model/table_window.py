"""The window settings of one table, which a policy declares over those of the configuration (docs/window.md)."""

from __future__ import annotations

from tablectl.frozen import frozen
from tablectl.model.calendar import Calendar, parse_rule


@frozen(kw_only=True)
class TableWindow:
    """How the protected window of one table differs from the configuration's."""

    drain: int | None = None
    """Seconds that writers have to finish each time the gate becomes stricter; ``None`` for the configuration's."""
    allow: tuple[str, ...] | None = None
    """The periods in which the window may open, as ``parse_rule`` reads them. They replace the allow rules of the
    configuration; ``None`` keeps these.
    """
    deny: tuple[str, ...] = ()
    """Periods in which the window may not open, in addition to the deny rules of the configuration."""

    def over(self, calendar: Calendar) -> Calendar:
        """The calendar of the table, from that of the configuration."""
        allow = calendar.allow if self.allow is None else tuple(map(parse_rule, self.allow))
        return Calendar(allow=allow, deny=(*calendar.deny, *map(parse_rule, self.deny)))
