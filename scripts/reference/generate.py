"""Writes tests/cases/program_*.json. The expected values come from NumPy, in float64 or exactly, never from wgslab.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install -r scripts/reference/requirements.txt
    /tmp/reference/bin/python scripts/reference/generate.py
"""

import sys

import convolution
import corners
import edges
import errors
import layers
import linear
import science
from case_file import FOLDER, written


def main():
    for part in (linear, layers, convolution, science, edges, corners, errors):
        part.write()
    print(f"{len(written)} case files in {FOLDER}")
    others = sorted(file.name for file in FOLDER.glob("program_*.json") if file.stem not in written)
    if others:
        sys.exit(f"not written from here: {', '.join(others)}; delete them, or add them to a part")


if __name__ == "__main__":
    main()
