"""What Python 3.9 and 3.10 lack of the standard library. The modules that writers need run there (docs/guards.md)."""

from __future__ import annotations

import sys
from datetime import datetime, timezone

__all__ = ["UTC", "ParamSpec", "Self", "StrEnum", "parse_time"]

UTC = timezone.utc  # `datetime.UTC` came with Python 3.11

if sys.version_info >= (3, 11):
    from enum import StrEnum
    from typing import ParamSpec, Self
else:
    from enum import Enum

    from typing_extensions import ParamSpec, Self

    class StrEnum(str, Enum):
        """A text and a member; prints as the text."""

        __str__ = str.__str__


def parse_time(text: str) -> datetime:
    """A time in the form of ISO 8601 that ``json_text.py`` writes. Raises ``ValueError``."""
    return datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
