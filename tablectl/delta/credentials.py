"""Finds credentials in locations and in other text, and removes them.

Azure writes a container before the host (``abfss://container@account/path``), so for Azure a name before the ``@`` is
not a credential, but a name with a colon is. Signed queries are recognised by the parameters that the clouds document:
AWS Signature Version 4 and 2, Azure shared access signatures, Google V4 signed URLs. Tokens are recognised by the
prefixes that their makers publish for secret scanners (for example docs.github.com, "Supported secret scanning
patterns"), other secrets by the name to which they are assigned. References to secrets, such as
``{{secrets/scope/key}}``, are not secrets.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

HIDDEN = "…"
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_RUN = re.compile(r"(?<![^\s'\"`@])[^\s'\"`@]+@(?:[^\s'\"`@/]+@)*")
"""Text up to an ``@``, or up to the last of several before a slash: a password can contain one. Only there are users
looked for, so that each character is read a bounded number of times."""
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30})://")
_USER = re.compile(r"[^/@]*:(?!\d{1,5}/)|[^/@:]+@")
"""The password can contain slashes that should have been encoded. A port is followed by a path."""
_NAMES = (
    r"sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|awsaccesskeyid|x-goog-signature|"
    r"x-goog-credential|googleaccessid|access[-_]?key(?:[-_]?id)?|secret(?:[-_]?(?:access[-_]?)?key)?|account[-_]?key|"
    r"shared[-_]?access[-_]?(?:signature|key)|sas[-_]?token|(?:access|session|auth|security|id)?[-_]?token|"
    r"(?:ssl|key|trust)?(?:store)?[-_]?pass(?:word|wd|phrase)|pwd|credential|api[-_]?key"
)
_PARAMETER = re.compile(rf"(?P<name>(?:[?&;]|%3[fb]|%26)(?:{_NAMES})(?:=|%3d))(?P<value>[^\s'\"`&;]*)", re.IGNORECASE)

_WORD = r"pass(?:word|wd|phrase)|(?<![a-z])(?:pass|pw)|pwd"
_KEY = (
    r"(?:access|account|api|auth|encrypt(?:ion)?|master|private|secret|service|shared|sign(?:ing)?|storage|hmac)"
    r"[-_. ]?(?:access[-_. ]?)?key(?:[-_.]?(?:id|value|data|base64|pem)|(?:\.[a-z0-9-]{1,63}){2,8})?"
)
_ASSIGNED_TO = rf"(?:(?P<sure>{_WORD})|{_KEY}|token|secret|credentials|authorization|private[-_]?key)"
_ASSIGNED = re.compile(
    rf"{_ASSIGNED_TO}(?:\\{{0,3}}[\"'])?(?P<sign>\s{{0,3}}(?:=>|[=:])\s{{0,3}}|</name>\s{{0,99}}<value>|>"
    r"|(?<=[\"']),?\s{1,3}[\"']?value[\"']?\s{0,3}[=:]\s{0,3})"
    r"(?:(?P<quote>\\{0,3}[\"'])(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\\]))*)"
    r"|(?P<scheme>(?:basic|bearer|digest|negotiate|token)\s{1,3})?(?P<bare>[^\s'\"`&;<]+))",
    re.IGNORECASE | re.DOTALL,
)
"""A name of a secret, and what is assigned to it: in JSON, YAML, XML, properties, connection strings and JAAS."""
_ASSIGNED_WORDS = ("pass", "pw", "key", "token", "secret", "credentials", "authorization")
_REFERENCE = re.compile(
    r"[\[({<?%*•…\\]|\$[{(]|@microsoft\.keyvault|arn:|projects/|(?:env|file|keyvault|op|secret|ssm|vault):"
    r"|[a-z]{2,10}://|/[a-z._-]+/|(?:declared|disabled|enabled|false|hidden|masked|none?|not|null|off|on|optional"
    r"|redacted|required|true|unset|xxx+|yes)(?![a-z0-9])",
    re.IGNORECASE,
)
"""What stands for a secret that is elsewhere, or for none. Secrets in a URL are found in the URL."""
_MIXED = re.compile(r"[A-Za-z][^\s]{0,99}[0-9]|[0-9][^\s]{0,99}[A-Za-z]")
_END = re.compile(r"\s*(?:[\n,;}\]\)\"'`]|\Z)")
_OPTION = re.compile(
    rf"(?P<name>(?<![\w-])(?:--(?:[a-z]{{1,20}}-){{0,2}}(?:{_WORD}|token|secret|{_KEY})|--user|-u)[ =]\s{{0,2}})"
    r"(?P<value>[^\s'\"`=<$-][^\s'\"`]*)",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?P<name>(?<!\w)login\s{1,3}[^\s'\"`]{1,99}\s{1,3}password\s{1,3})[^\s'\"`]+")
"""``machine h login u password p`` of netrc."""
_ORACLE = re.compile(r"(?P<name>jdbc:oracle:[a-z0-9]{2,9}:)[^\s'\"`/@]{1,128}/[^\s'\"`@]{1,128}(?=@)", re.IGNORECASE)
_GO = re.compile(r"(?<![\w:/.-])[\w.-]{1,64}:[^\s'\"`@/]{1,128}(?=@(?:tcp|tcp6|unix|cloudsql)\()")
"""A data source of Go's MySQL driver: ``user:password@tcp(host:3306)/db``."""
_HEADER = re.compile(
    r"(?P<name>(?<![a-z0-9])(?:(?P<basic>basic)|bearer|apikey)\s{1,3})(?P<value>[a-z0-9._~+/-]{8,}=*)", re.IGNORECASE
)
_PEM = re.compile(
    r"(?P<name>-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d:)(?!…)"
    r"(?:(?!-----END ).)*(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
    re.DOTALL,
)
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?:[:,/|]\s?[A-Za-z0-9/+]{40})?(?![A-Za-z0-9])"  # AWS
    r"|gh[opsur]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}"
    r"|gl(?:agent|cbt|dt|ft|imt|oas|pat|ptt|rt|soat)-[A-Za-z0-9_=.-]{20,300}"
    r"|(?:dapi|dose|dkea)[0-9a-f]{32}(?:-\d{1,2})?(?![0-9A-Za-z])"  # Databricks
    r"|xox[a-z]-[A-Za-z0-9-]{10,250}|xapp-\d-[A-Za-z0-9-]{10,250}"
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_.-]{20,2000}|GOCSPX-[A-Za-z0-9_-]{28}|1//0[A-Za-z0-9_-]{30,200}"
    r"|GOOG(?:1[A-Z0-9]{57}|[A-Z0-9]{16,20})(?![A-Za-z0-9])"
    r"|[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])"  # Microsoft Entra ID
    r"|eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,8000}(?:\.[A-Za-z0-9_-]{0,8000}){1,3}"  # JWT, JWE
    r"|sk-(?:admin|ant|or|proj|svcacct)-[A-Za-z0-9_-]{20,300}|sk-[A-Za-z0-9]{32,300}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,250}|whsec_[A-Za-z0-9+/=]{24,250}"
    r"|SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|SK[0-9a-f]{32}(?![0-9A-Za-z])"
    r"|npm_[A-Za-z0-9]{36}|pypi-AgEI[A-Za-z0-9_-]{50,1000}|dckr_pat_[A-Za-z0-9_-]{20,100}"
    r"|hv[brs]\.[A-Za-z0-9_-]{24,300}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}"
    r"|do[opr]_v1_[0-9a-f]{64}|hf_[A-Za-z]{34}|gl(?:c|sa)_[A-Za-z0-9_+/=]{32,300}|NRAK-[A-Z0-9]{27}"
    r"|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,64}|dbt[cu]_[A-Za-z0-9_=-]{30,100}"
    r"|AGE-SECRET-KEY-1[0-9A-Z]{58}|ATATT3[A-Za-z0-9_=-]{100,300}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}"
    r"|(?<=hooks\.slack\.com/)(?:services|triggers|workflows)/[A-Za-z0-9/_-]{20,200}"
    r"|(?<=webhook\.office\.com/)webhookb2/[A-Za-z0-9@/_-]{20,300}"
    r"|(?<=discord\.com/)api/webhooks/\d{10,25}/[A-Za-z0-9_-]{20,100}"
    r"|[A-Za-z0-9+/]{86}==(?![A-Za-z0-9=])"  # a key of an Azure account
    r")"
)
_BARE_KEY = re.compile(r"(?<![A-Za-z0-9/+=_.-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_.-])")
"""Perhaps a secret key of AWS, which has no prefix."""
_CLASSES = re.compile(r"[A-Z]+|[a-z]+|[0-9]+|[/+]+")


