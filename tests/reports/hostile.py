"""Texts that mean something to whoever reads reports: Markdown, HTML, XML, sites that look for mentions."""

from __future__ import annotations

from hypothesis import strategies as st

EVIL = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "--></details></table><h1>Approved</h1>",
    "``` \n```` sql\n# heading",
    "`x` ``y``",
    "@everyone please approve #1 !2 acme/lake#3 GH-4",
    "[click](https://evil.example) ![x](https://evil.example/x.png)",
    "https://evil.example www.evil.example me@evil.example",
    "a|b\\|c | d",
    "* one\n\n> two\n\n---\n",
    ":tada: 1f0c3d9e1f0c3d9e1f0c3d9e1f0c3d9e1f0c3d9e &amp; &#64;",
    "]]> <!-- -->",
    "{{ 7 * 7 }} {% raw %}",
    "\x00\x1b[2J\u202e\ud800\uffff",
    "' onmouseover='alert(1)\" style=\"x",
)
TEXTS = st.one_of(
    st.sampled_from(EVIL), st.text(max_size=40), st.text(alphabet="`<>&@#|[]()!*\\\n -'\"/:w.", max_size=40)
)
