#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The page with a server: the token, finer bounds, freeing stacks, and what it says when answers are missing. The server is a stand-in with made data.
import assert from "node:assert/strict";
import {createServer} from "node:http";
import {readFileSync} from "node:fs";
import path from "node:path";
import test, {after, before} from "node:test";
import {selectCells, makeModel} from "../../viewer/cells.js";
import {decodeCells} from "../../viewer/decode.js";
import {formatBytes} from "../../viewer/format.js";
import {hashText} from "../../viewer/hash.js";
import {encodeCells} from "./encode.mjs";
import {makeServer} from "./made.mjs";
import {launchBrowser, SOURCE} from "./packages.mjs";

const TOKEN = "0123456789abcdef";
const TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"};
const POLICY =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const made = makeServer({count: 5000}),
	{scene, trace} = made;
/** What the next answers are: a function of the response, by request. */
let faults = {};
/** Requests that came, without the files of the page. */
const asked = [];

function cellsFor(query) {
	if (!["from", "bounds", "node"].some((word) => query.has(word))) return made.cells;
	const from = Number(query.get("from") ?? -1),
		to = Number(query.get("to") ?? trace.duration_ns),
		n = Number(query.get("n") ?? 256);
	const wanted = (query.get("bounds") ?? "").split(",").filter(Boolean).map(Number),
		peak = scene.bounds[scene.peak];
	const bounds = [
		...new Set([
			...Array.from({length: n + 1}, (_, i) => Math.round(from + ((to - from) * i) / n)),
			...wanted,
			...(peak > from && peak < to ? [peak] : []),
		]),
	].sort((a, b) => a - b);
	const below = query.has("node") ? stacksBelow(query.get("node")) : {};
	return encodeCells({...scene, ...below, bounds, peak: bounds.indexOf(peak), intervals: {}, whole: !query.has("from")});
}

/** @returns {number[]} the nodes of a stack, outermost first */
function pathOf(node) {
	return node < 0 ? [] : [...pathOf(scene.nodes[node].parent), node];
}

const keyOf = (node) => scene.functions[scene.nodes[node].function].slice(0, 3).filter((_, i) => i !== 1).join("!"),
	isLump = (node) => keyOf(node) === "![smaller stacks]",
	LARGE = 1 << 24;

/** Blocks below a stack. What is lumped elsewhere has its path here, and blocks that cannot be overlooked. */
function stacksBelow(frames) {
	const nodes = scene.nodes.map((node) => ({...node, stacks: 0}));
	for (const node of nodes) if (node.parent >= 0 && isLump(node.parent)) node.parent = scene.nodes[node.parent].parent;
	return {
		nodes,
		lumpedStacks: 0,
		lumpedBytes: 0,
		blocks: scene.blocks
			.filter(({node}) => `${pathOf(node).map(keyOf).join("\n")}\n`.startsWith(`${frames}\n`))
			.map((block) => ({...block, size: pathOf(block.node).some(isLump) ? LARGE : block.size})),
	};
}

const ANSWERS = {
	trace: (query, response) => response.end(JSON.stringify(trace)),
	cells: (query, response) => response.end(cellsFor(query)),
	frees: (query, response) =>
		response.end(
			JSON.stringify({
				stacks: [
					{
						frames: [
							["app", "Cache::drop", "Cache::drop()", "src/cache.cc", 17, 0],
							["app", "main", "main", "", 0, 0],
						],
						blocks: 3,
						bytes: 4096,
					},
					{
						frames: [
							["app", "Cache::drop", "Cache::drop()", "src/cache.cc", 17, 0],
							["app", "Cache::clear", "Cache::clear()", "", 0, 0],
						],
						blocks: 1,
						bytes: 2048,
					},
				],
				left_out: 17,
				blocks: 12,
				bytes: 16384,
				never_freed: {blocks: 1, bytes: 1024},
			}),
		),
};

function answer(request, response) {
	const {pathname, searchParams} = new URL(request.url, "http://localhost"),
		name = pathname.slice(1);
	response.setHeader("Content-Security-Policy", POLICY);
	if (!ANSWERS[name]) {
		const file = name || "index.html";
		response.setHeader("Content-Type", TYPES[path.extname(file)] ?? "text/plain");
		response.end(readFileSync(path.join(SOURCE, "viewer", path.basename(file))));
		return;
	}
	asked.push({name, query: searchParams, headers: request.headers});
	assert.match(request.headers["x-xheap-page"], /^[0-9a-z]{1,32}$/, "as the server takes it");
	if (request.headers["x-xheap-token"] !== TOKEN) {
		response.statusCode = 403;
		response.end("the token is missing or wrong");
		return;
	}
	(faults[name] ?? ANSWERS[name])(searchParams, response);
}

