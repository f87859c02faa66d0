"""Questions about who may do what and why: they decide with the same evaluation as everything else."""
