"""The steps of a job: each runs one command and reports the result to GitHub."""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from tablectl.applying.approval import policies_digest
from tablectl.catalogs.http_client import AnswerError
from tablectl.ci.base_branch import check_newest, save_base
from tablectl.ci.gitlab import note_step, reviewed_step
from tablectl.ci.job import CiJob, CommandResult
from tablectl.ci.post_comment import DEFAULT, addition, body_of, find_comment, marker, put_comment
from tablectl.ci.rest_api import open_github
from tablectl.ci.reviewed_plan import (
    ARCHIVE_BYTES,
    BY_HAND,
    CHOSEN,
    PLAN,
    ArtifactOrigin,
    artifact_name,
    find_reviewed,
    unpack,
)
from tablectl.commands.project import Project
from tablectl.commands.report_files import below_root
from tablectl.commands.user_files import read_plan, write_file
from tablectl.documents.style import plural
from tablectl.model.errors import ExitCode, InputError, LiveError, PlanFileError, TablectlError, UsageError, error_of
from tablectl.model.plan import Plan
from tablectl.model.safe_text import printable, value_text
from tablectl.planning.plan_file import check_environment, digest_of, load_plan
from tablectl.policies.effective_policy import policy_lines_of
from tablectl.policies.read_config import BASE, ENV, ignored_keys, load_config
from tablectl.reports.document_markdown import said
from tablectl.reports.report_context import Context
from tablectl.reports.sarif import problems_sarif
from tablectl.reports.table_groups import Weight, plan_groups

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_MOST_SAID = 10_000
"""The maximum length of an error in a comment, in characters."""
_MOST_ANNOTATIONS = 10
"""GitHub shows ten of a level per step, so the most important groups come first."""
_LONGEST_ANNOTATION = 1_000

_WAYS_OUT = {
    ExitCode.ERROR: "fix the error shown in the log and run this job again; completed tables are skipped",
    ExitCode.REFUSED: f"nothing was changed. Where the plan is stale, or all of it refused, {BY_HAND}",
    ExitCode.WINDOW: "nothing was changed: the window did not open (the report names the holder). Run this job again",
    ExitCode.PARTIAL: "run this job again, and the same plan finishes what is left. Tables that changed since the "
    f"plan, or are refused, want a new one: {BY_HAND}",
}


def base_step(job: CiJob) -> int:
    """Save the base branch's ``tablectl.yaml``, which decides everything that a branch may not. Output ``config`` is
    its path.

    The output is empty if the event has no branch to merge. Raises ``UsageError`` if the file cannot be read: without
    it, whoever pushed the branch would decide where the job's credentials are sent.
    """
    config = ""
    if job.base:
        config = str(save_base(job.base, job.environ, _new_folder(job, "base")).absolute())
    job.output(config=config)
    return ExitCode.DONE


def plan_step(job: CiJob) -> int:
    """Plan: write the files of the artifact, the summary, and the outputs. Pending changes are not a failure."""
    if job.base and not job.environ.get(BASE):
        raise UsageError(
            f"{BASE} is not set: the branch would decide where credentials go",
            "run the step `base` before, and give its output `config` to this one",
        )
    folder = _new_folder(job, "plan")
    for key in ignored_keys(Path(), job.environ):
        job.tell("warning", f"tablectl.yaml: `{key}` counts once it is merged; this plan takes it from the base branch")
    files = {form: folder / f"plan.{form}" for form in ("json", "md", "sarif", "html")}
    reports = [word for form in ("md", "sarif", "html") for word in ("--report", str(files[form]))]
    since = [f"--changed-since={job.given('changed_since')}"] if job.given("changed_since") else []
    ran = job.tablectl("plan", "--out", str(files["json"]), *reports, *since, *job.arguments)
    _summarize(job, "Plan", ran, files["md"], files["sarif"])
    plan = read_plan(files["json"]) if files["json"].exists() else None
    if plan is not None:
        _annotate(job, plan)
    job.output(
        exit_code=ran.code,
        changes=plan is not None and bool(plan.tables),
        artifact=artifact_name(job.name, job.pull_request),
        folder=folder,
        report=files["md"],
        sarif=files["sarif"] if files["sarif"].exists() else "",
        digest=digest_of(plan) if plan is not None else "",
    )
    if plan is not None and _digest(job, plan) != plan.policies:
        job.tell(
            "warning",
            "apply will refuse this plan: its policies are not those of the repository. Give values of variables as "
            "TABLECTL_VAR_…, and paths as `policies:` in tablectl.yaml, not as arguments",
        )
    return ran.code


