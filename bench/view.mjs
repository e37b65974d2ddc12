#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// What xheap view costs: times of the server's answers and of the page in a browser, and the memory of both.
//
//     bench/view.mjs [--events MILLIONS] [--trace FILE [--heaptrack FILE]] [--rounds N] [--zooms N]
//
// Records objects.py (default 50 million events), with heaptrack, too, where there is one, or takes files. Each round begins a server and opens the page in a
// fresh browser context: the first one without an index, the others with it. Each ends with dragged windows, zooms to random places, and filters. Then the same
// run is loaded by heaptrack_print and heaptrack_gui, and its stacks by speedscope. Prints medians and the 95th percentiles of times and of processor times, which
// other work on the machine changes little, and ends with what was asked for and measured.
import {spawn, spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, readdirSync, rmSync} from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import {fileURLToPath} from "node:url";
import {parseArgs} from "node:util";
import {launchBrowser, packages} from "../tests/viewer/packages.mjs";
import {randomFrom} from "../tests/viewer/random.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url)),
	XHEAP = path.join(process.env.BUILD ?? path.join(HERE, "../build"), "xheap"),
	{values: options} = parseArgs({
		options: {
			events: {type: "string", default: "50"},
			trace: {type: "string"},
			heaptrack: {type: "string"},
			rounds: {type: "string", default: "3"},
			zooms: {type: "string", default: "8"},
		},
	}),
	EVENTS_PER_ROUND = 1.39e6 /* of objects.py */,
	VIEWPORT = {width: 1280, height: 800},
	ASK_AGAIN_MS = 20,
	TICK_MS = 10 /* of times in /proc */,
	DRAG_STEPS = 40,
	QUIET_MS = 3000,
	OFFSCREEN = {env: {...process.env, QT_QPA_PLATFORM: "offscreen"}, stdio: "ignore"},
	LIMITS = [
		["first picture with an index", "ms", median, 1000],
		["zoom, the server's answer", "ms", p95, 300],
		["server's memory", "MiB", median, 300],
	];
const random = randomFrom(1);

function at(values, share) {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
function median(values) {
	return at(values, 0.5);
}
function p95(values) {
	return at(values, 0.95);
}

function run(...words) {
	const {status, stdout, stderr} = spawnSync(words[0], words.slice(1), {encoding: "utf8", maxBuffer: 1 << 30});
	if (status !== 0) throw new Error(`${words.join(" ")}: ${stderr}`);
	return stdout;
}

/** The fields of /proc/PID/stat behind the name: 1 is the parent, from 11 on times. */
function statOf(pid) {
	try {
		return readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
	} catch {
		return null; // It has ended.
	}
}

/** @returns {number[]} all processes that descend from this one */
function below(pid) {
	const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && statOf(name)?.[1] === String(pid));
	return all.flatMap((name) => [Number(name), ...below(name)]);
}

function sum(pids, value) {
	return pids.reduce((total, pid) => total + (value(pid) || 0), 0);
}

const processorMs = (pids) => sum(pids, (pid) => sum([11, 12], (i) => Number(statOf(pid)?.[i])) * TICK_MS);

function privateMib(pids) {
	return sum(pids, (pid) => {
		try {
			return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
		} catch {
			return 0; // It has ended.
		}
	});
}

function askOnce({port, token}, target) {
	return new Promise((done, failed) =>
		http
			.get({host: "127.0.0.1", port, path: target, headers: {"X-Xheap-Token": token}, agent: false}, (response) => {
				const pieces = [];
				response.on("data", (piece) => pieces.push(piece));
				response.on("end", () => done({status: response.statusCode, body: Buffer.concat(pieces)}));
			})
			.on("error", failed),
	);
}

/** Asks until the answer is there. @returns its body */
async function ask(server, target) {
	for (;;) {
		const {status, body} = await askOnce(server, target);
		if (status === 200) return body;
		if (status !== 202) throw new Error(`${target}: ${status} ${body}`);
		await new Promise((done) => setTimeout(done, ASK_AGAIN_MS));
	}
}

async function serve(trace) {
	const child = spawn(XHEAP, ["view", "--no-open", trace], {stdio: ["ignore", "pipe", "inherit"]});
	const line = await new Promise((done) => child.stdout.once("data", (text) => done(String(text).split("\n")[0])));
	const [, port, token] = /:(\d+)\/#token=(\w+)/.exec(line);
	return {child, address: line, port: Number(port), token, pids: [child.pid]};
}

