"""What shows Gatehouse at work: the studio of `serve --demo`, a sample web application, the sample game.

Loaded only when it is asked for. Makes everything through the rooms and pages that everybody else uses, on this
machine only; nothing of the service depends on it.
"""
