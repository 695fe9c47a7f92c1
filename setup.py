"""Build script: everything that setup.cfg cannot say about the packages.

The Lua scripts stand at the top level, in ``lua/``, and ship as ``flightsvc/lua/``.
"""

import shutil

from setuptools import find_packages, setup
from setuptools.command.build import build


class FreshBuild(build):
    """Forget the last build: what it left in ``build/lib`` would bring deleted files back."""

    def run(self):
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    packages=[*find_packages(include=["flightsvc", "flightsvc.*"]), "flightsvc.lua"],
    package_dir={"flightsvc.lua": "lua"},
    cmdclass={"build": FreshBuild},
)
