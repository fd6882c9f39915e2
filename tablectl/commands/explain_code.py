"""``tablectl explain`` for the code of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.commands.output import Output
from tablectl.commands.request import CommandRequest
from tablectl.lint_rules import RULES
from tablectl.model.errors import ExitCode, UsageError
from tablectl.policies.own_rules import documentation_of, own_rules
from tablectl.policies.suggestions import nearest
from tablectl.reports.explain_document import CodeExplanation, document_of_code
from tablectl.reports.formats import ReportFormat


def explain_code_command(word: str, request: CommandRequest, out: Output, form: ReportFormat) -> ExitCode:
    """Explain a code, with its severity here. Returns the exit code."""
    rule = RULES.get(word.upper()) or next((documentation_of(each) for each in own_rules() if each.code == word), None)
    if rule is None:
        near = nearest(word.upper(), tuple(RULES))
        raise UsageError(
            f"{word} is not a finding code", f"did you mean {near}?" if near else _every_code(tuple(RULES))
        )
    setting = request.open(out).config.lint.get(rule.code)
    here = setting.severity if setting and setting.severity else rule.severity
    reason = setting.reason if setting else ""
    out.document(document_of_code(CodeExplanation(rule, here, reason)), form)
    return ExitCode.DONE


def _every_code(codes: Sequence[str]) -> str:
    return f"codes are {', '.join(codes)}"
