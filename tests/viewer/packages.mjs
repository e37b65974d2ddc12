// SPDX-License-Identifier: MIT
// Packages that only tests need, installed once into the build's folder, and the browser. A test that cannot have them is skipped with a reason.
import {execFileSync, spawnSync} from "node:child_process";
import {createHash} from "node:crypto";
import {copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync} from "node:fs";
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

/** @returns {(name: string) => any} requires a package. Several tests may install at once: each in a folder of its own, and the first one stays. */
export function packages() {
	const wanted = readFileSync(path.join(HERE, LOCK)),
		home = path.join(FOLDER, `packages-${createHash("sha256").update(wanted).digest("hex").slice(0, 12)}`);
	if (!existsSync(home)) {
		mkdirSync(FOLDER, {recursive: true});
		const made = mkdtempSync(path.join(FOLDER, "install-"));
		for (const name of ["package.json", LOCK]) copyFileSync(path.join(HERE, name), path.join(made, name));
		const done = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], {
			cwd: made,
			encoding: "utf8",
		});
		if (done.status === 0 && !existsSync(home)) renameSync(made, home);
		else rmSync(made, {recursive: true, force: true});
		if (!existsSync(home))
			skip(
				`npm cannot install the packages of tests/viewer: ${(done.stderr ?? "there is no npm").trim().split("\n").at(-1)}`,
			);
	}
	return createRequire(path.join(home, "package.json"));
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
	return execFileSync(path.join(SOURCE, "viewer/join"), dataFile ? ["--data", dataFile] : [], {
		encoding: "utf8",
		maxBuffer: 1 << 28,
	});
}
