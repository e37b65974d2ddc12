#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The types that the page's comments declare hold.
import {spawnSync} from "node:child_process";
import path from "node:path";
import {HERE, packages} from "./packages.mjs";

const compiler = path.join(path.dirname(packages().resolve("typescript/package.json")), "bin/tsc");
const done = spawnSync(process.execPath, [compiler, "-p", path.join(HERE, "types.json")], {encoding: "utf8"});
console.log(done.stdout + done.stderr);
process.exitCode = done.status ?? 1;
