"""The plug-in for pytest (docs/pytest.md)."""
