// The shared cases in Chromium.

import { caseSuite } from "./case-suite.mjs";

await caseSuite("chromium", { spoilsAll: true });
