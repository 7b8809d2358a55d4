"""The gate: a policy, the trials that it asks for, and what they come to for a pipeline."""
