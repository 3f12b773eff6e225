"""Writes case files (tests/cases/README.md says what is in them)."""

import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "cases"
SOURCE = "scripts/reference (NumPy)"
# A case is read by every host, and in the browser it is part of the module.
MOST_BYTES = 60_000
HERE = "¦"

written = []


def bf16(array):
    """Rounded to bfloat16, nearest even, as float32."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(array), np.float32(np.nan), rounded.view(np.float32))


NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.float32, "i32": np.int32, "u32": np.uint32,
         "i8": np.int8, "u8": np.uint8, "bool": np.uint8}


def number(dtype, value):
    if dtype in ("f32", "f16", "bf16"):
        if np.isnan(value):
            return '"nan"'
        if np.isinf(value):
            return '"inf"' if value > 0 else '"-inf"'
        # f32: the shortest decimal. The narrow types: exact.
        text = str(value) if dtype == "f32" else repr(float(value))
        return text[:-2] if text.endswith(".0") else text
    return str(int(value))


def tensor(dtype, array, **tolerance):
    """A tensor as JSON. The values are rounded to the type here, once."""
    with np.errstate(over="ignore", invalid="ignore"):
        array = bf16(array) if dtype == "bf16" else np.asarray(array).astype(NUMPY[dtype])
    data = ", ".join(number(dtype, value) for value in array.reshape(-1))
    extra = "".join(f', "{key}": {value!r}' for key, value in tolerance.items())
    return f'{{ "dtype": "{dtype}", "shape": {list(array.shape)}, "data": [{data}]{extra} }}'


def tensors(table):
    rows = []
    for name, (dtype, array, *tolerance) in table.items():
        keys = dict(zip(("rtol", "atol"), tolerance))
        rows.append(f"    {json.dumps(name)}: {tensor(dtype, array, **keys)}")
    return "{\n" + ",\n".join(rows) + "\n  }"


def write(name, rows):
    text = "{\n" + ",\n".join(f"  {json.dumps(key)}: {value}" for key, value in rows) + "\n}\n"
    json.loads(text)
    assert name not in written, name
    assert len(text) < MOST_BYTES, (name, len(text))
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    written.append(name)


def head(name, program, source):
    name = f"program_{name}"
    program = "\n".join(line.strip(" ") for line in program.strip().split("\n"))
    return name, [("name", json.dumps(name)), ("source", json.dumps(source)),
                  ("program", json.dumps(program, ensure_ascii=False))]


def case(name, program, inputs, outputs, statics=None, repeat=1, source=SOURCE):
    """A program with what it is given and what it must make: name → (dtype, array, rtol, atol)."""
    name, rows = head(name, program, source)
    rows.append(("inputs", tensors(inputs)))
    if statics:
        rows.append(("statics", json.dumps(statics)))
    if repeat != 1:
        rows.append(("repeat", str(repeat)))
    write(name, rows + [("outputs", tensors(outputs))])


def error(name, program, kind, contains, inputs=None, statics=None, stage="compile"):
    """A program that must fail. In the text, ¦ stands before the place of the mistake; further ones are as good."""
    name, rows = head(f"error_{name}", program, "read from the text of the program")
    program = json.loads(dict(rows)["program"])
    places = []
    while HERE in program:
        before, after = program.split(HERE, 1)
        places.append([before.count("\n") + 1, len(before) - before.rfind("\n")])
        program = before + after
    rows[-1] = ("program", json.dumps(program, ensure_ascii=False))
    rows.append(("inputs", tensors(inputs or {})))
    if statics:
        rows.append(("statics", json.dumps(statics)))
    rows += [("error", "true"), ("stage", json.dumps(stage)), ("kind", json.dumps(kind)),
             ("contains", json.dumps(contains))]
    if places:
        rows += [("line", str(places[0][0])), ("column", str(places[0][1]))]
    if places[1:]:
        rows.append(("also", json.dumps(places[1:])))
    write(name, rows)


class Values:
    """Deterministic inputs with few digits, so that files stay small and every host reads the same."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def normal(self, *shape):
        return np.round(self.random.normal(size=shape), 2).astype(np.float32)

    def uniform(self, lo, hi, *shape):
        return np.round(self.random.uniform(lo, hi, shape), 2).astype(np.float32)

    def integers(self, lo, hi, *shape):
        return self.random.integers(lo, hi, shape)


def wide(*arrays):
    """As float64, so that what follows is exact beside f32."""
    arrays = [np.asarray(array, np.float64) for array in arrays]
    return arrays[0] if len(arrays) == 1 else arrays
