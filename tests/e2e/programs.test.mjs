// Programs in index notation in Chromium.

import { programSuite } from "./program-suite.mjs";

programSuite("chromium");