let browser, server, address;
before(async () => {
	browser = await launchBrowser();
	server = createServer(answer);
	await new Promise((done) => server.listen(0, "127.0.0.1", done));
	address = `http://127.0.0.1:${server.address().port}/`;
});
after(async () => {
	await browser.close();
	server.close();
	server.closeAllConnections();
});

async function open(fragment = `#token=${TOKEN}`) {
	const context = await browser.newContext({viewport: {width: 1280, height: 800}}),
		page = await context.newPage();
	page.errors = [];
	page.on("pageerror", (error) => page.errors.push(error.stack));
	await page.goto(address + fragment);
	return page;
}

const loaded = (page) => page.waitForFunction(() => !document.body.classList.contains("waiting"));
const settle = (page) =>
	page.evaluate(
		() =>
			new Promise((done) =>
				requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))),
			),
	);
const text = (page, selector) => page.textContent(selector);

async function close(page) {
	assert.deepEqual(page.errors, []);
	await page.context().close();
	faults = {};
}

test("the token goes from the address to a header", async () => {
	const page = await open();
	await loaded(page);
	assert.equal(await page.evaluate(() => location.hash), "");
	assert.equal(asked.at(-1).headers["x-xheap-token"], TOKEN);
	assert.ok(asked.every(({headers}) => !headers.cookie && !headers.referer));
	await page.reload();
	await loaded(page);
	await close(page);
	const other = await open("");
	await other.waitForSelector("#token-form:not([hidden])");
	assert.match(await text(other, "#sentence"), /token/);
	assert.equal(await other.isVisible("#progress"), false, "nothing goes on");
	await other.fill("#token", TOKEN);
	await other.click("#token-form button");
	await loaded(other);
	await close(other);
});

test("progress is shown while an answer is made, and then the answer", async () => {
	faults = {
		cells: (query, response) => {
			response.statusCode = 202;
			response.end(JSON.stringify({share: 0.41, seconds_left: 12}));
		},
	};
	const page = await open();
	await page.waitForFunction(() => /Reading the trace: 41/.test(document.getElementById("sentence").textContent));
	assert.match(await text(page, "#sentence"), /41.%, about 12(\.0)?.s left/);
	faults = {};
	await loaded(page);
	assert.match(await text(page, "#sentence"), /At most/);
	await close(page);
});

test("while another trace is read, the sentence stays", async () => {
	let left = 3;
	faults = {
		trace: (query, response) => response.end(JSON.stringify({...trace, traces: [{name: "a.xht"}, {name: "b.xht"}]})),
		cells: (query, response) => {
			if (query.get("trace") === "0" || !left--) return ANSWERS.cells(query, response);
			response.statusCode = 202;
			response.end(JSON.stringify({share: 0.41, seconds_left: 12}));
		},
	};
	const page = await open();
	await loaded(page);
	await settle(page);
	const said = await text(page, "#sentence");
	await page.keyboard.press("6");
	await page.waitForSelector("#compare:not(.empty)");
	assert.ok(left < 0, "it was being made");
	await settle(page);
	assert.match(said, /At most/);
	assert.equal(await text(page, "#sentence"), said);
	assert.match(await text(page, "#cost"), /cells in/);
	await close(page);
});

test("a focus shows the stacks that are lumped in the whole, in any window", async () => {
	const serve = scene.nodes.findIndex((_, node) => /!Server::serve/.test(keyOf(node))),
		focus = pathOf(serve).map((node) => hashText(keyOf(node)).toString(36));
	asked.length = 0;
	const page = await open(`#token=${TOKEN}&focus=${focus.join(".")}`);
	await loaded(page);
	const hasFiner = () => page.waitForFunction(() => /Cache::grow/.test(document.getElementById("flame").ariaLabel));
	await hasFiner();
	const [request, ...others] = asked.filter(({query}) => query.has("node"));
	assert.equal(request.query.get("node"), pathOf(serve).map(keyOf).join("\n"));
	assert.equal(others.length, 0);
	await page.keyboard.press("w");
	await settle(page);
	await hasFiner();
	assert.match(await page.getAttribute("#flame", "aria-label"), /all blocks of the run/);
	await page.keyboard.press("i");
	await settle(page);
	assert.doesNotMatch(await page.getAttribute("#flame", "aria-label"), /Cache::grow/);
	assert.equal(asked.filter(({query}) => query.has("node")).length, 1, "asked once");
	await close(page);
});

