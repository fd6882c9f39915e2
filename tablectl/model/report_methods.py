"""What results can do in a notebook: show themselves, and become reports.

Results are records below the reports, so the methods look up ``tablectl.notebook`` when they are called.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class ReportMethods:
    """A result with reports: a plan, a run, drift, the status of a lake, or advice."""

    __slots__ = ()

    def __repr__(self) -> str:
        """The type and the number of tables. Notebooks and logs keep this text, so it has no names or values."""
        count = len(getattr(self, "tables", ()))
        return f"{type(self).__name__}({count} table{'s' * (count != 1)})"

    def to_markdown(self) -> str:
        """The report for a pull request."""
        return _call("report", self, "markdown")

    def to_html(self) -> str:
        """The report as a page of its own."""
        return _call("report", self, "html")

    def save(self, path: Any) -> None:
        """Write a report. Its name sets the format: ``.txt``, ``.json``, ``.md``, ``.sarif``, ``.xml``, ``.html``.

        A plan saved as ``.json`` is a plan file, which ``apply`` takes. Raises ``UsageError`` for another name.
        """
        import_module("tablectl.notebook").save(self, path)

    def _repr_html_(self) -> str:
        """The summary that a notebook shows."""
        return _call("fragment", self)


def _call(function: str, *arguments: object) -> str:
    text = getattr(import_module("tablectl.notebook"), function)(*arguments)
    assert isinstance(text, str)
    return text
