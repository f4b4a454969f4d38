"""The command line: answers, explanations, ledgers and a demo from a shell (see `sfumato.cli.main`)."""
