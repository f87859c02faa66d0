"""The sections of a configuration file, one module each; `table.py` lists them."""
