"""`python -m inspector`, and the command `inspector`."""

import sys


def main() -> None:
    """Run a command and leave with its exit code."""
    words = sys.argv[1:]
    # git asks once for each version of each file; what all other commands need takes longer than the answer.
    if len(words) == 2 and words[0] == "textconv" and not words[1].startswith("-"):
        from inspector.textconv import run

        sys.exit(run(words[1]))
    from inspector.cli.signals import code_of, signals_raised

    try:
        # Loading the commands takes longer than some of them.
        with signals_raised():
            from inspector.cli.main import main as main_

            main_()
    except KeyboardInterrupt as interrupt:
        # Before the first command could take it.
        print("Stopped.", file=sys.stderr)
        sys.exit(code_of(interrupt))


# Processes that a scan starts import this module again.
if __name__ == "__main__":
    main()
