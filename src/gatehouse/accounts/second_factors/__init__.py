"""What a person proves himself with beside a password: TOTP, passkeys, codes by e-mail, and recovery codes.

Never shows a page, never asks whether a change of factors was confirmed afresh (its caller has), and never
keeps a code or a secret in the clear.
"""
