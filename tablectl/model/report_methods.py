"""What results can do in a notebook: show themselves, and become reports."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from tablectl.model.errors import UsageError


class Reports(Protocol):
    """What makes reports of results: ``tablectl/commands/notebook.py``."""

    def report(self, result: Any, form: str) -> str:
        """A result as a report in a format."""

    def fragment(self, result: Any) -> str:
        """The summary of a result for a notebook's cell."""

    def save(self, result: Any, where: Any) -> None:
        """Write a report."""


class ReportMethods:
    """A result with reports: a plan, a run, drift, the status of a lake, or advice.

    Results are records below the reports. So ``tablectl/__init__.py``, whose functions return them, sets ``reports``.
    """

    __slots__ = ()
    reports: ClassVar[Reports | None] = None

    def __repr__(self) -> str:
        """The type and the number of tables. Notebooks and logs keep this text, so it has no names or values."""
        count = len(getattr(self, "tables", ()))
        return f"{type(self).__name__}({count} table{'s' * (count != 1)})"

    def __str__(self) -> str:
        """The report as text, for ``print``."""
        return repr(self) if self.reports is None else self.reports.report(self, "text")

    def to_markdown(self) -> str:
        """The report for a pull request."""
        return self._reports().report(self, "markdown")

    def to_html(self) -> str:
        """The report as a page of its own."""
        return self._reports().report(self, "html")

    def save(self, path: Any) -> None:
        """Write a report. Its name sets the format: ``.txt``, ``.json``, ``.md``, ``.sarif``, ``.xml``, ``.html``.

        A plan saved as ``.json`` is a plan file, which ``apply`` takes. Raises ``UsageError`` for another name.
        """
        self._reports().save(self, path)

    def _reports(self) -> Reports:
        if self.reports is None:
            raise UsageError("the reports of a result are not loaded", "run `from tablectl import plan` first")
        return self.reports

    def _repr_html_(self) -> str:
        """The summary that a notebook shows."""
        return self._reports().fragment(self)
