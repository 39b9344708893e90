"""Mask for what looks like a secret, in all that is shown or sent and is not the message itself.

Pure. Called by whoever makes a line of a text, and for messages that are shown before theirs is
made.
"""

from __future__ import annotations

import re
from typing import Final

_MASKED: Final = "[secret]"
_PREFIXES: Final = (
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "earer ",
    "EARER ",
    "asic ",
    "uthorization: ",
    "PRIVATE KEY",
)
_KNOWN: Final = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{12,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?)"
)
_BEARER: Final = re.compile(
    r"\b(bearer|basic|(?<=horization: )token)(\s+)(?=[\w.~+/-]{0,200}?\d)[\w.~+/=-]{12,}",
    re.IGNORECASE,
)
_IN_URL: Final = re.compile(r"(://[^\s/:@]{0,100}:)[^\s/@]{1,200}(?=@)")
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:(?!-----END)[^\0]){0,20000}(?:-----END "
    r"[A-Z0-9 ]{0,40}-----)?"
)

_IS: Final = re.compile("[:=：|>]")
_LOOSE: Final = "|>"
"""As in tables, in XML, and in arrows; but code compares with them, too."""
_LEAST_OPAQUE: Final = 16
_FLAG: Final = re.compile(
    (
        r"((?<![\w-])--[\w-]{0,40}?(?:password|passwd|passphrase|token|secret|api[_-]?key)\s{1,"
        r"4}[\"']?)([^\s\"'-][^\s\"']{0,2000})"
    ),
    re.IGNORECASE,
)
_NAME_HINTS: Final = (
    "assw",
    "ASSW",
    "assp",
    "ASSP",
    "pwd",
    "PWD",
    "key",
    "Key",
    "KEY",
    "ecret",
    "ECRET",
    "oken",
    "OKEN",
    "redential",
    "REDENTIAL",
    "enha",
    "ENHA",
    "contrase",
    "арол",
    "密",
    "パスワード",
    "비밀번호",
)
_PASSWORDS: Final = (
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "pwd",
    "senha",
    "contraseña",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
)
_KEYS: Final = (
    "secret",
    "token",
    "credential",
    "credentials",
    "apikey",
    *(
        f"{a}{b}key"
        for a in ("api", "access", "private", "auth", "secret", "signing", "encryption")
        for b in ("_", "-", " ", "")
    ),
)
_VALUE: Final = re.compile(
    r"""\s?\\{0,3}(?:"([^"\\\n]{1,2000})|'([^'\\\n]{1,2000})|([^\s,;"'}&\\]{1,2000}))"""
)


def mask(text: str) -> str:
    """The text with what looks like a password, key or token replaced by ``[secret]``.

    Lines are shown and sent to models long after; the log itself stays word for word. Known
    prefixes are masked anywhere, opaque values only behind a name such as ``api_key``: a mask over
    every random string would hide the commit hashes people look for.
    """
    has = text.replace(
        "…", ""
    ).__contains__  # a text with one wide character is searched several times slower
    if any(map(has, _PREFIXES)):
        if has("PRIVATE KEY-----"):
            text = _PRIVATE_KEY.sub(_MASKED, text)
        text = _KNOWN.sub(_MASKED, text)
        text = _BEARER.sub(rf"\1\2{_MASKED}", text)
    if has("://") and has("@"):
        text = _IN_URL.sub(rf"\1{_MASKED}", text)
    if not any(map(has, _NAME_HINTS)):
        return text
    if has("--"):
        text = _FLAG.sub(
            lambda flag: f"{flag[1]}{_MASKED}" if _is_secret(flag[2], plainly=False) else flag[0],
            text,
        )
    return _mask_named(text)


def _mask_named(text: str) -> str:
    """Values behind ``=`` or ``:`` or in a table, whose name says that they are secret.

    Quotes stay: masked JSON must still be JSON.

    A search for the signs is some ten times faster than one for the names.
    """
    out: list[str] = []
    done = 0
    for match in _IS.finditer(text):
        at = match.start()
        if at < done:
            continue
        loose = match[0] in _LOOSE
        name = text[max(at - 24, 0) : at].rstrip("\\\"' =-" if loose else "\\\"' ").lower()
        plainly = name.endswith(_PASSWORDS)
        if not (plainly or name.endswith(_KEYS)) or not (value := _VALUE.match(text, at + 1)):
            continue
        found = value[value.lastindex or 0]
        if _is_opaque(found) if loose else _is_secret(found, plainly):
            start, stop = value.span(value.lastindex or 0)
            out += text[done:start], _MASKED
            done = stop
    return "".join(out) + text[done:] if out else text


def _is_secret(value: str, plainly: bool) -> bool:
    """Of a password any value.

    Else ``token: str`` and ``tokens: 1532`` are code, and a secret is long and mixed.
    """
    if value.startswith(_MASKED):
        return False
    return (
        len(value) > 2
        if plainly
        else len(value) >= 8 and not value.isalpha() and not value.isdigit()
    )


def _is_opaque(value: str) -> bool:
    return (
        len(value) >= _LEAST_OPAQUE
        and any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
    )
