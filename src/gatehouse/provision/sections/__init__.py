"""The sections of a configuration file; `plan.py` lists them."""
