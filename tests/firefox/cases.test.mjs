// The shared cases in Firefox, whose WebGPU is wgpu: what Chromium's accepts can be an error there.

import { caseSuite } from "../e2e/case-suite.mjs";

await caseSuite("firefox");
