"""Documents that people accept before they sign in to an application, and the age they must have (R10).

Documents are settings (docs/decisions/0049-terms-are-settings.md). Stored are the versions that a person accepted,
and the band of their age; never a date of birth, and nothing about someone who is too young.
"""
