"""Install a wheel with each extra alone into an empty environment, and use there what the extra is for.

python -m tools.install dist/ahead_ldp-0.1.0-py3-none-any.whl [--python python3.12] [--extra server] [--bare]

Without extras every command says its help, and a collection is made, asked and drawn up without the repository. With
an extra its own small program runs. It needs a package index, so no test of `make test` does it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ahead_ldp.cli.app import commands

DEMO = "demo"
BARE = """
import numpy as np, ahead_ldp
ages = np.random.default_rng(1).integers(18, 100, 5000)
answer = ahead_ldp.simulate(ages, "age=integer,18,99", epsilon=2, seed=1).ask("age in 18..58")
assert abs(answer.values[0] - 0.5) < 0.2
"""
# An extra, and a program that needs what it brings.
EXTRAS = {
    "fast": """
import numba, numpy as np, ahead_ldp
estimate = ahead_ldp.collect(np.arange(2000) % 50, "x=codes,50", epsilon=2, progress=False)
assert abs(estimate.ask("x in 0..49").values[0] - 1) < 0.2
""",
    "plot": """
import numpy as np, ahead_ldp
estimate = ahead_ldp.simulate(np.arange(5000) % 50, "x=codes,50", epsilon=2, seed=1)
ahead_ldp.plot_estimate(estimate).savefig("x.png")
assert open("x.png", "rb").read(4) == b"\\x89PNG"
""",
    "pdf": """
import numpy as np, ahead_ldp
estimate = ahead_ldp.simulate(np.arange(5000) % 50, "x=codes,50", epsilon=2, seed=1)
assert ahead_ldp.report_pdf(estimate)[:5] == b"%PDF-"
""",
    "interactive": """
import numpy as np, ahead_ldp
estimate = ahead_ldp.simulate(np.arange(5000) % 50, "x=codes,50", epsilon=2, seed=1)
assert "vega-lite" in estimate.chart().to_json()
""",
    "frames": """
import pandas, polars, pyarrow, ahead_ldp
for make in (pandas.DataFrame, polars.DataFrame, pyarrow.table):
    estimate = ahead_ldp.simulate(make({"x": [1, 2, 3] * 999}), "x=integer,1,3", epsilon=2, seed=1)
assert len(estimate.ask("x = 1").to_frame()) == 1
""",
    "server": """
import urllib.request
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.embedded import start
from ahead_ldp.service.store import open_store
store = open_store("x.db", keys="x.keys")
server = start(store, Settings(port=0))
assert urllib.request.urlopen(server.url + "/v1/ready").status == 200
server.stop()
store.close()
""",
    "postgres": """
import psycopg
assert psycopg.conninfo.make_conninfo("postgresql://localhost/ahead")
""",
    "batch": """
import subprocess
open("people.csv", "w").write("person,x\\n" + "".join(f"p{i},{i % 16}\\n" for i in range(800)))
words = ["start survey --attribute x=codes,16 --epsilon 2 --users 800 --method flat"]
words += ["perturb survey --data people.csv --row-key person", "advance survey", "query survey", "tally survey"]
words[3] += " x<=7"
for line in words:
    subprocess.run(["ahead", *line.split()], check=True)
""",
    "spark": "import pyspark, pyarrow, pandas\nfrom ahead_ldp.engines import spark\n",
    "telemetry": "import opentelemetry.sdk.trace\nfrom opentelemetry.exporter.otlp.proto import http\n",
}


def environment(python: str, folder: Path, wheel: Path, extra: str) -> dict[str, str]:
    """A new environment in the folder with the wheel and one extra; the variables under which it is used."""
    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    wanted = f"{wheel.resolve()}[{extra}]" if extra else str(wheel.resolve())
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", wanted]
    subprocess.run(pip, check=True)
    kept = {name: os.environ[name] for name in ("LANG", "JAVA_HOME") if name in os.environ}
    path = f"{folder / 'venv' / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return {**kept, "PATH": path, "HOME": str(folder), "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"}


def run(words: Sequence[str], folder: Path, env: dict[str, str]) -> str:
    """What a program prints; CalledProcessError, with what it said, if it fails."""
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)[:200]}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout


def use(folder: Path, env: dict[str, str], extra: str) -> None:
    """Use the package as it was installed; RuntimeError if something does not work."""
    if extra == DEMO:
        told = run(["ahead", "demo", "--people", "5000"], folder, env)
        if "intervals hold the truth" not in told:
            raise RuntimeError(f"expected the demo to compare with the truth, got {told[-500:]}")
        return
    if extra:
        run(["python", "-W", "error::DeprecationWarning:ahead_ldp", "-c", EXTRAS[extra]], folder, env)
        return
    run(["python", "-c", BARE], folder, env)
    run(["ahead", "--version"], folder, env)
    for command in commands():
        run(["ahead", command, "--help"], folder, env)
    lines = [
        "methods", "plan --attribute x=codes,16 --epsilon 1 --users 2000 --method flat",
        "collect --data x.csv --attribute x=codes,16 --epsilon 2 --out made", "query made x<=7",
        "new-method mine", "datasets", "schedule one two --epsilon 1 --users 1000", "demo --people 5000",
    ]  # fmt: skip
    (folder / "x.csv").write_text("x\n" + "".join(f"{i % 16}\n" for i in range(800)), "utf-8")
    for line in lines:
        run(["ahead", *line.split()], folder, env)


def main() -> int:
    """Install and use; 1 if anything fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--extra", action="append", choices=[*EXTRAS, DEMO], help="these; all if not given")
    parser.add_argument("--bare", action="store_true", help="only without extras")
    given = parser.parse_args()
    wanted = [""] if given.bare else given.extra or ["", *EXTRAS, DEMO]
    failed = 0
    for extra in wanted:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                env = environment(given.python, Path(folder), given.wheel, "server,plot" if extra == DEMO else extra)
                use(Path(folder), env, extra)
                said = "works"
            except (RuntimeError, subprocess.CalledProcessError) as problem:
                said, failed = f"fails: {problem}", failed + 1
        print(f"{extra or 'without extras'}: {said} ({time.monotonic() - begun:.0f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
