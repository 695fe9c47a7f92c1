"""Build script: everything that setup.cfg cannot say about the packages.

The Lua scripts stand at the top level, in ``lua/``, and ship as ``flightsvc/lua/``.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["flightsvc", "flightsvc.*"]), "flightsvc.lua"],
    package_dir={"flightsvc.lua": "lua"},
)
