"""Signals of programs that tests start."""

import signal


def with_own_signals():
    """A `preexec_fn`: the program hears the signals that whoever started the tests ignores.

    A shell lets its jobs in the background ignore SIGINT, nohup SIGHUP, and programs that they
    start inherit that.
    """
    for number in (
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGUSR2,
    ):
        signal.signal(number, signal.SIG_DFL)
