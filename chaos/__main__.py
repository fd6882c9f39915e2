"""``python -m chaos``: rounds with faults, ``races``, ``sabotage``, the ``summary`` of the results so far, or the cause
of a broken round: ``explain --seed 7 --cause harness --why "the probe gave up after 30 s"``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from chaos import results
from chaos.check import Violation
from chaos.harness import Harness
from chaos.races import race
from chaos.rounds import Outcome, Round
from chaos.sabotage import report, sabotage
from chaos.scenario import FAULTS, choose
from chaos.server import ROOT


def main() -> int:
    """Run rounds until their number or their time is over; 1 where one broke a promise."""
    asked = _arguments()
    # Whoever ends a long run does so with SIGTERM, and what it started must end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if asked.mode == "summary":
        print(results.summary(results.read(asked.results)))
        return 0
    if asked.mode == "explain":
        of = "races" if "races" in (asked.only or ()) else "faults"
        results.explain(asked.results, results.Explanation(of, asked.seed, asked.cause, asked.why))
        return 0
    if asked.mode == "sabotage":
        return 1 if report(sabotage(rounds=3 if asked.rounds is None else asked.rounds)) else 0
    modes = {asked.mode, "races"} if "races" in (asked.only or ()) else {asked.mode}
    unused = max(results.next_seed(asked.results, mode) for mode in modes)
    first = asked.seed if asked.seed is not None else unused
    deadline = time.monotonic() + asked.seconds if asked.seconds else None
    rounds = asked.rounds or (1 << 30 if deadline else 10)
    broken = 0
    with Harness(asked.work, asked.patience) as harness:
        for seed in range(first, first + rounds):
            if deadline is not None and time.monotonic() > deadline:
                break
            broken += _one(harness, asked, seed)
    print(f"{broken} of the rounds broke a promise" if broken else "every round kept every promise", flush=True)
    return 1 if broken else 0


def _one(harness: Harness, asked: argparse.Namespace, seed: int) -> bool:
    """A round, its line and its words; its folder stays where it broke a promise."""
    fault = asked.only[seed % len(asked.only)] if asked.only else None
    mode = "races" if "races" in (asked.mode, fault) else "faults"
    folder = asked.work / f"{mode}-{seed}"
    run: Callable[[], Outcome]
    if mode == "races":
        run = lambda: race(harness, seed, folder)  # noqa: E731
    else:
        run = lambda: Round(harness, choose(seed, fault), folder).run()  # noqa: E731
    outcome = run()
    results.append(asked.results, outcome.facts, outcome.violations)
    _say(seed, outcome)
    if not outcome.violations:
        if not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)
        return False
    only = f" --only {fault}" if fault and mode == "faults" else ""
    print(f"  kept: {folder}\n  again: python -m chaos {mode} --seed {seed} --rounds 1{only}", flush=True)
    return True


def _say(seed: int, outcome: Outcome) -> None:
    facts, violations = outcome.facts, outcome.violations
    words = f"{facts['fault']}: {', '.join(facts['tables'])}; exits {facts['exits']}; {facts['seconds']:g} s"
    print(f"{seed}: {'BROKEN' if violations else 'kept'}: {words}", flush=True)
    for each in violations[:_SHOWN]:
        print(f"  {_short(each)}", flush=True)


_SHOWN = 8


def _short(violation: Violation) -> str:
    return str(violation)[:400]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument(
        "mode", nargs="?", choices=("faults", "races", "sabotage", "summary", "explain"), default="faults"
    )
    parser.add_argument("--rounds", type=int, help="how many (default: 10, or as --seconds allows)")
    parser.add_argument("--seconds", type=float, help="begin no round after so many seconds")
    parser.add_argument("--seed", type=int, help="of the first round (default: the first unused one)")
    parser.add_argument(
        "--only", nargs="+", choices=(*FAULTS, "races"), help="this fault in every round; of several, each in turn"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=1.0,
        help="factor for time limits that are not promises and for the pauses of writers",
    )
    parser.add_argument("--cause", choices=results.CAUSES, help="of explain: what broke the last round of --seed")
    parser.add_argument("--why", help="of explain: the cause in a sentence")
    parser.add_argument("--keep", action="store_true", help="keep the folders of all rounds")
    parser.add_argument("--work", type=Path, default=ROOT / ".chaos", help="where tables and logs lie meanwhile")
    parser.add_argument("--results", type=Path, default=results.FILE, help="the file that lines are added to")
    asked = parser.parse_args()
    if asked.mode == "explain" and not (asked.seed is not None and asked.cause and asked.why):
        parser.error("explain needs --seed, --cause and --why")
    asked.work = asked.work.resolve()
    os.environ.pop("TABLECTL_STATE", None)
    return asked


if __name__ == "__main__":
    sys.exit(main())
