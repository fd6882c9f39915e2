"""Send notifications to the commands of ``notify:`` in ``tablectl.yaml``.

A notification that fails is reported and never changes the exit code. Commands get no shell: an argument list, and the
event as JSON on standard input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tablectl.commands.output import Output
from tablectl.model.errors import TablectlError, of_table
from tablectl.model.safe_text import printable
from tablectl.policies.config import Config, NotifyConfig
from tablectl.policies.read_config import BASE
from tablectl.reports.notification import Notification, SentNotification, for_command
from tablectl.reports.report_context import Context
from tablectl.support.json_text import write_json
from tablectl.support.processes import Invocation, ProcessLimits, run_captured
from tablectl.support.typed_json import json_form

_MOST = 20
"""Receivers that are told. More are a mistake."""
_MOST_LINES = 20
_LONGEST_LINE = 500
_MOST_BYTES = 65_536
"""Bytes of a command's output that are kept."""
_GRACE = 2.0
"""Seconds between asking a command to end and killing it."""


def send_notification(
    make: Callable[[], Notification | None],
    config: Config,
    context: Context,
    out: Output,
    environ: Mapping[str, str],
) -> None:
    """Tell every receiver of the event. Never raises."""
    notification = of_table("notification", make)
    if isinstance(notification, TablectlError):
        out.note(f"warning: no notification was sent: {notification.message}")
        return
    if notification is None:
        return
    wanted = [(number, each) for number, each in enumerate(config.notify, 1) if notification.event in each.events]
    if wanted and config.unmerged:
        out.note(
            "no notification was sent: this is a pull request, and without "
            f"{BASE} its own tablectl.yaml would decide which code runs"
        )
        return
    for number, each in wanted[:_MOST]:
        try:
            why = _run(each, for_command(notification, context), out, environ)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the work is done, whoever hears of it
            why = type(error).__name__
        if why:
            out.note(f"warning: notification {number} ({printable(each.command[0])}) failed: {why}")
    if len(wanted) > _MOST:
        out.note(f"warning: {len(wanted) - _MOST} notifications were not sent: at most {_MOST} are")


def _run(receiver: NotifyConfig, told: SentNotification, out: Output, environ: Mapping[str, str]) -> str:
    """Run a command and return why it failed. Its output is shown, up to a limit."""
    variables = {**environ, "TABLECTL_EVENT": told.event}
    command = Invocation(receiver.command, environ=variables, given=write_json(json_form(told)).encode() + b"\n")
    ran = run_captured(command, _MOST_BYTES, ProcessLimits(receiver.timeout, grace=_GRACE), merged=True)
    _show(ran.out, out)
    return f"it {ran.why}" if ran.why else ""


def _show(said: bytes, out: Output) -> None:
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    for line in lines[:_MOST_LINES]:
        out.note(f"| {line[:_LONGEST_LINE]}")
    if len(lines) > _MOST_LINES:
        out.note(f"| and {len(lines) - _MOST_LINES} more lines")
