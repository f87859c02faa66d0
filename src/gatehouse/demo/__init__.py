"""Demonstrations: the data of `serve --demo`, a sample web application, the sample game.

Loaded only on request. Creates everything through the services and pages that all others use, on this machine only;
nothing in the service depends on it.
"""