def find_credentials(location: str) -> str:
    """The kind of credentials in a location, as a noun phrase; empty if there are none."""
    for text in (location, unquote(location)):
        if any(_is_secret(scheme, user) for _, _, scheme, user in _users(text)):
            return "a user name or a password before its host"
        parameter = _PARAMETER.search(text)
        if parameter and parameter["value"]:
            return f"the credential `{parameter['name'].lstrip('?&;')}`"
    return ""


def scrub(text: str) -> str:
    """The text with each credential in it replaced by ``HIDDEN``. Takes time linear in the length of the text."""
    if "://" in text:
        parts, last = list[str](), 0
        for start, end, scheme, user in _users(text):
            if _is_secret(scheme, user):
                parts += (text[last:start], HIDDEN)
                last = end
        text = "".join((*parts, text[last:]))
    if "=" in text or "%3" in text:
        text = _PARAMETER.sub(rf"\g<name>{HIDDEN}", text)
    if "PRIVATE KEY" in text or "PuTTY" in text:
        text = _PEM.sub(rf"\g<name>{HIDDEN}", text)
    lower = text.lower()
    if any(word in lower for word in _ASSIGNED_WORDS):
        text = _ASSIGNED.sub(_hide_assigned, text)
        text = _LOGIN.sub(rf"\g<name>{HIDDEN}", text)
    if "-u" in text or "--" in text:
        text = _OPTION.sub(_hide_given, text)
    if "earer" in lower or "basic" in lower or "apikey" in lower:
        text = _HEADER.sub(_hide_given, text)
    if "@" in text:
        text = _GO.sub(HIDDEN, _ORACLE.sub(rf"\g<name>{HIDDEN}", text))
    return _scrub_tokens(text) if len(text) >= 20 else text


