"""`python -m harness.driver` is the `lockstorm` command."""

from harness.driver.cli import main

main()
