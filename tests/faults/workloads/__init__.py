"""What clients do while things break (docs/operations/faults.md): each workload has one file."""
