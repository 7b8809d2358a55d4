"""The gate: a policy, the trials that it asks for, and their verdict for a pipeline."""
