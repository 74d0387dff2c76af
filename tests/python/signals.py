"""Signals of programs that tests start, and of tests."""

import contextlib
import signal
import threading

import pytest


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


@contextlib.contextmanager
def ends_by_ctrl_c(seconds=0.2):
    """What is done here would go on for ever; Ctrl-C comes, and ends it."""
    main = threading.get_ident()
    timer = threading.Timer(seconds, lambda: signal.pthread_kill(main, signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
