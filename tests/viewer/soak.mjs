// SPDX-License-Identifier: MIT
// A part of `make soak`: a busy session in an open page. The memory of the server and of the page stays flat. MINUTES: how long, 10 by default.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {once} from "node:events";
import {mkdtempSync, readFileSync, rmSync} from "node:fs";
import path from "node:path";
import {createInterface} from "node:readline";
import {FOLDER, launchBrowser} from "./packages.mjs";

const BUILD = path.dirname(FOLDER),
	XHEAP = path.join(BUILD, "xheap"),
	WORK = mkdtempSync("/tmp/xheap-soak-"),
	MINUTES = Number(process.env.MINUTES ?? 10),
	MIB = 1 << 20;
/** Looks, the first part of which is for what is made once; and what memory may differ by after them. Cells become more until the run has all intervals. */
const LOOKS = 20,
	SETTLED = 8,
	SERVER_MIB = 24,
	PAGE_MIB = 12;
/** Blocks that are made and freed in turn, some of which stay for a while. */
const STEPS = [9000, -6000, 5000, -8000];

const program = spawn(path.join(BUILD, "tests/viewer/obeys"), {stdio: ["pipe", "pipe", "inherit"]}),
	lines = createInterface({input: program.stdout})[Symbol.asyncIterator]();
await lines.next();
spawnSync(XHEAP, ["start", "soak", "-p", String(program.pid), "-o", "soak.xht"], {cwd: WORK});
const server = spawn(XHEAP, ["view", "--no-open", "--session", "soak"], {cwd: WORK}),
	[address] = await once(createInterface({input: server.stdout}), "line"),
	browser = await launchBrowser(),
	page = await browser.newPage();
const faults = [];
page.on("pageerror", (error) => faults.push(error.stack));
await page.goto(address);
const client = await page.context().newCDPSession(page);
let isOver = false,
	calls = 0;
const busy = (async () => {
	for (let i = 0; !isOver; i++) {
		program.stdin.write(`${STEPS[i % STEPS.length]}\n`);
		await lines.next();
		calls += Math.abs(STEPS[i % STEPS.length]);
		await new Promise((done) => setTimeout(done, 20));
	}
})();
const looks = [];
try {
	for (let i = 0; i < LOOKS; i++) {
		await page.waitForTimeout((MINUTES * 60_000) / LOOKS);
		await client.send("HeapProfiler.collectGarbage");
		const {usedSize} = await client.send("Runtime.getHeapUsage"),
			resident = Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1]) * 1024,
			words = await page.textContent("#recording-words");
		looks.push({server: resident / MIB, page: usedSize / MIB, words});
		console.log(
			`${calls.toLocaleString("en")} calls: server ${(resident / MIB).toFixed(1)} MiB, page ${(usedSize / MIB).toFixed(1)} MiB; ${words}`,
		);
	}
	const late = looks.slice(SETTLED),
		grown = (name) => Math.max(...late.map((look) => look[name])) - late[0][name];
	assert.deepEqual(faults, []);
	assert.ok(looks.every(({words}) => /is recorded, as of/.test(words)), "the page goes on");
	assert.equal(new Set(looks.map(({words}) => words)).size, LOOKS, "each look shows another time");
	assert.ok(grown("server") < SERVER_MIB, `the server has ${grown("server").toFixed(1)} MiB more`);
	assert.ok(grown("page") < PAGE_MIB, `the page has ${grown("page").toFixed(1)} MiB more`);
} finally {
	isOver = true;
	await busy;
	spawnSync(XHEAP, ["stop", "soak"], {cwd: WORK});
	program.stdin.end();
	server.kill();
	await browser.close();
	rmSync(WORK, {recursive: true});
}
