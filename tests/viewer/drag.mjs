// SPDX-License-Identifier: MIT
// Check 6 of the design: what a frame costs while a window is dragged over the most cells that a page may get. No test: it prints numbers, and asserts none.
// Times are of the page's thread on its processor, so that a busy machine changes them little.
//
//     node tests/viewer/drag.mjs [CELLS]
import {writeFileSync} from "node:fs";
import path from "node:path";
import {encodeCells, encodeFile} from "./encode.mjs";
import {browserPath, FOLDER, joinPage, packages} from "./packages.mjs";
import {randomFrom} from "./random.mjs";

const CELLS = Number(process.argv[2] ?? 400_000),
	NODES = CELLS / 20,
	FUNCTIONS = 2000,
	PROCESSES = 25,
	STEPS = 60,
	DURATION = 20e9,
	INTERVALS = 256;

/** A build: a tree of calls that is deep and broad, whose blocks live for any time. */
function makeLarge() {
	const random = randomFrom(3),
		below = (limit) => Math.floor(random() * limit),
		skewed = (limit) => Math.floor(random() ** 3 * limit);
	const functions = Array.from({length: FUNCTIONS}, (_, i) => [
		`lib${i % 40}.so`,
		`space::function_${i}`,
		`space::function_${i}(int)`,
		"",
		0,
	]);
	const nodes = [],
		depths = [];
	for (let i = 0; i < NODES; i++) {
		// Parents are mostly recent: stacks of some twenty frames.
		let parent = i < 4 ? -1 : random() < 0.7 ? i - 1 - below(Math.min(i, 8)) : below(i);
		if (parent >= 0 && depths[parent] > 40) parent = below(Math.min(i, 4));
		depths.push(parent < 0 ? 0 : depths[parent] + 1);
		nodes.push({parent, function: skewed(FUNCTIONS), asker: parent >= 0 && random() < 0.5 ? parent : i});
		if (nodes[i].asker !== i) nodes[i].asker = nodes[parent].asker;
	}
	const blocks = Array.from({length: CELLS}, () => {
		const thread = below(PROCESSES),
			begin = Math.round((DURATION * (thread + random() * 4)) / (PROCESSES + 4)),
			isFreed = random() < 0.8;
		return {
			node: below(NODES),
			thread,
			heap: thread,
			size: 1 + below(1 << below(16)),
			begin,
			end: Math.min(DURATION, Math.round(begin + random() ** 4 * DURATION)),
			kind: isFreed ? 0 : 2,
		};
	});
	const bounds = Array.from({length: INTERVALS + 1}, (_, i) => Math.round((DURATION * i) / INTERVALS));
	bounds[0] = -1;
	const rows = Array.from({length: PROCESSES}, (_, i) => ({pid: 100 + i, name: "cc1plus", begin_ns: 0}));
	const trace = {
		schema: 1,
		traces: [{name: "large.xht"}],
		path: "large.xht",
		command: "make",
		duration_ns: DURATION,
		processes: rows,
		threads: rows.map((row, i) => ({process: i, tid: row.pid, name: row.name})),
		heaps: rows.map((_, i) => ({process: i, name: "malloc", handle: "0x0"})),
		events: CELLS * 2,
		totals: {peak_bytes: 1, peak_at_us: 1, outstanding_bytes: 1},
		answer: {peak_function: ["lib0.so", "space::function_0(int)"], peak_share: 0.1, peak_process: 0, growth: null},
		findings: [],
		state: [],
		gaps: [],
		marks: [],
		sample_bytes: 0,
	};
	const intervals = {
		max_bytes: bounds.slice(1).map((_, i) => 1e9 + i * 1e6),
		calls: bounds.slice(1).map((_, i) => 1000 + i),
	};
	return {trace, cells: encodeCells({blocks, nodes, functions, bounds, peak: 100, intervals})};
}

function show(what, values) {
	const sorted = [...values].sort((a, b) => a - b),
		at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(1);
	console.log(
		`${what.padEnd(34)} median ${at(0.5).padStart(6)}   p95 ${at(0.95).padStart(6)}   most ${at(1).padStart(6)} ms`,
	);
}

const {chromium} = packages()("playwright-core"),
	large = makeLarge(),
	data = path.join(FOLDER, "large.data"),
	file = path.join(FOLDER, "large.html");
writeFileSync(data, encodeFile([large]));
writeFileSync(file, joinPage(data));
const browser = await chromium.launch({executablePath: browserPath(), args: ["--no-sandbox", "--disable-gpu"]}),
	page = await browser.newPage({viewport: {width: 1280, height: 800}}),
	session = await page.context().newCDPSession(page);
const cpu = async () => {
	const {metrics} = await session.send("Performance.getMetrics");
	return metrics.find(({name}) => name === "TaskDuration").value * 1000;
};
const frame = () =>
	page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
await session.send("Performance.enable", {timeDomain: "threadTicks"});
for (const [what, hash] of [
	["flame by process", "#by=process"],
	["flame by function", "#by=function"],
	["inverted by function", "#by=function&isInverted=1"],
	["table of functions", "#view=table&by=function"],
	["table of stacks", "#view=table&by=process&rows=stack"],
	[
		"flame, one frame selected",
		`#by=function&item=${encodeURIComponent('{"kind":"group","by":"function","key":"lib1.so!space::function_1(int)"}')}`,
	],
]) {
	await page.goto("about:blank");
	await page.goto(`file://${file}${hash}`);
	await page.waitForFunction(() => !document.body.classList.contains("waiting"));
	await frame();
	const box = await page.locator("#timeline").boundingBox(),
		x = (step) => box.x + 100 + (step * (box.width - 160)) / STEPS,
		costs = [];
	await page.mouse.move(x(0), box.y + 60);
	await page.mouse.down();
	for (let step = 1; step <= STEPS; step++) {
		const before = await cpu();
		await page.mouse.move(x(step), box.y + 60);
		await frame();
		costs.push((await cpu()) - before);
	}
	await page.mouse.up();
	show(what, costs);
}
await browser.close();