/** By name: lists of figures. */
const found = new Map();
function note(name, figures) {
	const lists = found.get(name) ?? {};
	for (const [kind, value] of Object.entries(figures)) (lists[kind] ??= []).push(value);
	found.set(name, lists);
}

const pidsOfBrowser = (server) => below(process.pid).filter((pid) => !server?.pids.includes(pid));

/** Notes how long something takes, and the processor time of the server, or of the browser, or of both. */
async function timed(name, server, hasBrowser, act) {
	const browser = hasBrowser ? pidsOfBrowser(server) : [],
		before = [processorMs(server?.pids ?? []), processorMs(browser)],
		begin = performance.now();
	const result = await act();
	const figures = {ms: performance.now() - begin};
	if (server) figures["server's CPU"] = processorMs(server.pids) - before[0];
	if (hasBrowser) figures["browser's CPU"] = processorMs(pidsOfBrowser(server)) - before[1];
	note(name, figures);
	return result;
}

/** Changes the address, and waits until the answer that this needs is on the screen. */
function changeTo(page, address) {
	return page.evaluate(async (hash) => {
		const frame = () => new Promise((done) => requestAnimationFrame(done));
		performance.clearResourceTimings();
		location.hash = hash;
		// 0: it was given up; 202: it is being made.
		const answer = () =>
			performance
				.getEntriesByType("resource")
				.find(({name, responseStatus}) => /\/cells\?/.test(name) && ![0, 202].includes(responseStatus));
		while (!answer()) await frame();
		if (answer().responseStatus !== 200) throw new Error(`${hash}: refused`);
		await frame();
		await frame();
	}, address);
}

/** Frames while a window is dragged over the timeline: time of the page's thread, as in tests/viewer/drag.mjs. */
async function drag(page) {
	const session = await page.context().newCDPSession(page),
		box = await page.locator("#timeline").boundingBox(),
		x = (step) => box.x + 100 + (step * (box.width - 160)) / DRAG_STEPS,
		taskMs = async () => {
			const {metrics} = await session.send("Performance.getMetrics");
			return metrics.find(({name}) => name === "TaskDuration").value * 1000;
		};
	await session.send("Performance.enable", {timeDomain: "threadTicks"});
	await page.mouse.move(x(0), box.y + 60);
	await page.mouse.down();
	for (let step = 1; step <= DRAG_STEPS; step++) {
		const before = await taskMs(),
			begin = performance.now();
		await page.mouse.move(x(step), box.y + 60);
		await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
		note("a frame while a window is dragged", {
			ms: performance.now() - begin,
			"browser's CPU": (await taskMs()) - before,
		});
	}
	await page.mouse.up();
}

/** @param {boolean} isFirst without an index */
async function round(trace, browser, isFirst) {
	const page = await (await browser.newContext({viewport: VIEWPORT})).newPage(),
		begin = performance.now(),
		idle = processorMs(pidsOfBrowser()),
		server = await serve(trace);
	await page.goto(server.address);
	await page.waitForFunction(() => !document.body.classList.contains("waiting"), null, {timeout: 0});
	note(`first picture ${isFirst ? "without" : "with"} an index`, {
		ms: performance.now() - begin,
		"server's CPU": processorMs(server.pids),
		"browser's CPU": processorMs(pidsOfBrowser(server)) - idle,
	});
	const {duration_ns: duration} = JSON.parse(await ask(server, "/trace?trace=0"));
	await drag(page);
	for (let i = 0; i < Number(options.zooms); i++) {
		const length = duration / 4 ** (1 + (i % 4)),
			ranges = [0, 1].map(() => Math.floor(random() * (duration - length))),
			[direct, seen] = ranges.map((from) => ({from, to: Math.floor(from + length)}));
		const target = `/cells?trace=0&n=256&from=${direct.from}&to=${direct.to}`;
		await timed("zoom, the server's answer", server, false, () => ask(server, target));
		await timed("zoom, on the screen", server, true, () => changeTo(page, `#range=${JSON.stringify(seen)}`));
	}
	for (const words of ["-size 100 1000", "-lifetime 1ms 1s"]) {
		const target = `/cells?trace=0&n=256&filter=${encodeURIComponent(words.replaceAll(" ", "\n"))}`;
		await timed("filter, the server's answer", server, false, () => ask(server, target));
		await timed("filter, on the screen", server, true, () => changeTo(page, `#words=${encodeURIComponent(words)}`));
	}
	note("server's memory", {MiB: privateMib(server.pids)});
	note("browser's memory", {MiB: privateMib(pidsOfBrowser(server))});
	await page.context().close();
	server.child.kill();
	await new Promise((done) => server.child.once("exit", done));
}

