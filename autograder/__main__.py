"""The command line: ``python -m autograder COMMAND --help``."""

import gc
import importlib.metadata
import sys

OF_UNIX = ("fcntl", "grp", "pwd", "resource", "termios")


def main() -> int:
    """Run a command, or say what this machine lacks for it."""
    grades = sys.argv[1:2] == ["grade"]
    try:
        if grades:
            from autograder.grading import fork_server

            fork_server.begin(sys.argv[2:])  # before all else that is slow to import
            gc.disable()  # what is imported stays; the command switches it on again
        from autograder import command_line
    except ModuleNotFoundError as missing:
        if sys.argv[1:] == ["--version"]:  # that of the package: nothing grades here
            print(importlib.metadata.version("transformers-by-hand"))
            return 0
        print(f"error: {lacking(missing.name or '')}", file=sys.stderr)
        return 2
    try:
        return command_line.main()
    finally:
        if grades:
            fork_server.end()
            gc.enable()
            gc.unfreeze()


def lacking(module: str) -> str:
    """Say what to do where a module is not there."""
    if module in OF_UNIX:
        return "grading needs Linux (on Windows: WSL 2); notebooks and checks work here"
    install = 'pip install "transformers-by-hand[grade]"'
    return f"the package {module} is missing, which grading needs: {install}"


if __name__ == "__main__":
    sys.exit(main())
