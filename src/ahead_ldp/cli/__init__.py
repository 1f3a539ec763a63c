"""The command `ahead`: a thin layer over the library. Commands load what they need when they are called."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer

from ahead_ldp.cli.app import app

BAD_INPUT = 2
_UsageError: Any = typer.BadParameter.__base__  # of the Click that this Typer brings or needs
_BROUGHT_BY = {"starlette": "fastapi"}  # packages that we use and another requirement brings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 2 with one line on standard error for bad input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign still gets the numbers
    words = list(sys.argv[1:] if arguments is None else arguments)
    if "" not in sys.path:
        sys.path.append("")  # a method in the folder where the command is given: --method mine:Half
    try:
        code = app(args=words or ["--help"], prog_name="ahead", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except _UsageError as error:
        return _refuse(error.format_message() or "see --help")
    except MemoryError as error:
        return _refuse(f"not enough memory: {error}")
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModuleNotFoundError as error:
        return _refuse(f"{error}{_remedy(error.name or '')}")
    except OSError as error:
        return _refuse(str(error) if error.filename is None else f"{error.filename}: {error.strerror}")
    except (ValueError, ImportError) as error:
        return _refuse(str(error))
    except (KeyboardInterrupt, typer.Abort):
        return 130


def _refuse(message: str) -> int:
    print("error:", " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT


def _remedy(module: str) -> str:
    """Which extras bring a package that is missing, by what the installed package says that it requires."""
    from importlib import metadata  # slow to load, and needed here alone

    top = module.partition(".")[0]
    package = _BROUGHT_BY.get(top, top.replace("_", "-"))
    required = re.compile(rf"{re.escape(package)}\b(?!-).*extra == ['\"](?!dev)(.+)['\"]")
    extras = [match[1] for text in metadata.requires("ahead-ldp") or () if (match := required.match(text))]
    return ": " + " or ".join(f"pip install 'ahead-ldp[{extra}]'" for extra in extras) if extras else ""
