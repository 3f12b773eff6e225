// Negative controls: copies of a case of which each expects one thing that is not so; each must fail.

/** The copies of a case with one expectation made wrong. */
export function spoil(testCase) {
  if (testCase.steps) return spoilSteps(testCase);
  if (testCase.error) return spoilFailure(testCase).map((copy) => ({ ...testCase, ...copy }));
  return Object.keys(testCase.outputs)
    .filter((name) => testCase.outputs[name].data.length > 0)
    .map((name) => {
      const copy = structuredClone(testCase);
      copy.outputs[name].data = wrongElement(copy.outputs[name].data, copy.outputs[name]);
      return { ...copy, name: `${testCase.name} with a wrong ${name}` };
    });
}

function spoilSteps(testCase) {
  const copies = [];
  for (const [index, step] of testCase.steps.entries()) {
    for (const wrong of wrongSteps(step, testCase)) {
      const copy = structuredClone(testCase);
      copy.name = `${testCase.name} with a wrong step ${index}, ${step.op}`;
      copy.steps[index] = wrong;
      copies.push(copy);
    }
  }
  return copies;
}

function wrongSteps(step, { nodes }) {
  if (step.error) return spoilFailure({ name: step.op, ...step.error }).map((error) => ({ ...step, error }));
  if (["read", "read_block"].includes(step.op) && step.expect.length > 0) {
    return [{ ...step, expect: wrongElement(step.expect, { ...step, dtype: nodes[step.node].dtype }) }];
  }
  if (step.op === "loc") return [{ ...step, expect: [step.expect[0], step.expect[1] + 256] }];
  if (step.op !== "report") return [];
  return ["in_use_bytes", "padding_bytes", "pool_count"]
    .filter((key) => key in step)
    .map((key) => ({ ...step, [key]: step[key] + 1 }));
}

function wrongElement(data, { dtype, rtol = 0, atol = 0 }) {
  const index = Math.floor(data.length / 2);
  const copy = [...data];
  copy[index] = wrong(data[index], dtype, rtol, atol);
  return copy;
}

function wrong(value, dtype, rtol, atol) {
  if (typeof value === "boolean") return !value;
  if (typeof value === "string") return 0;
  if (dtype === "bool") return value ? 0 : 1;
  if (!["f32", "f16", "bf16"].includes(dtype)) return value === 0 ? 1 : value - Math.sign(value);
  // Twice what the tolerance allows, and never nothing.
  return value + 2 * (atol + rtol * Math.abs(value)) + Math.max(1e-3, Math.abs(value) * 1e-3);
}

function spoilFailure({ name, kind, contains, line, ...rest }) {
  const copies = [];
  const copy = (what, changes) => {
    copies.push({ ...rest, kind, contains, line, ...changes, name: `${name} with a wrong ${what}` });
  };
  if (kind !== undefined) copy("kind", { kind: kind === "bug" ? "map-failed" : "bug" });
  if (contains !== undefined) copy("text", { contains: `${contains}, which no message says` });
  if (line !== undefined) copy("line", { line: line + 100, also: [] });
  return copies;
}
