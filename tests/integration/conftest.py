"""The fixtures of the integration tests stand in fixtures.py, which the fault tests use too."""

from fixtures import *  # noqa: F401,F403  (pytest finds fixtures by their names here)
