"""`python -m lockstorm` is the `lockstorm` command."""

import gc


def main() -> None:
    gc.disable()  # loading the command makes many objects and no garbage; it enables it again (Commands.get_command)
    from lockstorm.cli.main import main

    main()


if __name__ == "__main__":
    main()