test("checks 1 and 6: the first picture asks twice, and a drag for nothing", async () => {
	asked.length = 0;
	const page = await open();
	await loaded(page);
	await settle(page);
	assert.deepEqual(asked.map(({name}) => name).sort(), ["cells", "trace"]);
	for (const [selector, words] of [
		["#sentence", /At most/],
		["#panel", /Findings/],
	])
		assert.match(await text(page, selector), words);
	for (const [selector, name] of [
		["#flame", "aria-label"],
		["#timeline", "aria-valuetext"],
	])
		assert.ok(await page.getAttribute(selector, name), selector);
	const box = await page.locator("#timeline").boundingBox(),
		before = await text(page, "#selection-words");
	await page.mouse.move(box.x + 200, box.y + 60);
	await page.mouse.down();
	for (let step = 1; step <= 60; step++) await page.mouse.move(box.x + 200 + 8 * step, box.y + 60);
	await settle(page);
	assert.notEqual(await text(page, "#selection-words"), before);
	await page.mouse.up();
	await settle(page);
	assert.equal(asked.length, 2, "no request");
	await close(page);
});

/** @returns {boolean} whether what both lists have is in the same order */
function isOneOrder(list, other) {
	const common = (one, two) => one.filter((key) => two.includes(key)).join("\n");
	return common(list, other) === common(other, list);
}

test("check 7: a drag moves no frame and no row past another; the release sorts them", async () => {
	const page = await open();
	await loaded(page);
	const box = await page.locator("#timeline").boundingBox(),
		moveTo = (share) => page.mouse.move(box.x + 68 + share * (box.width - 80), box.y + 60),
		isFalling = (values) => values.every((value, i) => !i || value <= values[i - 1]);
	// No element has the layout of frames, so the page's own module says what it draws.
	await page.evaluate(async () => {
		const {Flame} = await import("/flame.js"),
			{render} = Flame.prototype;
		Flame.prototype.render = function () {
			render.call(this);
			window.frames = this.layout.frames;
		};
	});
	/** By caller: names of its frames from left to right, and their values. */
	const framesOf = () =>
		page.evaluate(() => {
			const lists = {};
			for (const {parent, name, kind, depth, value} of window.frames.toSorted((a, b) => a.x - b.x))
				if (depth > 0 && depth <= 3 && kind !== "small")
					(lists[window.frames[parent].path] ??= []).push([name, value]);
			return lists;
		});
	const rowsOf = async () => ({
		"": await page.$$eval("#table [data-index]", (rows) =>
			rows.map((row) => [row.querySelector(".name").textContent, parseFloat(row.querySelector(".bar").style.width)]),
		),
	});
	for (const [view, shown] of [
		["flame", framesOf],
		["flame&isInverted=1", framesOf],
		["table", rowsOf],
	]) {
		await page.evaluate((name) => (location.hash = `#view=${name}`), view);
		await settle(page);
		// Few blocks live at this moment, so most frames come in the drag.
		await moveTo(0.005);
		await page.mouse.down();
		await page.mouse.up();
		await settle(page);
		await moveTo(0.02);
		await page.mouse.down();
		let before = {},
			unsorted = 0;
		for (let step = 1; step <= 40; step++) {
			await moveTo(0.02 + step / 42);
			await settle(page);
			const now = await shown();
			for (const [caller, list] of Object.entries(now)) {
				const [names, others] = [list, before[caller] ?? []].map((all) => all.map(([name]) => name));
				assert.ok(isOneOrder(names, others), `${view}, step ${step}: ${others} became ${names}`);
				unsorted += Number(!isFalling(list.map(([, value]) => value)));
			}
			before = now;
		}
		assert.ok(unsorted > 0, `${view}: sizes have another order at times`);
		await page.mouse.up();
		await settle(page);
		for (const list of Object.values(await shown())) assert.ok(isFalling(list.map(([, value]) => value)), view);
	}
	await close(page);
});

