"""The console entry Projects: one module per tab."""
