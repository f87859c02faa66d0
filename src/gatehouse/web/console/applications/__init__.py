"""The console's entry Applications: one module per tab, all under the head of head.py."""
