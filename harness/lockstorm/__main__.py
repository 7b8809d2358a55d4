"""`python -m lockstorm` is the `lockstorm` command."""

from lockstorm.cli.main import main

main()
