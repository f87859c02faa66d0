"""URIs of installed applications: the schemes that are for private use (RFC 8252)."""

import re
from typing import Final

MAX_URI_LENGTH: Final = 2_048
# A private-use scheme for an installed application, reversed domain name style (RFC 8252 §7.1).
DOMAIN_SCHEME_URI: Final = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*", re.ASCII)
# One without a dot, such as oc://. Anyone can claim the name, so administrators register it, one exact URI (R11). A
# single letter is a drive of Windows.
PLAIN_SCHEME_URI: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+-]+):/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*", re.ASCII)
# Schemes that browsers and operating systems handle themselves; no program answers for them.
SYSTEM_SCHEMES: Final = frozenset(
    (
        *("about", "afp", "blob", "bluetooth", "chrome", "chrome-extension", "cid", "content", "data", "dav", "davs"),
        *("dict", "dns", "edge", "facetime", "feed", "file", "filesystem", "ftp", "ftps", "geo", "git", "gopher"),
        *("http", "https", "imap", "imaps", "intent", "irc", "ircs", "jar", "javascript", "ldap", "ldaps", "magnet"),
        *("mailto", "market", "mhtml", "mid", "mms", "moz-extension", "nfs", "nntp", "opera", "pop", "res"),
        *("resource", "rlogin", "rtsp", "search", "search-ms", "sftp", "shell", "shttp", "sip", "sips", "sms", "smb"),
        *("smtp", "ssh", "steam", "svn", "tel", "telnet", "urn", "vbscript", "view-source", "wais", "webcal", "ws"),
        *("wss", "wyciwyg", "xmpp"),
    )
)
SYSTEM_SCHEME_PREFIX: Final = "ms-"  # of Windows and Office


def has_domain_scheme(uri: str) -> bool:
    """Whether its scheme is a domain in reverse, such as com.example.app."""
    return len(uri) <= MAX_URI_LENGTH and DOMAIN_SCHEME_URI.fullmatch(uri) is not None


def has_plain_scheme(uri: str) -> bool:
    """Whether it is a URI of an installed application whose scheme has no dot."""
    parts = PLAIN_SCHEME_URI.fullmatch(uri) if len(uri) <= MAX_URI_LENGTH else None
    if parts is None or parts["scheme"].startswith(SYSTEM_SCHEME_PREFIX):
        return False
    return parts["scheme"] not in SYSTEM_SCHEMES


def is_private_use(uri: str) -> bool:
    """Whether it leads to a program on the person's device by a scheme of its own."""
    return has_domain_scheme(uri) or has_plain_scheme(uri)