test("check 9: a zoom has finer bounds, and its sums are those of single blocks", async () => {
	const page = await open();
	await loaded(page);
	await settle(page);
	const box = await page.locator("#timeline").boundingBox();
	await page.mouse.move(box.x + 500, box.y + 60);
	await page.focus("#timeline");
	await page.keyboard.press("+");
	await page.waitForFunction(() => /range/.test(location.hash));
	const isFiner = () =>
		asked.some(
			({name, query}) =>
				name === "cells" &&
				query.has("from") &&
				Number(query.get("to")) - Number(query.get("from")) <= trace.duration_ns / 3.9,
		);
	for (let i = 0; i < 200 && !isFiner(); i++) await page.waitForTimeout(50);
	const {query} = asked.filter(({name}) => name === "cells").at(-1);
	await page.waitForFunction(() => document.getElementById("timeline").getAttribute("aria-valuetext"));
	const bytes = cellsFor(query),
		model = makeModel(
			decodeCells(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), trace.threads.length, 1),
			trace,
		);
	assert.ok((model.cells.bounds[101] - model.cells.bounds[100]) * 3.9 <= scene.bounds[101] - scene.bounds[100]);
	const x = (bound) =>
		box.x +
		68 +
		((model.cells.bounds[bound] - Number(query.get("from"))) /
			(Number(query.get("to")) - Number(query.get("from")))) *
			(box.width - 80);
	const sums = () => page.$$eval("#classes b", (all) => all.map((one) => one.textContent));
	const expected = [...selectCells(model, {kind: "window", from: 100, to: 150, classes: 15}, null).classBytes].map(
		formatBytes,
	);
	for (let i = 0; i < 40; i++) {
		await page.mouse.move(x(100), box.y + 60);
		await page.mouse.down();
		await page.mouse.move(x(120), box.y + 60);
		await page.mouse.move(x(150), box.y + 60);
		await page.mouse.up();
		await settle(page);
		if ((await sums()).join() === expected.join()) break;
		await page.waitForTimeout(50);
	}
	assert.deepEqual(await sums(), expected);
	const count = asked.length;
	await page.mouse.move(x(90), box.y + 60);
	await page.mouse.down();
	for (let i = 90; i < 150; i++) await page.mouse.move(x(i), box.y + 60);
	await page.mouse.up();
	await settle(page);
	assert.equal(asked.length, count, "a drag makes no request");
	const hash = await page.evaluate(() => location.hash);
	await page.keyboard.press("-");
	await close(page);
	const other = await open(`#token=${TOKEN}&${hash.slice(1)}`);
	await loaded(other);
	await settle(other);
	assert.match(await text(other, "#command"), /-window AIFO \d+/);
	await close(other);
});

test("freeing stacks are asked for", async () => {
	const page = await open();
	await loaded(page);
	await page.keyboard.press("2");
	await page.click(".table-row");
	await page.waitForFunction(() => /Cache::drop/.test(document.getElementById("panel").textContent));
	const said = await text(page, "#panel");
	assert.match(said, /src\/cache\.cc:17/);
	assert.match(said, /Freed by\s*of 16\.0\sKiB, not the \S+\s\S+ above\s*25\s%\s4\.0\sKiB in 3 blocks/);
	assert.match(said, /17 more stacks, 9\.0\sKiB\s*never freed, 1\.0\sKiB/);
	assert.match(said, /2\.0\sKiB in 1 block1 frame as above, thenCache::clear/, "stacks that begin alike differ at once");
	const query = asked.findLast(({name}) => name === "frees").query;
	assert.ok(query.has("asker") && !query.has("node"), `of all stacks of the function: ${query}`);
	await close(page);
});

test("check 25: what is missing is said in one line, and the rest stays", async () => {
	const failures = {
		"cut short": {cells: (query, response) => response.end(made.cells.subarray(0, made.cells.length >> 1))},
		"the server answers 404|no such trace": {
			trace: (query, response) => {
				response.statusCode = 404;
				response.end("no such trace");
			},
		},
		"the trace is being rewritten": {
			cells: (query, response) => {
				response.statusCode = 500;
				response.end("the trace is being rewritten\nsecond line");
			},
		},
		JSON: {trace: (query, response) => response.end("{")},
	};
	for (const [words, fault] of Object.entries(failures)) {
		faults = fault;
		const page = await open();
		await page.waitForSelector("#sentence [role=alert]");
		assert.match(await text(page, "#sentence"), new RegExp(words));
		assert.doesNotMatch(await text(page, "#sentence"), /second line/);
		await close(page);
	}
	faults = {
		trace: (query, response) =>
			response.end(
				JSON.stringify({
					...trace,
					damage: "the trace ends in the middle of a block, at byte 17",
					state: [{kind: "damage", text: "damaged", command: "xheap info"}],
				}),
			),
	};
	const page = await open();
	await loaded(page);
	assert.match(await text(page, "#damage"), /at byte 17/);
	assert.match(await page.getAttribute("#state", "class"), /loud/);
	await settle(page);
	faults = {cells: (query, response) => response.destroy()};
	const before = await text(page, "#selection-words");
	await page.focus("#timeline");
	await page.keyboard.press("+");
	await page.waitForSelector("#ended:not([hidden])");
	assert.match(await text(page, "#ended"), /the server has ended; run xheap view server\.xht again/);
	await page.keyboard.press("w");
	await settle(page);
	assert.notEqual(await text(page, "#selection-words"), before, "what is loaded goes on working");
	await close(page);
});
