// SPDX-License-Identifier: MIT
// Packages that only tests need, installed once into the build's folder, and the browser. A test that cannot have them is skipped with a reason.
import {execFileSync, spawnSync} from "node:child_process";
import {copyFileSync, existsSync, mkdirSync, readFileSync} from "node:fs";
import {createRequire} from "node:module";
import path from "node:path";
import {fileURLToPath} from "node:url";

const SKIP = 77;
export const HERE = path.dirname(fileURLToPath(import.meta.url));
export const SOURCE = path.dirname(path.dirname(HERE));
export const FOLDER = path.join(process.env.BUILD ?? path.join(SOURCE, "build"), "viewer");
const LOCK = "package-lock.json";

export function skip(reason) {
	console.log(reason);
	process.exit(SKIP);
}

function isInstalled() {
	const [wanted, found] = [path.join(HERE, LOCK), path.join(FOLDER, LOCK)];
	return existsSync(path.join(FOLDER, "node_modules/.package-lock.json")) && existsSync(found) && readFileSync(wanted, "utf8") === readFileSync(found, "utf8");
}

/** @returns {(name: string) => any} requires a package */
export function packages() {
	if (!isInstalled()) {
		mkdirSync(FOLDER, {recursive: true});
		for (const name of ["package.json", LOCK]) copyFileSync(path.join(HERE, name), path.join(FOLDER, name));
		const done = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], {cwd: FOLDER, encoding: "utf8"});
		if (done.status !== 0) skip(`npm cannot install the packages of tests/viewer: ${(done.stderr ?? "there is no npm").trim().split("\n").at(-1)}`);
	}
	return createRequire(path.join(FOLDER, "package.json"));
}

/** @returns {string} path of the browser */
export function browserPath() {
	for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
		const found = spawnSync("sh", ["-c", `command -v ${name}`], {encoding: "utf8"}).stdout.trim();
		if (found) return found;
	}
	return skip("there is no chromium");
}

/** @returns {string} the self-contained page, with data or without */
export function joinPage(dataFile) {
	return execFileSync(path.join(SOURCE, "viewer/join"), dataFile ? ["--data", dataFile] : [], {encoding: "utf8", maxBuffer: 1 << 28});
}
