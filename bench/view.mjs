#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// What xheap view costs: times of the server's answers and of the page in a browser, and the memory of both.
//
//     bench/view.mjs [--events MILLIONS] [--trace FILE] [--rounds N]
//
// Records objects.py (default 50 million events) or takes FILE. Each round begins a server and opens the page in a fresh browser context: the first one
// without an index, the others with it. Then come zooms and filters at random places, asked as the page asks. Prints medians and the 95th
// percentiles, and ends with what was asked for and measured.
import {spawn, spawnSync} from "node:child_process";
import {existsSync, mkdtempSync, readFileSync, readdirSync, rmSync} from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import {fileURLToPath} from "node:url";
import {parseArgs} from "node:util";
import {launchBrowser} from "../tests/viewer/packages.mjs";
import {randomFrom} from "../tests/viewer/random.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url)),
	XHEAP = path.join(process.env.BUILD ?? path.join(HERE, "../build"), "xheap"),
	{values: options} = parseArgs({
		options: {
			events: {type: "string", default: "50"},
			trace: {type: "string"},
			rounds: {type: "string", default: "5"},
		},
	}),
	EVENTS_PER_ROUND = 1.39e6 /* of objects.py */,
	ZOOMS = 20,
	ASK_AGAIN_MS = 20,
	LIMITS = {"first picture with index, ms": 1000, "zoom p95, ms": 300, "server, MiB": 300};
const random = randomFrom(1);

const sorted = (values) => [...values].sort((a, b) => a - b);
const median = (values) => sorted(values)[values.length >> 1];
const p95 = (values) => sorted(values)[Math.min(values.length - 1, Math.floor(values.length * 0.95))];

function run(...words) {
	const {status, stderr} = spawnSync(words[0], words.slice(1), {encoding: "utf8"});
	if (status !== 0) throw new Error(`${words.join(" ")}: ${stderr}`);
}

/** Private memory of a process and all below it, in MiB. */
function privateMib(pid) {
	const parents = new Map();
	for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
		try {
			const text = readFileSync(`/proc/${name}/status`, "utf8");
			parents.set(Number(name), [
				Number(/PPid:\s+(\d+)/.exec(text)[1]),
				Number(/RssAnon:\s+(\d+)/.exec(text)?.[1] ?? 0),
			]);
		} catch {
			// It has ended.
		}
	}
	const isBelow = (at) => at === pid || (parents.has(at) && isBelow(parents.get(at)[0]));
	let sum = 0;
	for (const [at, [, kib]] of parents) if (isBelow(at)) sum += kib;
	return sum / 1024;
}

/** Processor time of a process, which other work changes little, in ms. */
function processorMs(pid) {
	const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
	return (Number(fields[11]) + Number(fields[12])) * 10;
}

function askOnce({port, token}, target) {
	return new Promise((done, failed) =>
		http
			.get({host: "127.0.0.1", port, path: target, headers: {"X-Xheap-Token": token}}, (response) => {
				const pieces = [];
				response.on("data", (piece) => pieces.push(piece));
				response.on("end", () => done({status: response.statusCode, body: Buffer.concat(pieces)}));
			})
			.on("error", failed),
	);
}

/** As the page asks: until the answer is there. @returns its body and the milliseconds */
async function ask(server, target) {
	const begin = performance.now();
	for (;;) {
		const {status, body} = await askOnce(server, target);
		if (status === 200) return {body, ms: performance.now() - begin};
		if (status !== 202) throw new Error(`${target}: ${status} ${body}`);
		await new Promise((done) => setTimeout(done, ASK_AGAIN_MS));
	}
}

async function serve(trace) {
	const child = spawn(XHEAP, ["view", "--no-open", trace], {stdio: ["ignore", "pipe", "inherit"]});
	const line = await new Promise((done) => child.stdout.once("data", (text) => done(String(text).split("\n")[0])));
	const [, port, token] = /:(\d+)\/#token=(\w+)/.exec(line);
	return {child, address: line, port: Number(port), token};
}

const found = {};
function note(name, value) {
	(found[name] ??= []).push(value);
}

/** @param {boolean} isFirst without an index */
async function round(trace, browser, isFirst) {
	const begin = performance.now(),
		server = await serve(trace),
		page = await (await browser.newContext({viewport: {width: 1280, height: 800}})).newPage();
	await page.goto(server.address);
	await page.waitForFunction(() => !document.body.classList.contains("waiting"), null, {timeout: 0});
	note(`first picture ${isFirst ? "without" : "with"} index, ms`, performance.now() - begin);
	note(`server's CPU to there ${isFirst ? "without" : "with"} index, ms`, processorMs(server.child.pid));
	note("trace again, ms", (await ask(server, "/trace?trace=0")).ms);
	const facts = JSON.parse((await ask(server, "/trace?trace=0")).body);
	const before = processorMs(server.child.pid);
	for (let i = 0; i < ZOOMS; i++) {
		const length = facts.duration_ns / 4 ** (1 + (i % 4)),
			from = Math.floor(random() * (facts.duration_ns - length));
		note("zoom, ms", (await ask(server, `/cells?trace=0&n=256&from=${from}&to=${Math.floor(from + length)}`)).ms);
	}
	note("server's CPU of a zoom, ms", (processorMs(server.child.pid) - before) / ZOOMS);
	for (const filter of ["-size%0A100%0A1000", "-lifetime%0A1ms%0A1s"])
		note("filter, ms", (await ask(server, `/cells?trace=0&n=256&filter=${filter}`)).ms);
	note("server, MiB", privateMib(server.child.pid));
	note("browser, MiB", privateMib(process.pid) - privateMib(server.child.pid));
	await page.context().close();
	server.child.kill();
	await new Promise((done) => server.child.once("exit", done));
}

const folder = mkdtempSync(path.join(os.tmpdir(), "xheap-view-"));
try {
	const trace = options.trace ?? path.join(folder, "objects.xht");
	process.env.XDG_CACHE_HOME = path.join(folder, "cache");
	process.env.PYTHONMALLOC = "malloc";
	const rounds = String(Math.max(1, Math.round((Number(options.events) * 1e6) / EVENTS_PER_ROUND)));
	if (!existsSync(trace))
		run(XHEAP, "record", "-q", "-o", trace, "--", "/usr/bin/python3", path.join(HERE, "objects.py"), rounds);
	const browser = await launchBrowser();
	for (let i = 0; i < Number(options.rounds); i++) await round(trace, browser, i === 0);
	await browser.close();
} finally {
	rmSync(folder, {recursive: true, force: true});
}
for (const [name, values] of Object.entries(found))
	console.log(`${name}: ${median(values).toFixed(1)}, p95 ${p95(values).toFixed(1)}, of ${values.length}`);
const measured = {
	"first picture with index, ms": median(found["first picture with index, ms"] ?? [NaN]),
	"zoom p95, ms": p95(found["zoom, ms"]),
	"server, MiB": median(found["server, MiB"]),
};
for (const [name, limit] of Object.entries(LIMITS))
	console.log(`${name}: ${measured[name].toFixed(1)} (at most ${limit}) ${measured[name] <= limit ? "ok" : "MISSED"}`);
