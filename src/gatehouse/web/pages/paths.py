"""Paths of the pages: where templates link and post to, and where handlers respond."""

from enum import StrEnum


class Path(StrEnum):
    HOME = "/"  # sign-in or account; also `/?stoken=…` (R1) and `/?gsid=…` (R4)
    OPENAPI = "/openapi.json"
    DOCS = "/docs"
    CLIENT_FILES = "/docs/clients"  # /<file>
    GUIDES = "/docs/guides"  # and /<name>, /pictures/<file>
    DOCS_SESSION = "/docs/session"  # GET signs in and returns; POST answers with a short user JWT
    CONSOLE = "/console"
    SETUP = "/setup"

    SIGN_IN = "/sign-in"  # GET form; POST login, password
    SIGN_IN_PASSKEY = "/sign-in/passkey"  # POST credential
    SIGN_IN_EMAIL = "/sign-in/email"  # POST login: sends a link and a code
    SIGN_IN_CODE = "/sign-in/email/code"  # POST otp, login
    SIGN_IN_LINK = "/sign-in/link"  # ?token=; the POST uses it, so that a mail scanner's GET does not
    SIGN_IN_AS = "/sign-in/as"  # POST decision = continue | another, for a signed-in person
    AUTHORIZE = "/proxy/oauth/authorize"  # interface §4.2
    SITE_SIGN_IN = "/proxy/auth/sign-in"  # ?site=, to=, challenge= (R9)
    CONSENT = "/sign-in/consent"  # GET what an application wants; POST decision = allow | deny
    TERMS = "/terms"  # GET ?interaction= or ?token=; POST decision = accept | decline, version, and birth
    SECOND_FACTOR = "/sign-in/factor"  # POST otp or credential, and method
    SECOND_FACTOR_METHOD = "/sign-in/factor/method"  # POST method: show another one; `email` sends a code
    SHORT_TOKEN = "/sign-in/stoken"  # POST stoken  # noqa: S105 - an address
    CONFIRM_SIGN_IN = "/sign-in/confirm"  # GET where to; POST decision = confirm | cancel, and code
    SIGN_OUT = "/sign-out"  # POST
    LOGOUT = "/proxy/oauth/logout"  # interface R3
    LOGOUT_CONFIRM = "/proxy/oauth/logout/confirm"  # POST decision = confirm | cancel, and the client's parameters
    DEVICE = "/device"  # GET form, ?user_code=; POST user_code
    DEVICE_DONE = "/device/done"
    DEVICE_CANCELLED = "/device/cancelled"
    DEVICE_DENIED = "/device/denied"  # ?client_id=
    GAME_DONE = "/game/done"  # ?gsid=, as all of them
    GAME_CANCELLED = "/game/cancelled"
    GAME_WRONG_CODE = "/game/wrong-code"
    GAME_NOT_MERGED = "/game/not-merged"
    GAME_DENIED = "/game/denied"
    GAME_STATE = "/game/state"  # polled by open pages every other second

    REGISTER = "/register"
    REGISTER_CODE = "/register/code"  # POST otp, login: shown by the link in another browser
    REGISTER_STATE = "/register/state"  # polled by the page that waits for the link
    REGISTER_CONTINUE = "/register/continue"
    INVITE = "/invite"  # ?token=
    VERIFY_EMAIL = "/verify-email"  # ?token=; the POST uses it, so that a mail scanner's GET does not
    RESEND = "/verify-email/again"  # POST login
    FORGOT = "/forgot"
    RESET = "/reset"  # ?token=
    CONFIRM = "/confirm"  # reauthentication: POST password, otp or credential

    ACCOUNT = "/account"
    PROFILE = "/account/profile"  # POST the fields that people may set themselves
    PICTURE = "/account/picture"  # POST picture, a file
    PICTURE_REMOVE = "/account/picture/remove"  # POST
    USERNAME = "/account/username"  # POST username
    EMAIL = "/account/email"  # POST login
    PHONE = "/account/phone"  # POST phone: sends a code
    PHONE_CODE = "/account/phone/code"  # POST otp
    PHONE_REMOVE = "/account/phone/remove"  # POST
    PASSWORD = "/account/password"  # POST current, password  # noqa: S105 - an address
    PASSWORD_REMOVE = "/account/password/remove"  # POST  # noqa: S105 - an address
    TOTP = "/account/totp"  # GET setup; POST otp
    TOTP_REMOVE = "/account/totp/remove"  # POST
    PASSKEY = "/account/passkey"  # GET setup; POST name, credential
    PASSKEY_RENAME = "/account/passkey/rename"  # POST passkey_id, name
    PASSKEY_REMOVE = "/account/passkey/remove"  # POST passkey_id
    EMAIL_CODE = "/account/email-code"  # POST on = 1 | 0
    PHONE_FACTOR = "/account/phone-code"  # POST on = 1 | 0
    PHONE_FACTOR_OPEN = "/account/phone-code/open"  # POST
    RECOVERY_CODES = "/account/recovery-codes"  # POST: new codes, the old ones end
    IDENTITY_CONNECT = "/account/identities/connect"  # POST provider
    IDENTITY_REMOVE = "/account/identities/remove"  # POST provider, issuer, subject
    SESSION_END = "/account/sessions/end"  # POST session_id
    SESSIONS_END_OTHERS = "/account/sessions/end-others"  # POST
    GRANT_END = "/account/applications/end"  # POST grant_id
    APPLICATION_REVOKE = "/account/applications/revoke"  # POST client_id
    INVITATIONS = "/account/invitations"  # GET; POST invitation_id, decision = accept | decline
    LOOK = "/account/look"  # POST lang, theme
    EXPORT = "/account/export"  # POST: a file
    EXPORT_ASK = "/account/export/applications"  # POST: requests the data that applications store
    DELETE = "/account/delete"  # GET what will happen; POST login, typed once more