def _scrub_tokens(text: str) -> str:
    def hide(found: re.Match[str]) -> str:
        hashed = found[0].endswith("==") and text[max(0, found.start() - 7) : found.start()].lower() == "sha512-"
        return found[0] if hashed else HIDDEN

    return _BARE_KEY.sub(lambda found: HIDDEN if _is_random(found[0]) else found[0], _TOKEN.sub(hide, text))


def _hide_assigned(found: re.Match[str]) -> str:
    """Text in quotes, or after ``=``, is a value. After a colon it can be prose: then it is a value if nothing follows
    it, or if it has letters and digits. A token has six characters at least, so that ``unexpected token: )`` stays.
    """
    quoted, bare = found["quoted"], found["bare"]
    value = bare if quoted is None else quoted
    if not value or _REFERENCE.match(value):
        return found[0]
    end = len(found[0])
    if found["sign"].endswith(">") and "=" not in found["sign"] and not found.string.startswith("<", found.end()):
        return found[0]
    if quoted is None and ":" in found["sign"] and not found["scheme"]:
        value = value.rstrip(",})")
        end -= len(bare) - len(value)
        is_word = value.isalpha() or len(value) < 8
        if _END.match(found.string, found.start() + end):
            if is_word and not found["sure"]:
                return found[0]
        elif not (
            _MIXED.search(value) and (len(value) >= 6 if found["sure"] else len(value) >= 12 and value.isalnum())
        ):
            return found[0]
    if len(value) < 6 and not found["sure"]:
        return found[0]
    start = found.start("quoted" if quoted is not None else "bare") - found.start()
    return f"{found[0][:start]}{HIDDEN}{found[0][end:]}"


def _hide_given(found: re.Match[str]) -> str:
    """An argument of a command or a header. Words of prose can follow the name, too."""
    name, value = found["name"], found["value"]
    if name.lstrip("-")[:1] in {"u", "U"} and name.startswith("-"):
        secret = ":" in value.strip(":") and "://" not in value
    elif found.re is _HEADER and found["basic"]:
        secret = _is_login(value)
    else:
        secret = len(value) >= 6 and not value.isalpha() and any(map(str.isdigit, value))
    return f"{name}{HIDDEN}" if secret else found[0]


def _is_login(text: str) -> bool:
    """Whether a text is ``user:password`` in Base64."""
    try:
        return b":" in b64decode(text[:400], validate=True)
    except ValueError:
        return False


def _is_random(text: str) -> bool:
    """Whether a text changes between letters, capitals, digits and signs as often as random text does. A random text
    of 40 characters changes 25 times, give or take three; a path of words rarely 12 times.
    """
    has_all = not (text.isalpha() or text.islower() or text.isupper())
    return has_all and len(_CLASSES.findall(text)) > 16


def without_credentials(location: str) -> str:
    """The location without a user before the host and without a signed query. It can be shown, stored and opened."""
    start, end, scheme, user = next(_users(location), (0, 0, "", ""))
    if start == len(scheme) + len("://") and _is_secret(scheme, user):
        container = user.partition(":")[0] + "@" if scheme.lower() in _CONTAINERS else ""
        location = f"{scheme}://{container}{location[end + 1 :]}"
    path, mark, query = location.partition("?")
    return path if mark and _PARAMETER.search(mark + query) else _PARAMETER.sub("", location)


def server_text(url: str) -> str:
    """A server's address without its user and its parameters, which may contain tokens."""
    parts = urlsplit(scrub(url))
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else scrub(url)


def _users(text: str) -> Iterator[tuple[int, int, str, str]]:
    """What stands before the host of each location: its start, its end, the scheme before it, and itself."""
    for run in _RUN.finditer(text):
        for found in _SCHEME.finditer(run[0]):
            if _USER.match(run[0], found.end()):
                yield run.start() + found.end(), run.end() - 1, found["scheme"], run[0][found.end() : -1]
                break


def _is_secret(scheme: str, user: str) -> bool:
    return ":" in user or scheme.lower() not in _CONTAINERS
