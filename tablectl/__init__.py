"""Declarative table policies for Delta Lake: plan the settings that decide which Spark jobs fail, and apply them.

``tablectl.plan`` and ``tablectl.apply`` are the two commands as functions, for notebooks and orchestrators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tablectl.version import __version__

if TYPE_CHECKING:  # the functions are loaded on first use: `import tablectl` alone must cost next to nothing
    from tablectl.api import apply as apply
    from tablectl.api import plan as plan

__all__ = ["__version__", "apply", "plan"]


def __getattr__(name: str) -> Any:
    if name not in {"plan", "apply"}:
        raise AttributeError(f"module 'tablectl' has no attribute {name!r}")
    from tablectl import api  # noqa: PLC0415  # see above

    return getattr(api, name)