def comment_step(job: CiJob) -> int:
    """Post the report of a plan or a run as a comment. If that fails it is only a warning: the run's page has the
    report.
    """
    subject = "apply" if job.given("mode") == "apply" else "plan"
    number = job.pull_request if subject == "plan" else job.number("pull_request")
    report = Path(job.given("report"))
    if number is None or not report.is_file():
        return ExitCode.DONE
    digest = job.given("digest") if subject == "plan" and _DIGEST.match(job.given("digest")) else ""
    text = report.read_text(encoding="utf-8", errors="replace")
    mark = marker(subject, job.name)
    try:
        github = open_github(job.environ, job.repository)
        old = find_comment(github, number, mark)
        before = old.body if old and old.by_us else ""
        added = addition(text, before, digest, job.given("artifact"), job.name) if subject == "plan" else ""
        url = put_comment(github, number, body_of(text, subject, job.name, job.address, digest, added), old)
    except (LiveError, UsageError) as error:
        refused = isinstance(error, AnswerError) and error.status == 403
        hint = "; the job needs `permissions: pull-requests: write`, which forks never have" if refused else ""
        job.tell(
            "warning", f"no comment could be written: {error.message}{hint}. The page of this run shows the report"
        )
        return ExitCode.DONE
    job.output(comment=url)
    return ExitCode.DONE


def find_step(job: CiJob) -> int:
    """Download the reviewed plan. Raises ``PlanFileError``, with what to do, if there is none."""
    _check_branch(job)
    origin = ArtifactOrigin(job.name, job.environ.get("GITHUB_SHA", ""), job.workflow, job.applied_branch)
    github = open_github(job.environ, job.repository)
    found = find_reviewed(github, origin, job.number("plan_run"))
    archive = github.download(f"actions/artifacts/{found.artifact}/zip", ARCHIVE_BYTES)
    folder = _new_folder(job, "reviewed")
    plan = unpack(archive, f"the plan of run {found.run}")
    check_newest(load_plan(plan, f"the plan of run {found.run}"), origin.commit, origin.branch, job.environ, BY_HAND)
    write_file(folder / PLAN, plan, private=True)  # a plan can hold values that reports hide
    job.output(run=found.run, pull_request=found.pull_request or "", digest=found.digest)
    of = f" of #{found.pull_request}" if found.pull_request else ""
    job.tell("notice", f"applying the plan{of} that run {found.run} made")
    return ExitCode.DONE


def apply_step(job: CiJob) -> int:
    """Apply the downloaded plan, if it is the reviewed one and matches the current policies."""
    _check_branch(job)
    plan_file = job.folder / "reviewed" / PLAN
    if not plan_file.is_file() or plan_file.is_symlink():
        raise PlanFileError("the plan is missing: the step `find` downloads it", BY_HAND)
    if any(each.partition("=")[0].startswith("--without") for each in job.arguments):
        raise UsageError("`arguments` has --without-policies", "a job has the policies: the plan is compared with them")
    plan = read_plan(plan_file)
    reviewed = job.given("digest")
    if not reviewed:
        raise UsageError("INPUT_DIGEST is not set", "give this step the output `digest` of the step `find`")
    if reviewed not in {CHOSEN, digest_of(plan)}:
        raise PlanFileError(
            f"the plan has the digest {digest_of(plan)[:12]}…, and the comment shows the plan {reviewed[:12]}…", BY_HAND
        )
    named = job.environ.get(ENV, "") if job.named_env is None else job.named_env
    check_environment(plan, named)
    check_policies(plan, _digest(job, plan))
    folder = _new_folder(job, "run")
    report = folder / "run.md"
    reports = [word for form in ("md", "html", "json") for word in ("--report", str(folder / f"run.{form}"))]
    ran = job.tablectl("apply", str(plan_file), *reports, *job.arguments)
    _summarize(job, "Apply", ran, report)
    job.output(exit_code=ran.code, artifact=f"{job.name}-run", folder=folder, report=report)
    if ran.code:
        ways = {int(code): text for code, text in _WAYS_OUT.items()}
        job.tell("error", f"tablectl apply ended with exit code {ran.code}: {ways.get(ran.code, 'see the log')}")
    return ran.code


def _check_branch(job: CiJob) -> None:
    """Raise ``UsageError`` on another branch than the one from which plans are applied: whoever started the workflow on
    it would decide policies and hooks, without a review.
    """
    if not job.is_applied:
        where = job.applied_branch or "a branch that the event does not name"
        raise UsageError(
            f"plans are applied on {where} alone, and this job runs on {job.environ.get('GITHUB_REF') or 'no branch'}",
            "run the workflow on that branch, or name another one as `branch`",
        )


def check_policies(plan: Plan, digest: str) -> None:
    """Raise ``PlanFileError`` if a plan was made from policies other than those that were merged."""
    if plan.policies != digest:
        raise PlanFileError(
            "the policies that were merged are not those that this plan was made of: another change was merged in "
            "between, or a variable has another value here",
            f"{BY_HAND}. Branches that must be up to date before they are merged keep this from happening",
        )


def drift_step(job: CiJob) -> int:
    """Report drift; the job fails if there is any."""
    folder = _new_folder(job, "drift")
    files = {form: folder / f"drift.{form}" for form in ("md", "sarif", "html")}
    reports = [word for file in files.values() for word in ("--report", str(file))]
    ran = job.tablectl("drift", *reports, *job.arguments)
    _summarize(job, "Drift", ran, files["md"], files["sarif"])
    job.output(
        exit_code=ran.code,
        changes=ran.code == ExitCode.CHANGES,
        artifact=f"{job.name}-drift",
        folder=folder,
        report=files["md"],
        sarif=files["sarif"] if files["sarif"].exists() else "",
    )
    if ran.code == ExitCode.CHANGES:
        job.tell(
            "error",
            "tables are not as declared: the report names the commits. Plan and apply to make them so again, or "
            "`tablectl drift --adopt` to declare what they are",
        )
    return ran.code


