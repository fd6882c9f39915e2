"""Maintainers: the pictures of a review in the README, ``python -m tools.comment_picture`` (needs chromium,
pngquant and Debian's fonts-noto-core and fonts-noto-color-emoji).

Both show ``tests/golden/review-lockout.md``, the comment of a real plan, as GitHub shows it in a pull request, in light
and in dark colours. The colours are those of GitHub's Primer (https://primer.style/foundations/color).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
COMMENT = ROOT / "tests" / "golden" / "review-lockout.md"
PICTURES = ROOT / "docs" / "images"
_SIZE = (920, 742)
_THEMES = {
    "light": {
        "page": "#ffffff",
        "text": "#1f2328",
        "soft": "#59636e",
        "line": "#d1d9e0",
        "fill": "#f6f8fa",
        "link": "#0969da",
    },
    "dark": {
        "page": "#0d1117",
        "text": "#f0f6fc",
        "soft": "#9198a1",
        "line": "#3d444d",
        "fill": "#151b23",
        "link": "#4493f8",
    },
}
_PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 12px; background: {page}; color: {text}; font: 14px/1.5 "Noto Sans", "DejaVu Sans", sans-serif; }}
.box {{ border: 1px solid {line}; border-radius: 6px; }}
.head {{ background: {fill}; color: {soft}; padding: 8px 16px; border-bottom: 1px solid {line}; }}
.head b {{ color: {text}; }}
.body {{ padding: 4px 16px; }}
.body > p {{ margin: 10px 0; }}
table {{ border-collapse: collapse; font-size: 13px; }}
th, td {{ border: 1px solid {line}; padding: 6px 10px; text-align: left; vertical-align: top; }}
code {{ background: {fill}; border-radius: 6px; padding: 2px 5px; font: 12px "DejaVu Sans Mono", monospace; }}
a {{ color: {link}; text-decoration: none; }}
summary {{ margin: 8px 0; }}
</style><div class="box">
<div class="head"><b>tablectl</b> commented on <i>Row ids for customers, an owner for orders</i></div>
<div class="body">{comment}</div></div>"""


def page(comment: str, theme: str) -> str:
    """The comment as a page of HTML."""
    return _PAGE.format(comment=MarkdownIt("commonmark", {"html": True}).render(comment), **_THEMES[theme])


def main() -> None:
    """Write both pictures."""
    browser, smaller = shutil.which("chromium"), shutil.which("pngquant")
    if browser is None or smaller is None:
        sys.exit("apt-get install chromium pngquant fonts-noto-core fonts-noto-color-emoji")
    PICTURES.mkdir(exist_ok=True)
    width, height = _SIZE
    with tempfile.TemporaryDirectory() as folder:
        for theme in _THEMES:
            source, picture = Path(folder, f"{theme}.html"), PICTURES / f"review-{theme}.png"
            source.write_text(page(COMMENT.read_text(encoding="utf-8"), theme), encoding="utf-8")
            arguments = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=1.5"]
            profile = f"--user-data-dir={folder}/profile"
            size = f"--window-size={width},{height}"
            command = [browser, *arguments, profile, size, f"--screenshot={picture}", source.as_uri()]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            subprocess.run([smaller, "--force", "--output", str(picture), "64", str(picture)], check=True, timeout=60)
            print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
