"""``make dashboard``: the service under a steady load, and Graphite to watch it with.

Ctrl-C ends everything, and leaves nothing behind but the installed programs in ``.run/``.
"""

from gevent import monkey

monkey.patch_all()

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dashboards import for_graphite, pictures
from dashboards.boards import boards
from dashboards.chain import Chain, ChainFailed
from dashboards.load import DEATH_EVERY_S, OUTAGE_EVERY_S, OUTAGE_S, RATE
from dashboards.programs import FOLDER, CannotInstall, install
from dashboards.service import loaded
from flightsvc.demo.service import DemoFailed
from flightsvc.demo.signals import orderly_end

#: over which rates are smoothed, and how far back the dashboards look, in min
WINDOW, MINUTES = "20s", 10
#: a day, in s: nobody looks on longer
LONGEST_S = 86_400.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until Ctrl-C, or for a time; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m dashboards", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="graphite-web's; 0: a free one")
    parser.add_argument("--seconds", type=float, default=LONGEST_S, help="how long to go on")
    parser.add_argument("--pictures", type=Path, help="folder: draw the boards there at the end")
    given = parser.parse_args(arguments)
    try:
        with orderly_end():
            _show(given.port, given.seconds, given.pictures)
    except KeyboardInterrupt:
        return 0
    except (CannotInstall, ChainFailed, DemoFailed, OSError, RuntimeError) as problem:
        print(f"make dashboard: {problem}", file=sys.stderr)
        return 1
    return 0


def _show(port: int, seconds: float, folder: Path | None) -> None:
    shown = boards(window=WINDOW)
    if not (FOLDER / "installed").exists():
        print("Installing StatsD, carbon and graphite-web into .run/ (once, about a minute)")
    programs = install()
    print("Starting StatsD, carbon, graphite-web and the service")
    with Chain(programs, retention="1s:6h", web_port=port) as chain, loaded(chain) as (own, load):
        print(
            f"\n  service    http://127.0.0.1:{own.port}, 2 workers, a scripted model\n"
            f"  load       {RATE:g} questions a second, most asked several times; "
            f"every {OUTAGE_EVERY_S:g} s\n             the model is gone for {OUTAGE_S:g} s, "
            f"every {DEATH_EVERY_S:g} s a worker is killed\n"
            f"  Graphite   {chain.url}\n"
        )
        for board in shown:
            for theme in for_graphite.THEMES:
                print(" ", chain.keep_dashboard(for_graphite.state(board, theme, MINUTES)))
        print("\nCtrl-C ends everything.", flush=True)
        load.run(seconds)
        if folder is not None:
            chain.settle()
            pictures.draw_all(chain, shown, folder, f"-{seconds:.0f}s")


if __name__ == "__main__":
    sys.exit(main())