def lint_step(job: CiJob) -> int:
    """Show the findings on all tables on the page of the run; the job fails if one is an error."""
    folder = _new_folder(job, "lint")
    report = folder / "lint.md"
    env = [] if job.named_env is None else [f"--env={job.named_env}"]
    ran = job.tablectl("lint", "--report", str(report), *env)
    _summarize(job, "Lint", ran, report)
    job.output(exit_code=ran.code, folder=folder, report=report)
    return ran.code


STEPS: Mapping[str, Callable[[CiJob], int]] = {
    "base": base_step,
    "plan": plan_step,
    "comment": comment_step,
    "find": find_step,
    "apply": apply_step,
    "drift": drift_step,
    "lint": lint_step,
    "note": lambda job: note_step(job.environ, job.log),
    "reviewed": lambda job: reviewed_step(job.environ, job.log),
}


def run_step(name: str, job: CiJob) -> int:
    """Run a step by name and return its exit code. An error becomes an annotation with its hint."""
    try:
        return int(STEPS[name](job))
    except TablectlError as error:
        job.tell("error", f"{error.message}\nWhat to do: {error.hint}" if error.hint else error.message)
        job.summary(_output_block(f"tablectl {name}", str(error)))
        return error.exit_code
    except OSError as error:
        job.tell("error", f"{error.filename or name}: {error.strerror or error}")
        return ExitCode.ERROR
    except BaseException as error:  # noqa: BLE001  # see ``error_of``
        found = error_of(f"the step {name}", error)
        job.tell("error", f"{name}: {found.message}\nWhat to do: {found.hint}")
        return ExitCode.ERROR


def _new_folder(job: CiJob, part: str) -> Path:
    """An empty directory for a part of the job. Files of an earlier job on this machine are deleted."""
    folder = job.folder / part
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, mode=0o700)
    return folder


def _digest(job: CiJob, plan: Plan) -> str:
    """What the plan would have as ``policies`` if it was made of the repository's, with this job's variables."""
    return policies_digest(plan, _project(job, plan.env).policies())


def _project(job: CiJob, env: str | None) -> Project:
    """The repository, in an environment of ``tablectl.yaml`` and with this job's variables."""
    return Project(load_config(Path(), job.environ, env), environ=job.environ)


def _summarize(job: CiJob, title: str, ran: CommandResult, report: Path, sarif: Path | None = None) -> None:
    """Show the report of a command. For one that failed without a report, write what it said, and with ``sarif`` the
    problems of the policies.
    """
    if not report.exists():
        failed = f"{_output_block(f'{title}: failed', ran.err)}\n\n{marker(title.lower(), DEFAULT)}\n"
        report.write_text(failed, encoding="utf-8")
        if sarif is not None:
            # Annotate the problems of the policies at their lines. There is no file if something else failed.
            try:
                with suppress(UsageError):  # the environment does not exist, which was already reported
                    _project(job, job.named_env).policies()
            except InputError as error:
                sarif.write_text(
                    problems_sarif(error.problems, Context(root=below_root(Path().absolute()))), encoding="utf-8"
                )
    job.summary(report.read_text(encoding="utf-8"))


def _output_block(title: str, text: str) -> str:
    return f"**⛔ {title}**\n\n{said(text[-_MOST_SAID:].strip() or 'nothing was said')}"


def _annotate(job: CiJob, plan: Plan) -> None:
    """Print pending changes as annotations on the lines of the policies: one per group of equal changes. They need no
    code scanning, which private repositories often lack. Refusals are results of the SARIF file.

    Without policies that can be read, print none.
    """
    try:
        project = _project(job, plan.env)
        specs = project.policies()
    except TablectlError:
        return
    masked = project.mask.plan(plan)
    groups = [each for each in plan_groups(masked) if each.weight is not Weight.REFUSED][:_MOST_ANNOTATIONS]
    context = Context(
        root=below_root(Path().absolute()), sources=policy_lines_of(specs, [each.first.name for each in groups])
    )
    for group in groups:
        source = context.source(group.first.name, group.changes[0].id)
        if source and source.line and not posixpath.isabs(source.file):
            path = posixpath.normpath(posixpath.join(context.root, source.file))
            level = "warning" if group.weight <= Weight.IRREVERSIBLE else "notice"
            # What a group changes and what it does to others, in a few lines
            count = f" and {plural(len(group.tables) - 1, 'more table')}" if len(group.tables) > 1 else ""
            changes = "; ".join(
                f"{each.id}: {value_text(each.before)} → {value_text(each.after)}" for each in group.changes
            )
            effects = "; ".join(each.text for each in group.effects)
            text = f"{group.weight.word}: {group.first.name}{count}\n{changes}\n{effects}"
            job.annotate(level, "\n".join(map(printable, text[:_LONGEST_ANNOTATION].split("\n"))), path, source.line)
