"""A document as SARIF 2.1.0: annotations on the lines of the policies. No schema is needed to write it.

The most severe results come first, because viewers show a limited number (GitHub shows 5,000 and accepts 25,000).
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tablectl.documents.document import Document, Level, Result
from tablectl.lint_rules import RULES as CODES
from tablectl.lint_rules.rule import LintRule
from tablectl.model.errors import Problem
from tablectl.model.safe_text import printable
from tablectl.planning.lint import Linted
from tablectl.policies.read_config import FILE
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.report_context import Context
from tablectl.reports.result_documents import lint_results, problem_results
from tablectl.support.json_text import write_json
from tablectl.version import __version__

MOST = 25_000
"""The maximum number of results in one file."""
_PARAGRAPH = "\n\n"
_LONGEST = 4_000
"""The maximum length of one message, in characters."""
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Sequence[Level] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class SarifRule:
    """A kind of result."""

    id: str
    name: str
    level: Level
    short: str
    help: str
    """Markdown."""

    @classmethod
    def of(cls, code: LintRule) -> SarifRule:
        """The rule of a lint code, including its page."""
        page = f"{code.breaks}\n\n**Why.** {code.why}\n\n**How to fix.** {code.fix}\n\nSource: {code.source}."
        return cls(code.code, code.name, code.severity, code.title, page)


RULES: Mapping[str, SarifRule] = {
    rule.id: rule
    for rule in (
        SarifRule(
            "invalid",
            "Invalid",
            "error",
            "The file is not valid",
            "Policies and configuration are checked before any table is read. The message says what is wrong and "
            "how to fix it.",
        ),
        SarifRule(
            "refused",
            "Refused",
            "error",
            "The table cannot take a change",
            "Nothing on this table changes; other tables are applied. The message says why and how to fix it.",
        ),
        SarifRule(
            "unreadable",
            "Unreadable",
            "error",
            "The table cannot be read",
            "Nothing is planned for a table whose log cannot be read. Check its name, its location, and the "
            "permissions of the plan job.",
        ),
        SarifRule(
            "drift",
            "Drift",
            "warning",
            "The table differs from its policy",
            "It was changed outside tablectl, or the policy was never applied. `tablectl apply` restores the declared "
            "values; `tablectl drift --adopt` writes the live values into the policy.",
        ),
        SarifRule(
            "stale",
            "Stale",
            "error",
            "The table changed since the plan",
            "A value that the plan depends on was changed, so the apply stopped at this table. Plan again, and "
            "have the new plan reviewed.",
        ),
        SarifRule(
            "window",
            "WindowNotOpened",
            "error",
            "The window could not be opened",
            "Another apply holds the table, its writers did not finish in time, a hook failed, or the calendar does "
            "not allow it now. Run the same command again, or with `--wait 30m`. Or a gate may still be shut after "
            "the run: the result says what opens it.",
        ),
        SarifRule(
            "failed",
            "Failed",
            "error",
            "The apply failed",
            "A statement, the lease or a read failed, or the table did not verify. Run the same command again: it "
            "continues from the current state of the table.",
        ),
        SarifRule(
            "undone",
            "Undone",
            "warning",
            "An applied change was reverted",
            "The change was applied and verified, then others changed it. `tablectl plan` shows the current value.",
        ),
        SarifRule(
            "merged",
            "MergedBesides",
            "note",
            "A merge changes more than settings",
            "Upkeep, locks, tags, windows and consents hold as soon as the policies are merged; no apply makes them.",
        ),
        SarifRule(
            "possible-failure",
            "PossibleFailure",
            "warning",
            "A writer may have failed",
            "The apply did not wait for it, or it has no guard. It fails once, and its data stays correct; run it "
            "again. `tablectl.guard` around a write makes an apply wait for it.",
        ),
    )
} | {code: SarifRule.of(rule) for code, rule in CODES.items()}
"""Every kind of result by id. Ids are stable."""


def rule_of(id: str) -> SarifRule:  # noqa: A002
    """The rule with an id. A plan of another tablectl version may contain findings unknown to this one."""
    help_text = "The message says what it found."
    return RULES.get(id) or SarifRule(
        printable(id), "Finding", "note", "A finding of a rule of your own, or of another version", help_text
    )


def document_sarif(document: Document, context: Context) -> str:
    """The refusals, failures and findings of a document. Changes that are only pending are not results."""
    category = _category(document.subject.lower(), document.env)
    return _log(document.programs.results(), context, category, failed=document.programs.failed)


def findings_sarif(linted: Linted, context: Context, verb: str) -> str:
    """The findings of a command that has no other report."""
    return _log(lint_results(linted), context, _category(verb), failed=bool(linted.failures))


def problems_sarif(problems: Sequence[Problem], context: Context) -> str:
    """Problems in policies and configuration; a file without results if there are none."""
    return _log(problem_results(problems), context, _category("validate"), failed=bool(problems))


def _category(verb: str, env: str = "") -> str:
    """The category of the file: an upload replaces the one of the same command in the same environment."""
    return f"tablectl/{verb}/{env}/" if env else f"tablectl/{verb}/"


def _rank(result: Result) -> int:
    """Lower is worse."""
    return _LEVELS.index(result.level or rule_of(result.rule).level)


def _log(results: Iterable[Result], context: Context, category: str, *, failed: bool) -> str:
    ranked = sorted(results, key=_rank)
    shown = ranked[:MOST]
    used = list(dict.fromkeys(result.rule for result in shown))
    invocation: dict[str, Any] = {"executionSuccessful": not failed}
    if len(ranked) > MOST:
        text = f"{len(ranked) - MOST} results are left out, the least severe of {len(ranked)}: no file may hold more."
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    run = {
        "tool": {
            "driver": {
                "name": "tablectl",
                "version": __version__,
                "rules": [_rule(rule_of(rule)) for rule in used],
            }
        },
        "automationDetails": {"id": category},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(each, used.index(each.rule), context) for each in shown],
    }
    return write_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(rule: SarifRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.short},
        "fullDescription": {"text": f"{rule.short}. {rule.help.partition(_PARAGRAPH)[0]}"},
        "help": {"text": rule.help.replace("`", "").replace("**", ""), "markdown": rule.help},
        "defaultConfiguration": {"level": rule.level},
    }


def _result(result: Result, index: int, context: Context) -> dict[str, Any]:
    about = (result.rule, result.table, result.change) if result.table else (result.rule, result.message)
    identity = "\0".join(about).encode(errors="backslashreplace")
    ignored = {"suppressions": [{"kind": "external", "justification": printable(result.ignored)}]}
    return {
        "ruleId": result.rule,
        "ruleIndex": index,
        "level": result.level or rule_of(result.rule).level,
        "message": {"text": _message(f"{result.table}: {result.message}" if result.table else result.message)},
        "locations": [_location(result, context)],
        "partialFingerprints": {"tablectl/v1": hashlib.sha256(identity).hexdigest()},
        **(ignored if result.ignored else {}),
    }


def _message(text: str) -> str:
    """Text without placeholders and links (SARIF 3.11.5, 3.11.6)."""
    lines = "\n".join(map(printable, text.split("\n")))
    shown = lines if len(lines) <= _LONGEST else f"{lines[:_LONGEST]}…"
    return shown.replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _location(result: Result, context: Context) -> dict[str, Any]:
    """The line that declares the change. GitHub rejects results without a file, so there always is one."""
    source = result.source or context.source(result.table, result.change) or SourceFile(FILE, 1, 1)
    physical: dict[str, Any] = {"artifactLocation": _artifact(source.file, context.root)}
    if source.line:
        physical["region"] = {"startLine": source.line, "startColumn": max(source.column, 1)}
    if not result.table:
        return {"physicalLocation": physical}
    table = {"fullyQualifiedName": printable(result.table), "kind": "resource"}
    return {"physicalLocation": physical, "logicalLocations": [table]}


def _artifact(file: str, root: str) -> dict[str, str]:
    """A path relative to the root of the repository, if possible: paths of this machine mean nothing elsewhere."""
    if posixpath.isabs(file):
        return {"uri": f"file://{_quoted(file)}"}
    return {"uri": _quoted(posixpath.normpath(posixpath.join(root, file))), "uriBaseId": "%SRCROOT%"}


def _quoted(path: str) -> str:
    return quote(path.encode(errors="backslashreplace"), safe="/-._~")
