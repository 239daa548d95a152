"""Runs a module of common/: start.py MODULE [ARGUMENT...]. Python's own modules are found before what lies in
the repository's root: a copy.py or json.py there is a reader's."""
import signal

if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while the rest is loaded says nothing

# ruff: noqa: E402
# pylint: disable=wrong-import-position
import os
import runpy
import sys

sys.path.append(os.path.dirname(os.path.dirname(sys.path.pop(0))))
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
