// SPDX-License-Identifier: MIT
// Packages that only tests need, installed once into the build's folder, and the browser. A test that cannot have them is skipped with a reason; with
// BROWSER_TESTS=required, as in .ci/run, it fails. By itself this program installs the packages.
import {execFileSync, spawnSync} from "node:child_process";
import {createHash} from "node:crypto";
import {copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync} from "node:fs";
import {createRequire} from "node:module";
import path from "node:path";
import {fileURLToPath} from "node:url";

const SKIP = 77,
	IS_REQUIRED = process.env.BROWSER_TESTS === "required";
export const HERE = path.dirname(fileURLToPath(import.meta.url));
export const SOURCE = path.dirname(path.dirname(HERE));
export const FOLDER = path.resolve(process.env.BUILD ?? path.join(SOURCE, "build"), "viewer");
const LOCK = "package-lock.json",
	/** How long npm may take: a registry that does not answer must not hold up all other tests. */
	INSTALL_MS = 180_000;

export function skip(reason) {
	console.log(IS_REQUIRED ? `${reason}. BROWSER_TESTS=required: a failure, not a skip` : reason);
	process.exit(IS_REQUIRED ? 1 : SKIP);
}

/** @returns {string} what npm says first that is not about itself */
function npmReason({error, stderr}) {
	if (error) return error.code === "ENOENT" ? "there is no npm" : error.message;
	const lines = (stderr ?? "").split("\n").map((line) => line.replace(/^npm (error|ERR!) ?/, "").trim());
	return (
		lines.find((line) => /^(network|request to|\d{3} |.*E[A-Z]{5,})/.test(line)) ??
		lines.find(Boolean) ??
		"no reason given"
	);
}

/**
 * Several tests may install at once: each in a folder of its own, and the first one stays.
 *
 * @param {string} [list] the folder that lists them
 * @returns {(name: string) => any} requires a package
 */
export function packages(list = HERE) {
	const wanted = readFileSync(path.join(list, LOCK)),
		home = path.join(FOLDER, `packages-${createHash("sha256").update(wanted).digest("hex").slice(0, 12)}`);
	if (!existsSync(home)) {
		mkdirSync(FOLDER, {recursive: true});
		const made = mkdtempSync(path.join(FOLDER, "install-"));
		for (const name of ["package.json", LOCK]) copyFileSync(path.join(list, name), path.join(made, name));
		const done = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=2"], {
			cwd: made,
			timeout: INSTALL_MS,
			encoding: "utf8",
		});
		if (done.status === 0 && !existsSync(home)) renameSync(made, home);
		else rmSync(made, {recursive: true, force: true});
		if (!existsSync(home))
			skip(
				`npm cannot install the packages of ${path.relative(SOURCE, list)} (is its registry reachable?): ${npmReason(done)}`,
			);
	}
	return createRequire(path.join(home, "package.json"));
}

/** @returns {string} path of the browser */
function browserPath() {
	for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
		const found = spawnSync("sh", ["-c", `command -v ${name}`], {encoding: "utf8"}).stdout.trim();
		if (found) return found;
	}
	return skip("there is no chromium");
}

/** @returns {Promise<any>} a browser, also for root, without a display, and where /dev/shm is small */
export async function launchBrowser() {
	const {chromium} = packages()("playwright-core"),
		args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
	try {
		return await chromium.launch({executablePath: browserPath(), args});
	} catch (error) {
		const lines = error.message.split("\n"),
			said = lines.find((line) => line.includes("[err]"))?.replace(/^.*\[err\] ?/, "");
		return skip(`chromium does not start: ${said ?? lines[0]}`);
	}
}

/** @returns {string} the self-contained page, with data or without */
export function joinPage(dataFile) {
	return execFileSync(path.join(SOURCE, "viewer/join"), dataFile ? ["--data", dataFile] : [], {
		encoding: "utf8",
		maxBuffer: 1 << 28,
	});
}

if (process.argv[1] === fileURLToPath(import.meta.url)) packages();