async function speedscope(trace, browser, folder) {
	const file = path.join(folder, "trace.json"),
		root = path.dirname(packages(path.join(HERE, "../tests/viewer/export")).resolve("speedscope/package.json")),
		page = await (await browser.newContext({viewport: VIEWPORT})).newPage();
	run(XHEAP, "export", trace, "-format", "speedscope", "-o", file);
	await page.goto(`file://${root}/dist/release/index.html`);
	const title = await page.title();
	await timed("speedscope loads all stacks", null, true, async () => {
		await page.setInputFiles("input[type=file]", file);
		await page.waitForFunction((before) => document.title !== before, title, {timeout: 0});
	});
	note("browser's memory with speedscope", {MiB: privateMib(pidsOfBrowser())});
	await page.context().close();
}

function heaptrackPrint(file) {
	const ended = () => sum([13, 14], (i) => Number(statOf(process.pid)[i])) * TICK_MS,
		cpu = ended(),
		begin = performance.now();
	run("heaptrack_print", file);
	note("heaptrack_print", {ms: performance.now() - begin, CPU: ended() - cpu});
}

/** The window of heaptrack_gui says nothing when it is done: it is, when it has used no processor time for a while. */
async function heaptrackGui(file) {
	const begin = performance.now(),
		child = spawn("heaptrack_gui", [file], OFFSCREEN);
	let cpu = 0,
		last = begin;
	while (child.exitCode === null && performance.now() - last < QUIET_MS) {
		await new Promise((done) => setTimeout(done, TICK_MS));
		const now = processorMs([child.pid]);
		if (now > cpu) last = performance.now();
		cpu = Math.max(cpu, now);
	}
	if (child.exitCode !== null) throw new Error(`heaptrack_gui has ended: ${child.exitCode}`);
	note("heaptrack_gui", {ms: last - begin, CPU: cpu, MiB: privateMib([child.pid])});
	child.kill();
}

const folder = mkdtempSync(path.join(os.tmpdir(), "xheap-view-"));
try {
	const trace = options.trace ?? path.join(folder, "objects.xht");
	let heaptrack = options.heaptrack;
	process.env.XDG_CACHE_HOME = path.join(folder, "cache");
	if (!options.trace) {
		process.env.PYTHONMALLOC = "malloc";
		const rounds = String(Math.max(1, Math.round((Number(options.events) * 1e6) / EVENTS_PER_ROUND))),
			program = ["/usr/bin/python3", path.join(HERE, "objects.py"), rounds];
		run(XHEAP, "record", "-q", "-o", trace, "--", ...program);
		if (spawnSync("heaptrack", ["--version"]).status === 0) {
			run("heaptrack", "-o", path.join(folder, "heaptrack"), ...program);
			heaptrack = path.join(folder, readdirSync(folder).find((name) => name.startsWith("heaptrack.")));
		}
	}
	const browser = await launchBrowser();
	for (let i = 0; i < Number(options.rounds); i++) await round(trace, browser, i === 0);
	await speedscope(trace, browser, folder);
	await browser.close();
	if (heaptrack) {
		heaptrackPrint(heaptrack);
		if (!spawnSync("heaptrack_gui", ["--version"], OFFSCREEN).error) await heaptrackGui(heaptrack);
	}
} finally {
	rmSync(folder, {recursive: true, force: true});
}
for (const [name, lists] of found)
	for (const [kind, values] of Object.entries(lists))
		console.log(`${name}, ${kind}: ${median(values).toFixed(1)}, p95 ${p95(values).toFixed(1)}, of ${values.length}`);
for (const [name, kind, figure, limit] of LIMITS) {
	const measured = figure(found.get(name)?.[kind] ?? []);
	console.log(`${name}: ${measured.toFixed(1)} ${kind} (at most ${limit}) ${measured <= limit ? "ok" : "MISSED"}`);
}
