"""``tablectl explain TABLE``. It reads no live table, so it loads few modules."""

from __future__ import annotations

from tablectl.attributes.policy import OWNED_KEYS, VALUE_TYPES, declarable_keys
from tablectl.commands.output import Output
from tablectl.commands.request import CommandRequest
from tablectl.delta.dialects import dialect_of
from tablectl.model.errors import ExitCode, UsageError
from tablectl.policies.effective_policy import Explanation, explain, parse_name
from tablectl.policies.suggestions import nearest
from tablectl.project import Project
from tablectl.reports.explain_document import RuntimeNeed, document_of_explanation
from tablectl.reports.formats import ReportFormat


def explain_key_command(key: str, request: CommandRequest, out: Output, form: ReportFormat) -> ExitCode:
    """Explain a table property."""
    # The conflict rules take longer to load than the rest of this command.
    from tablectl.planning.explain_property import explain_property  # noqa: PLC0415
    from tablectl.reports.explain_document import document_of_property  # noqa: PLC0415

    dialect = request.open(out).dialect
    about = explain_property(key, dialect)
    if about is None:
        near = nearest(key, (*OWNED_KEYS, *declarable_keys(dialect)))
        hint = f"did you mean {near}?" if near else "keys of your own have no meaning to Delta"
        raise UsageError(f"{key} is not a property known to Delta", hint)
    out.document(document_of_property(about), form)
    return ExitCode.DONE


def _needs(found: Explanation, project: Project) -> dict[str, tuple[RuntimeNeed, ...]]:
    """What each value needs of the Databricks Runtime."""
    from tablectl.lint_rules.products import needs_of_value  # noqa: PLC0415  # only for that dialect

    given = {each.key: each.given.value for each in found.resolved if each.given}
    truncates = given.get("truncate_history") == "true"
    needs: dict[str, tuple[RuntimeNeed, ...]] = {}
    for each, value in given.items():
        name, _, key = each.partition(".")
        if name in VALUE_TYPES:
            known = needs_of_value(name, key, value, truncates=truncates)
            needs[each] = tuple(RuntimeNeed.of(one, project.runtime) for one in known)
    return needs


def explain_command(table: str, request: CommandRequest, out: Output, form: ReportFormat) -> ExitCode:
    """Show what the policies declare for a table."""
    project = request.open(out)
    name = parse_name(table, project.catalog, project.dialect)
    try:
        found = explain(project.policies_about(name, request.paths), table, project.catalog, project.dialect)
    except UsageError:  # the names in the other files may be meant
        found = explain(project.policies(request.paths), table, project.catalog, project.dialect)
    needs = _needs(found, project) if dialect_of(project.dialect).catalog_settings else {}
    out.document(document_of_explanation(found, needs), form)
    return ExitCode.DONE
