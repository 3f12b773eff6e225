// Programs in index notation in Firefox.

import { programSuite } from "../e2e/program-suite.mjs";

programSuite("firefox");
