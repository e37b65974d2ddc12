#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The self-contained page in a real browser, from file:. Numbers are compared with the engine under node; what the design asks for is named by its check.
// Pictures are kept in BUILD/viewer/pictures.
import assert from "node:assert/strict";
import {mkdirSync, writeFileSync} from "node:fs";
import path from "node:path";
import test, {after, before} from "node:test";
import * as engine from "../../viewer/cells.js";
import {decodeCells} from "../../viewer/decode.js";
import {formatBytes, formatChange, formatGrowth, formatShare, formatTime, formatWhole} from "../../viewer/format.js";
import {layoutFlame} from "../../viewer/tree.js";
import {faultsOf} from "./axe.mjs";
import {encodeFile} from "./encode.mjs";
import {makeBuild, makeHostile, makeLossy, makeSample, makeServer} from "./made.mjs";
import {FOLDER, joinPage, launchBrowser} from "./packages.mjs";

const PICTURES = path.join(FOLDER, "pictures"),
	WORK = process.env.TMPDIR ?? FOLDER;
const SIZES = [
		[1280, 800, 1],
		[1920, 1080, 1],
		[1920, 1080, 2],
	],
	THEMES = ["light", "dark"];
mkdirSync(PICTURES, {recursive: true});

const made = {
		server: makeServer(),
		lossy: makeLossy(),
		build: makeBuild(),
		hostile: makeHostile(),
		sample: makeSample(),
	},
	files = {},
	models = {};
for (const [name, {trace, cells}] of Object.entries(made)) {
	const data = path.join(WORK, `${name}.data`);
	writeFileSync(data, encodeFile([{trace, cells}]));
	files[name] = path.join(WORK, `${name}.html`);
	writeFileSync(files[name], joinPage(data));
	models[name] = engine.makeModel(
		decodeCells(
			cells.buffer.slice(cells.byteOffset, cells.byteOffset + cells.length),
			trace.threads.length,
			trace.heaps.length,
		),
		trace,
	);
}

let browser;
before(async () => (browser = await launchBrowser()));
after(async () => browser.close());

/** Opens a page; errors of it, and requests other than for itself, fail the test. */
async function open(name, {width = 1280, height = 800, scale = 1, theme = "light", hash = ""} = {}) {
	const context = await browser.newContext({viewport: {width, height}, deviceScaleFactor: scale, colorScheme: theme}),
		page = await context.newPage();
	page.faults = [];
	page.on("pageerror", (error) => page.faults.push(error.stack));
	page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.faults.push(message.text()));
	page.on(
		"request",
		(request) =>
			request.url().split("#")[0] !== `file://${files[name]}` &&
			!request.url().startsWith("data:") &&
			page.faults.push(request.url()),
	);
	await page.goto(`file://${files[name]}${hash}`);
	await page.waitForFunction(() => !document.body.classList.contains("waiting"));
	await settle(page);
	return page;
}

/** Waits until two frames of the screen are drawn. */
const settle = (page) =>
	page.evaluate(
		() =>
			new Promise((done) =>
				requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))),
			),
	);

/** Goes on to another address, which takes a tenth of the time of another page. */
async function goTo(page, hash) {
	await page.evaluate((address) => (location.hash = address), hash || "#view=flame");
	await settle(page);
}

async function close(page) {
	assert.deepEqual(page.faults, [], "no errors, and no request leaves the file (check 22)");
	await page.context().close();
}

async function press(page, key) {
	await page.keyboard.press(key);
	await settle(page);
}

async function click(page, selector, options) {
	await page.click(selector, options);
	await settle(page);
}

const text = (page, selector) => page.textContent(selector);
const classesOf = (page) =>
	page.$$eval("#classes button", (buttons) =>
		buttons.map((button) => [button.getAttribute("aria-pressed"), button.querySelector("b").textContent]),
	);

/** Where a bound is on the screen. */
async function boundAt(page, model, bound) {
	const box = await page.locator("#timeline").boundingBox(),
		{bounds} = model.cells;
	return [
		box.x + 68 + ((bounds[bound] - bounds[0]) / (bounds[model.last] - bounds[0])) * (box.width - 80),
		box.y + 80,
	];
}

async function drag(page, model, from, to) {
	const [x1, y1] = await boundAt(page, model, from),
		[x2] = await boundAt(page, model, to);
	await page.mouse.move(x1, y1);
	await page.mouse.down();
	for (let i = 1; i <= 10; i++) await page.mouse.move(x1 + ((x2 - x1) * i) / 10, y1);
	await page.mouse.up();
	await settle(page);
}

/** The layout that the page has, made here. */
async function layoutOf(page, model, choice, more = {}) {
	const width = await page.$eval("#flame", (box) => box.clientWidth - 1),
		{hits} = engine.selectCells(model, choice, null);
	return layoutFlame(model, {
		hits,
		measure: "bytes",
		by: "function",
		isFolded: true,
		isInverted: false,
		isMerged: false,
		width,
		opened: new Set(),
		focus: "",
		order: null,
		title: "",
		...more,
	});
}

async function pointOf(page, frame) {
	const box = await page.locator("#flame").boundingBox();
	return [box.x + frame.x + Math.min(frame.width / 2, 40), box.y + frame.depth * 24 + 10];
}

const peakChoice = (model) => ({kind: "moment", at: model.cells.peak});

test("check 5: the peak's triangle selects the peak's bytes", async () => {
	const page = await open("server"),
		model = models.server;
	await press(page, "w");
	const [x, y] = await boundAt(page, model, model.cells.peak);
	await page.mouse.click(x, y);
	await settle(page);
	const {peak_bytes: bytes} = made.server.trace.totals;
	assert.equal(engine.selectCells(model, peakChoice(model), null).bytes, bytes);
	assert.match(await text(page, "#selection-words"), new RegExp(`At the peak.*${formatBytes(bytes)} live in`));
	await close(page);
});

test("checks 8 and 3: a drag turns on AIFO alone; sums are the engine's", async () => {
	const page = await open("server"),
		model = models.server;
	await drag(page, model, 60, 140);
	const {classBytes} = engine.selectCells(model, {kind: "window", from: 60, to: 140, classes: 15}, null);
	assert.deepEqual(
		await classesOf(page),
		[...classBytes].map((bytes, i) => [String(i === 1), formatBytes(bytes)]),
	);
	const end = formatTime(model.cells.bounds[140]);
	assert.deepEqual(
		await page.$$eval(".class-words", (all) => all.map((one) => one.textContent)),
		[
			["made and freed here", ""],
			["made here, still there", ` at ${end}`],
			["older, freed here", ""],
			["older, still there", ` at ${end}`],
		].map(([words, when], i) => words + formatBytes(classBytes[i]) + when),
	);
	assert.match(await text(page, "#live"), new RegExp(`^made here, still there at ${end}, `));
	await click(page, "#classes button:nth-child(1)");
	await click(page, "#classes button:nth-child(4)");
	assert.deepEqual(
		(await classesOf(page)).map(([isOn]) => isOn),
		["true", "true", "false", "true"],
	);
	assert.match(await text(page, "#command"), /-tree st -window AIFI\+AIFO\+AOFO \d+ns [\d.]+(s|ms|ns|us)$/);
	await click(page, "#classes button:nth-child(3)", {modifiers: ["Alt"]});
	assert.deepEqual(
		(await classesOf(page)).map(([isOn]) => isOn),
		["false", "false", "true", "false"],
	);
	await close(page);
});

test("never freed is about the window, if there is one", async () => {
	const page = await open("server"),
		model = models.server,
		of = (choice, filters) => formatBytes(engine.selectCells(model, choice, engine.filterCells(model, filters)).bytes);
	await drag(page, model, 60, 140);
	await press(page, "e");
	const window = {kind: "window", from: 60, to: 140, classes: 2};
	assert.equal((await classesOf(page))[1][1], of(window, [{by: "life", key: "40", hide: false}]));
	assert.notEqual((await classesOf(page))[1][1], of(window, []));
	assert.match(await text(page, "#filters"), /never freed/);
	await press(page, "e");
	assert.equal((await classesOf(page))[1][1], of(window, []));
	await press(page, "p");
	await press(page, "e");
	assert.match(await text(page, "#selection-words"), /Whole run/);
	await close(page);
});

test("resident memory is what was measured last, in the legend and on the timeline", async () => {
	const page = await open("server"),
		model = models.server,
		[x, y] = await boundAt(page, model, 119),
		last = model.cells.resident[115];
	assert.ok(Number.isNaN(model.cells.resident[118]) && last > 0);
	await page.mouse.move(x, y);
	await settle(page);
	assert.equal(await text(page, ".legend-row:last-child .value"), formatBytes(last));
	const drawn = await page.evaluate(async () => {
		const lines = [],
			{lineTo} = CanvasRenderingContext2D.prototype;
		CanvasRenderingContext2D.prototype.lineTo = function (x, y) {
			lines.push([x, y]);
			lineTo.call(this, x, y);
		};
		document.getElementById("theme").click();
		await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		CanvasRenderingContext2D.prototype.lineTo = lineTo;
		return lines;
	});
	const box = await page.locator("#timeline").boundingBox(),
		near = ([at]) => Math.abs(at + box.x - x) < 1e-6,
		[, y0] = drawn.find(near);
	const levels = new Set(drawn.filter(near).map(([, at]) => at));
	const [first] = await boundAt(page, model, 117),
		held = drawn.filter(([at, level]) => Math.abs(at + box.x - first) < 1e-6 && levels.has(level));
	assert.ok(held.some(([, level]) => level < y0), "a level line above the areas");
	await close(page);
});

test("handles and the label change the window", async () => {
	const page = await open("server"),
		model = models.server;
	await drag(page, model, 60, 140);
	await drag(page, model, 140, 180);
	const end = (bound) => engine.selectCells(model, {kind: "window", from: 60, to: bound, classes: 2}, null).bytes;
	assert.equal((await classesOf(page))[1][1], formatBytes(end(180)));
	await press(page, "[");
	const {bytes} = engine.selectCells(model, {kind: "window", from: 59, to: 179, classes: 2}, null);
	assert.equal((await classesOf(page))[1][1], formatBytes(bytes));
	await close(page);
});

test("checks 10 and 11: hovering draws a curve, and a search has a sum", async () => {
	const page = await open("server"),
		model = models.server,
		layout = await layoutOf(page, model, peakChoice(model));
	const shot = () => page.locator("#timeline").screenshot();
	const before = await shot(),
		frame = layout.frames.find((other) => other.name === "Image::decode");
	await page.mouse.move(...(await pointOf(page, frame)));
	await settle(page);
	assert.notDeepEqual(await shot(), before);
	assert.match(await text(page, "#tip"), /Image::decode.*55\.8.MiB/s);
	await page.mouse.move(5, 5);
	await page.fill("#search", "json::");
	await settle(page);
	const paths = engine.pathsWith(model, (i) => model.cells.frames[i].full.toLowerCase().includes("json::")),
		{hits} = engine.selectCells(model, peakChoice(model), null);
	let sum = 0;
	for (let i = 0; i < hits.length; i++) if (hits[i] && paths[model.cells.node[i]]) sum += model.cells.bytes[i];
	assert.ok(
		(await text(page, "#search-sum")).startsWith(`≥\u2009${formatBytes(sum)}`),
		"light stacks may have hits, too",
	);
	await press(page, "Enter");
	assert.match(await text(page, "#command"), /-requireFrames '\*json::\*'$/);
	assert.match(await text(page, "#selection-words"), new RegExp(`${formatBytes(sum)} live`));
	await close(page);
});

test("checks 12, 13 and 14: root, chains, all frames", async () => {
	const page = await open("server"),
		model = models.server;
	await press(page, "w");
	const whole = {kind: "window", from: 0, to: model.last, classes: 3},
		{bytes} = engine.selectCells(model, whole, null);
	const label = () => page.getAttribute("#flame", "aria-label");
	assert.match(await label(), new RegExp(`all blocks of the run: ${formatBytes(bytes)}\\.`));
	const layout = await layoutOf(page, model, whole),
		chain = layout.frames.find((frame) => frame.kind === "chain");
	const rows = () => page.$eval(".flame-spacer", (spacer) => (parseFloat(spacer.style.height) - 4) / 24);
	assert.equal(await rows(), layout.rows);
	await page.mouse.click(...(await pointOf(page, chain)));
	await settle(page);
	assert.equal(await rows(), (await layoutOf(page, model, whole, {opened: new Set([chain.key])})).rows);
	await click(page, "#unfolded");
	assert.match(await label(), new RegExp(`: ${formatBytes(bytes)}\\.`));
	for (const [measure, words] of [
		["blocks", "blocks"],
		["temporaries", "temporary"],
		["peak", "peak"],
	]) {
		await click(page, `#measures [data-measure=${measure}]`);
		assert.equal(await page.getAttribute(`#measures [data-measure=${measure}]`, "aria-pressed"), "true", words);
	}
	await close(page);
});

test("a selected frame has its numbers; only this, hide and focus", async () => {
	const page = await open("server"),
		model = models.server,
		layout = await layoutOf(page, model, peakChoice(model));
	const frame = layout.frames.find((other) => other.name === "Cache::insert" || other.name === "Image::decode");
	await page.mouse.click(...(await pointOf(page, frame)));
	await settle(page);
	assert.match(await text(page, "#panel"), new RegExp(`Frame on this path.*${formatBytes(frame.value)}`));
	assert.match(await text(page, "#panel .stack"), /Worker::run/);
	await click(page, "#panel .buttons button:nth-child(1)");
	assert.match(await text(page, "#command"), /-requireFrames 'app!Image::decode\(Bytes\)'$/);
	assert.match(await text(page, "#selection-words"), new RegExp(formatBytes(frame.value)));
	await click(page, "#filters button");
	// A chip that is cut says all of its words.
	const words = "frame_".repeat(15);
	await page.fill("#search", words);
	await page.press("#search", "Enter");
	await page.waitForSelector("#filters button");
	assert.ok((await page.getAttribute("#filters button", "title")).includes(words));
	await click(page, "#filters button");
	assert.match(await text(page, "#selection-words"), new RegExp(formatBytes(layout.total)));
	await page.mouse.dblclick(...(await pointOf(page, frame)));
	await settle(page);
	assert.match(await page.evaluate(() => location.hash), /focus=/);
	await press(page, "Escape");
	assert.doesNotMatch(await page.evaluate(() => location.hash), /focus=/);
	await close(page);
});

test("the table: rows of anything, sorted, with callers and callees", async () => {
	const page = await open("server"),
		model = models.server;
	await press(page, "2");
	const rows = () =>
		page.$$eval(".table-row", (all) =>
			all.map((row) => [row.querySelector(".name").textContent, row.querySelector(".bytes").textContent]),
		);
	assert.deepEqual(
		(await rows())[0],
		["inflateInit2_", formatBytes(58481867)].map((value, i) => (i ? engineSum(model, "inflateInit2_") : value)),
	);
	for (const by of ["stack", "image", "thread", "process", "heap", "size", "life", "inclusive"]) {
		await page.selectOption("#rows", by);
		await settle(page);
		assert.ok((await rows()).length > 0, by);
		assert.match(await text(page, "#command"), /^xheap heap server\.xht -/);
	}
	await page.selectOption("#rows", "function");
	await settle(page);
	await click(page, ".column-number .sorter >> text=Blocks");
	assert.match(await page.getAttribute("[role=columnheader]:has-text('Blocks')", "aria-sort"), /descending/);
	await page.focus(".table-row");
	await press(page, "Enter");
	assert.match(await text(page, ".detail"), /Callers.*Callees/s);
	await close(page);
});

function engineSum(model, name) {
	const {keys} = engine.groupCells(model, "function"),
		{hits} = engine.selectCells(model, peakChoice(model), null);
	let sum = 0;
	for (let i = 0; i < hits.length; i++)
		if (hits[i] && model.cells.frames[keys[i]].short === name) sum += model.cells.bytes[i];
	return formatBytes(sum);
}

test("a search lists functions, and a function its callers; findings say what they are about", async () => {
	const page = await open("server"),
		model = models.server;
	await page.fill("#search", "json::");
	await settle(page);
	const found = await page.$$eval("#panel h2:first-child ~ .link-row", (all) => all.map((row) => row.textContent));
	assert.match(await text(page, "#panel h2"), /Found/);
	assert.ok(found.length > 1 && found.every((row) => /^Json::\w+/.test(row)), String(found));
	await page.$eval("#search", (input) => input.blur());
	const [name, bytes] = /^(Json::\w+?)([\d.]+.\w+)$/.exec(found[0]).slice(1),
		paths = engine.pathsWith(model, (i) => model.cells.frames[i].short === name),
		{hits} = engine.selectCells(model, peakChoice(model), null);
	let sum = 0;
	for (let i = 0; i < hits.length; i++) if (hits[i] && paths[model.cells.node[i]]) sum += model.cells.bytes[i];
	assert.equal(bytes, formatBytes(sum));
	await click(page, "#panel .link-row");
	const said = await text(page, "#panel");
	assert.match(said, /Function, with callees/);
	const caller = /Called by([\w:]+?)(\d+).%/.exec(said);
	assert.ok(caller, said);
	await page.click("#panel .link-row");
	await settle(page);
	assert.match(await text(page, "#panel h3"), new RegExp(caller[1]));
	await press(page, "Escape");
	await press(page, "Escape");
	assert.match(await text(page, "#panel h2"), /Findingsof the whole run$/);
	await click(page, ".legend-row");
	assert.match(await text(page, "#panel h2"), /Findingsof the whole run, not filtered$/);
	await close(page);
});

test("two windows side by side: Shift+drag; what is kept as A can be swapped", async () => {
	const page = await open("server"),
		model = models.server,
		[a, b] = [
			[60, 100],
			[140, 200],
		].map(([from, to]) => engine.selectCells(model, {kind: "window", from, to, classes: 2}, null).bytes);
	await drag(page, model, 60, 100);
	await page.keyboard.down("Shift");
	await drag(page, model, 140, 200);
	await page.keyboard.up("Shift");
	await settle(page);
	const head = () => text(page, "#compare-head");
	assert.match(await head(), new RegExp(`^Amade here.*: ${formatBytes(a)}Bmade here.*: ${formatBytes(b)}`));
	assert.ok((await head()).includes(`${formatChange(b - a)} ${formatGrowth(a, b)}`), await head());
	assert.match(await text(page, "#command"), /^xheap diff server\.xht@\d+ns\.\.\S+ server\.xht@\d+ns\.\.\S+ -frames so$/);
	assert.match(await page.getAttribute("#compare-flame", "aria-label"), /A to B/);
	await click(page, "#compare-head .button >> nth=1");
	assert.match(await head(), new RegExp(`^Amade here.*: ${formatBytes(b)}Bmade here.*: ${formatBytes(a)}`));
	await click(page, "#compare .table-row");
	assert.match(await text(page, "#panel"), /^Function.*Numbers of A: made here, still there/);
	const shot = () => page.locator("#timeline").screenshot();
	await press(page, "Escape");
	const compared = await shot();
	await press(page, "1");
	const left = await shot();
	assert.notDeepEqual(left, compared, "A and B are marked in Compare alone");
	await press(page, "6");
	await press(page, "Escape");
	assert.match(await head(), /Press m/);
	await press(page, "1");
	assert.deepEqual(await shot(), left);
	const other = await open("server", {hash: "#view=compare"});
	assert.match(await text(other, "#compare-head"), /Press m/);
	await press(other, "m");
	assert.match(await text(other, "#compare-head"), /0.B$|0.B.*Swap$/);
	await close(other);
	await close(page);
});

test("a file has no single blocks, and says so", async () => {
	const page = await open("server");
	await press(page, "3");
	assert.match(await text(page, "#notice"), /xheap view does/);
	const reason = /^No single blocks: this file does not say that; xheap view does$/;
	assert.match(await text(page, "#blocks .table-body"), reason);
	await press(page, "d");
	assert.match(await text(page, "#blocks .table-body"), reason, "it stays");
	await close(page);
});

test("check 15: few rows are in the document", async () => {
	const page = await open("build", {hash: "#view=table&rows=stack&by=process"});
	assert.ok((await page.$$(".table-row")).length <= 60);
	await page.$eval("#table", (box) => (box.scrollTop = box.scrollHeight));
	await settle(page);
	assert.ok((await page.$$(".table-row")).length <= 60);
	await close(page);
});

test("check 19: an address is a picture; back, forward and u restore steps", async () => {
	const page = await open("server"),
		model = models.server;
	await drag(page, model, 100, 200);
	await press(page, "i");
	await page.fill("#search", "cache");
	await page.$eval("#search", (input) => input.blur());
	await page.mouse.move(5, 5);
	await settle(page);
	const other = await open("server", {hash: await page.evaluate(() => location.hash)});
	for (const one of [page, other]) await one.$eval("#cost", (cost) => (cost.style.visibility = "hidden"));
	assert.ok((await other.screenshot()).equals(await page.screenshot()), "the same picture");
	await close(other);
	const words = () => page.getAttribute("#inverted", "aria-pressed");
	await press(page, "u");
	assert.equal(await words(), "false");
	assert.equal(await page.isVisible("#classes"), true);
	await press(page, "u");
	assert.equal(await page.isVisible("#classes"), false);
	await page.goForward();
	await settle(page);
	assert.equal(await page.isVisible("#classes"), true);
	await page.goBack();
	await settle(page);
	assert.match(await text(page, "#selection-words"), /At the peak/);
	await press(page, "u");
	assert.match(
		await text(page, "#selection-words"),
		/At the peak/,
		"back to the first step there is nothing to undo",
	);
	await press(page, "w");
	await page.reload();
	await page.waitForFunction(() => !document.body.classList.contains("waiting"));
	await press(page, "u");
	assert.match(await text(page, "#selection-words"), /At the peak/, "also after a reload");
	await close(page);
});

test("check 20: losses are shown; a whole trace has none of it", async () => {
	const lossy = await open("lossy");
	assert.match(await text(lossy, "#state"), /306.k lost in one gap, so sums are lower bounds/);
	assert.match(await text(lossy, "#selection-words"), /uncertain/);
	await press(lossy, "w");
	assert.ok((await classesOf(lossy)).every(([, value]) => value.startsWith("≥")));
	await drag(lossy, models.lossy, 200, 240);
	assert.ok(
		(await classesOf(lossy)).every(([, value]) => !value.startsWith("≥")),
		"this window does not touch the gap",
	);
	await click(lossy, "#state");
	assert.match(await text(lossy, "#state-list"), /xheap info lossy\.xht/);
	await close(lossy);
	const whole = await open("server");
	assert.doesNotMatch(await text(whole, "#state"), /lower bounds/);
	await press(whole, "w");
	assert.ok((await classesOf(whole)).every(([, value]) => !value.includes("≥")));
	await close(whole);
});

test("marks stand on the timeline, and say what happened", async () => {
	const page = await open("server"),
		box = await page.locator("#timeline").boundingBox(),
		tip = page.locator("#tip");
	const at = (share) => [box.x + 68 + share * (box.width - 80), box.y + box.height - 22 - 26 + 6];
	await page.mouse.move(...at(5 / 20));
	await settle(page);
	assert.match(await tip.textContent(), /◆ 5.00.s +ready! 5.01.s +7 events are lost/);
	await page.mouse.move(...at(10 / 20));
	await settle(page);
	assert.equal(await tip.isVisible(), false);
	await page.mouse.move(...at(1));
	await settle(page);
	assert.match(await tip.textContent(), /✕ 20.0.s +app 4711: signal 9/);
	await click(page, "#state");
	assert.match(await text(page, "#state-list"), /at 5.01.s: 7 events are lost/);
	assert.doesNotMatch(await text(page, "#state-list"), /ready/);
	await close(page);
});

test("a finding selects the stack that it is about", async () => {
	const page = await open("server"),
		{trace} = made.server,
		model = models.server,
		finding = trace.findings[1],
		id = engine.stackId(finding.stack.map(([image, full]) => `${image}!${full}`)),
		node = engine.findGroup(model, "stack", id);
	assert.ok(node >= 0);
	const at = engine.nearestBound(model, finding.select.at_ns),
		{hits} = engine.selectCells(model, {kind: "moment", at}, null),
		{keys} = engine.groupCells(model, "stack"),
		sum = hits.reduce((bytes, hit, i) => bytes + (hit && keys[i] === node ? model.cells.bytes[i] : 0), 0);
	await press(page, "w");
	await click(page, ".finding >> nth=1");
	assert.match(await text(page, "#selection-words"), /At 15.0/);
	assert.equal(await text(page, "#panel .numbers dd"), formatBytes(sum));
	assert.match(await text(page, "#panel h2"), /Stack/);
	const outlined = await page.evaluate(() => {
		const canvas = document.querySelector("#flame canvas"),
			{data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
		let count = 0;
		for (let i = 0; i < data.length; i += 4)
			count += Number(data[i] === 0x0b && data[i + 1] === 0x5c && data[i + 2] === 0xad);
		return count;
	});
	assert.ok(outlined > 40, "its frame has an edge");
	await press(page, "Escape");
	assert.match(await text(page, ".finding >> nth=1"), /holds 71 % of the peak, in one stack/);
	await press(page, "Escape");
	await click(page, ".finding >> nth=0");
	assert.match(await text(page, "#panel h2"), /Function, with callees/, "of a stack that cells do not have");
	assert.deepEqual(
		(await classesOf(page)).map(([isOn]) => isOn),
		["false", "true", "false", "false"],
	);
	await close(page);
});

test("what grows is by net change; keys work where they lead to; a finding of pages opens the map", async () => {
	const page = await open("server"),
		focused = () => page.evaluate(() => document.activeElement?.closest("#body > *")?.id ?? ""),
		hash = () => page.evaluate(() => location.hash);
	await press(page, "g");
	assert.match(await hash(), /view=table.*sort=change|sort=change.*view=table/);
	const changes = await page.$$eval("#table .table-row .column-number:nth-child(6)", (all) =>
		all.map((cell) => cell.classList.contains("more")),
	);
	assert.ok(changes[0] && changes.lastIndexOf(true) < (changes.indexOf(false) + changes.length) % changes.length, String(changes));
	for (const [key, id] of [["1", "flame"], ["4", "sizes"], ["2", "table"]]) {
		await press(page, key);
		assert.equal(await focused(), id);
	}
	await press(page, "1");
	await press(page, "ArrowDown");
	assert.notEqual(await text(page, "#live"), "", "an arrow moves in the flame");
	await page.fill("#search", "json::");
	await page.press("#search", "Enter");
	await settle(page);
	await press(page, "p");
	assert.equal(await page.inputValue("#search"), "", "the next key is no text");
	await close(page);
	const pinned = made.server.trace.findings.find(({kind}) => kind === "pinned"),
		other = await open("server");
	await click(other, `.finding >> nth=${made.server.trace.findings.indexOf(pinned)}`);
	const address = new URLSearchParams((await other.evaluate(() => location.hash)).slice(1));
	assert.equal(address.get("view"), "map");
	assert.equal(JSON.parse(address.get("item")).by, "function");
	await close(other);
});

test("each lifetime has a label, and the sheet of keys its button", async () => {
	const page = await open("server", {width: 1920, height: 500, hash: "#view=sizes&selection=-1~~AIFI%2BAIFO"}),
		labels = await page.$$eval("#sizes .kind-life", (all) => all.map((one) => one.textContent));
	assert.ok(labels.length > 4 && labels.every(Boolean), labels.join());
	await press(page, "?");
	const sheet = await page.locator("#keys-dialog").boundingBox(),
		button = await page.locator("#keys-dialog .dialog-close").boundingBox();
	assert.ok(button.y + button.height <= sheet.y + sheet.height, "which stands above rows that are to come");
	assert.equal(await page.evaluate(() => document.getElementById("keys-dialog").scrollTop), 0);
	await close(page);
});

test("a search that finds nothing selected says what the run has", async () => {
	const page = await open("server", {hash: "#selection=0~1~AOFI"});
	await page.fill("#search", "json::");
	await settle(page);
	assert.match(await text(page, "#panel"), /Found0none selected; made in the whole run[\d.]+.\wiB/);
	await click(page, "#panel .link-row");
	assert.match(await text(page, "#panel"), /Found[1-9]/);
	await close(page);
});

test("a stack of a function is not taken for the function", async () => {
	const model = models.server,
		{cells} = model,
		{hits, bytes} = engine.selectCells(model, {kind: "window", from: 0, to: model.last, classes: 3}, null),
		[stacks, functions] = ["stack", "function"].map((by) => {
			const {keys, count} = engine.groupCells(model, by),
				sums = new Float64Array(count);
			hits.forEach((hit, i) => (sums[keys[i]] += hit && cells.bytes[i]));
			return sums;
		});
	const node = stacks.findIndex((sum, at) => sum && sum < functions[cells.frame[at]]),
		item = {kind: "group", by: "stack", key: engine.groupName(model, "stack", node).id},
		share = formatShare(functions[cells.frame[node]] / bytes);
	const page = await open("server", {
		hash: `#selection=-1~~AIFI%2BAIFO&item=${encodeURIComponent(JSON.stringify(item))}`,
	});
	assert.match(await text(page, "#panel .numbers"), new RegExp(`its function, in all stacks${share}`));
	await close(page);
});

test("estimates of a sample are marked, and so are sums beside lumped stacks", async () => {
	const sample = await open("sample");
	assert.match(await text(sample, "#selection-words"), /~[\d.]+.MiB live in ~/);
	assert.match(await text(sample, "#state"), /sample/);
	await press(sample, "w");
	assert.ok((await classesOf(sample)).every(([, value]) => value.startsWith("~")));
	await close(sample);
	const page = await open("server"),
		layout = await layoutOf(page, models.server, peakChoice(models.server));
	for (const [name, mark] of [
		["Image::decode", "≥"],
		["Server::serve", ""],
	]) {
		await page.mouse.click(
			...(await pointOf(
				page,
				layout.frames.find((frame) => frame.name === name),
			)),
		);
		await settle(page);
		assert.match(await text(page, "#panel .numbers dd"), new RegExp(`^${mark}\\s?[\\d.]+.MiB$`), name);
	}
	await click(page, "#state");
	assert.match(await text(page, "#state-list"), /41 light stacks are sent as \[smaller stacks\]/);
	await close(page);
});

test("check 21: hostile names do nothing but stand there", async () => {
	const page = await open("hostile"),
		model = models.hostile;
	const harmless = async (what) => {
		assert.equal(await page.evaluate(() => "broken" in window), false, what);
		assert.equal(
			await page.evaluate(
				() =>
					document.documentElement.scrollWidth <= window.innerWidth &&
					document.body.scrollWidth <= window.innerWidth,
			),
			true,
			`${what}: not wider than the window`,
		);
		assert.equal(
			await page.$$eval("script, img, iframe", (all) => all.length),
			2,
			"the data and the script of the page",
		);
	};
	await harmless("first");
	const layout = await layoutOf(page, model, peakChoice(model));
	for (const frame of layout.frames.filter((other) => other.depth === 2).slice(0, 14)) {
		await page.mouse.click(...(await pointOf(page, frame)));
		await settle(page);
		await harmless("a frame");
	}
	await page.locator("#panel").screenshot({path: path.join(PICTURES, "hostile-panel.png")});
	await click(page, "#panel .buttons button:nth-child(1)");
	await harmless("a filter");
	await press(page, "2");
	for (const by of ["function", "stack", "thread", "process", "heap", "inclusive"]) {
		await page.selectOption("#rows", by);
		await settle(page);
		await harmless(`rows by ${by}`);
	}
	await click(page, "#state");
	await harmless("the state");
	await press(page, "Escape");
	const shown = await page.evaluate(() => document.body.innerText);
	assert.doesNotMatch(shown, /[\u202a-\u202e\u2066-\u2069\u200b-\u200f\ufeff\u001b]/);
	await close(page);
});

test("check 23: keys alone; no trap; axe finds nothing serious", async () => {
	const filters = encodeURIComponent(JSON.stringify([{by: "image", key: "app", hide: false}]));
	const item = encodeURIComponent(JSON.stringify({kind: "group", by: "function", key: "app!Cache::grow()"}));
	for (const [name, hashes] of Object.entries({
		server: ["", "#view=table", "#view=compare", "#view=compare&other=0,0,12000000000", `#item=${item}&search=cache`, `#filters=${filters}&isInverted=1&measure=blocks`],
		lossy: ["#selection=-1~~AIFI%2BAIFO"],
	})) {
		const page = await open(name);
		for (const [hash, theme] of hashes.flatMap((hash) => THEMES.map((theme) => [hash, theme]))) {
			await page.emulateMedia({colorScheme: theme});
			await goTo(page, hash);
			// Only colours depend on the theme.
			assert.deepEqual(await faultsOf(page, theme === "dark"), [], `${name}${hash} ${theme}`);
		}
		for (const button of ["#keys", "#state"]) {
			await click(page, button);
			assert.deepEqual(await faultsOf(page, false), [], `${name}: the dialog of ${button}`);
			await press(page, "Escape");
		}
		page.faults.length = 0;
		await close(page);
	}
	const page = await open("server"),
		visited = [];
	for (let i = 0; i < 60; i++) {
		await page.keyboard.press("Tab");
		visited.push(
			await page.evaluate(
				() => document.activeElement.id || document.activeElement.className || document.activeElement.tagName,
			),
		);
		if (visited.at(-1) === "BODY") break;
	}
	const order = [
		"search",
		"copy-address",
		"theme",
		"keys",
		"answer-link",
		"state",
		"timeline",
		"legend-row",
		"preset",
		"view-flame",
		"flame",
		"panel",
		"copy-command",
	];
	const places = order.map((name) => visited.indexOf(name));
	assert.ok(
		places.every((place) => place >= 0),
		`${order[places.indexOf(-1)]} is not reached: ${visited}`,
	);
	assert.deepEqual(
		places,
		[...places].sort((a, b) => a - b),
		`the order of Tab: ${visited}`,
	);
	await page.focus("#flame");
	for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Space"]) await press(page, key);
	assert.match(await text(page, "#panel"), /selected/);
	await press(page, "Escape");
	await page.focus(".legend-row");
	await press(page, "Enter");
	assert.equal(
		await page.evaluate(() => document.activeElement.className),
		"legend-row",
		"the focus stays where it was",
	);
	assert.equal(await page.getAttribute(".legend-row", "aria-pressed"), "true");
	await press(page, "Escape");
	await page.focus("#timeline");
	await press(page, "ArrowLeft");
	assert.match(await page.getAttribute("#timeline", "aria-valuetext"), /blocks$/);
	await press(page, "Shift+ArrowLeft");
	assert.equal(await page.isVisible("#classes"), true);
	await press(page, "?");
	assert.equal(await page.isVisible("#keys-dialog"), true);
	assert.equal(await page.evaluate(() => document.getElementById("keys-dialog").scrollTop), 0);
	for (const words of ["dragon the timeline", "≥at least", "≡a run of frames", "~an estimate"])
		assert.ok((await text(page, "#keys-list")).includes(words), words);
	await press(page, "Escape");
	await press(page, "/");
	await page.keyboard.type("p2we");
	assert.equal(await page.inputValue("#search"), "p2we", "no key works while text is typed");
	await close(page);
});

/** Texts that lie over each other, or beyond their row. */
const overlaps = () => {
	const found = [];
	for (const row of document.querySelectorAll(
		"header, #which, footer, #tabs-row, .table-head, .table-row, #answer, .numbers",
	)) {
		const boxes = [...row.children]
			.filter((child) => child.getClientRects().length && !child.matches(".hidden-text, .space"))
			.map((child) => [child, child.getBoundingClientRect()]);
		boxes.forEach(([a, first], i) =>
			boxes.slice(i + 1).forEach(([b, second]) => {
				if (
					first.right > second.left + 1 &&
					second.right > first.left + 1 &&
					first.bottom > second.top + 1 &&
					second.bottom > first.top + 1
				)
					found.push(`${a.id || a.className} over ${b.id || b.className}`);
			}),
		);
		for (const [child, box] of boxes)
			if (box.right > row.getBoundingClientRect().right + 1) found.push(`${child.id || child.className} beyond its row`);
	}
	return found;
};

test("check 24: sizes and themes; the page does not scroll, no text overlaps", async () => {
	const states = {
		first: ["server", ""],
		window: ["server", "#selection=8000000000~15000000000~AIFO"],
		table: ["server", "#view=table&selection=8000000000~15100000000~AIFO"],
		build: ["build", "#by=process&selection=-1~~AIFI%2BAIFO"],
		lossy: ["lossy", "#selection=-1~~AIFI%2BAIFO"],
		search: ["server", "#search=cache"],
		compare: ["server", "#view=compare&other=0,0,12000000000&selection=15100000000"],
		inverted: ["server", "#isInverted=1"],
		item: [
			"server",
			`#item=${encodeURIComponent(JSON.stringify({kind: "group", by: "function", key: "app!Cache::grow()"}))}`,
		],
		hostile: ["hostile", "#view=table"],
	};
	for (const name of new Set(Object.values(states).map(([name]) => name)))
		for (const [width, height, scale] of SIZES) {
			if (scale === 2 && name !== "server") continue;
			const page = await open(name, {width, height, scale});
			for (const [state, theme] of Object.keys(states).flatMap((state) =>
				THEMES.map((theme) => [state, theme]),
			)) {
				if (states[state][0] !== name || (scale === 2 && state !== "first")) continue;
				const what = `${state}-${width * scale}-${theme}`;
				await page.emulateMedia({colorScheme: theme});
				await goTo(page, states[state][1]);
				await page.screenshot({path: path.join(PICTURES, `${what}.png`)});
				assert.deepEqual(
					await page.evaluate(() => [
						document.documentElement.scrollHeight <= window.innerHeight,
						document.documentElement.scrollWidth <= window.innerWidth,
					]),
					[true, true],
					`${what} does not scroll`,
				);
				assert.deepEqual(await page.evaluate(overlaps), [], what);
			}
			await close(page);
		}
});

test("a double click shows the whole run; processes begin with the largest one", async () => {
	const page = await open("server", {hash: '#range={"from":1000000000,"to":9000000000}&selection=2000000000'});
	await page.mouse.dblclick(...(await boundAt(page, models.server, 100)));
	await settle(page);
	assert.match(await text(page, "#selection-words"), /Whole run/);
	assert.doesNotMatch(await page.evaluate(() => location.hash), /range/);
	assert.equal(await page.inputValue("#legend select"), "function");
	await close(page);
	const build = await open("build"),
		shown = await build.$$eval("#panel .link-row .value", (all) => all.map((one) => one.textContent)),
		peaks = engine.processPeaks(models.build).toSorted((a, b) => b - a);
	assert.deepEqual(shown, peaks.slice(0, 12).map(formatBytes));
	assert.equal(await build.inputValue("#legend select"), "process");
	await close(build);
	const {trace, cells} = made.build,
		alone = path.join(WORK, "alone.data");
	const first = trace.threads.map((thread) => ({...thread, process: 0}));
	writeFileSync(alone, encodeFile([{trace: {...trace, threads: first}, cells}]));
	writeFileSync((files.alone = path.join(WORK, "alone.html")), joinPage(alone));
	const page2 = await open("alone");
	assert.equal(await page2.inputValue("#legend select"), "function", "one process has it all");
	await close(page2);
});

test("windows in between: the table stays, and its columns have room", async () => {
	for (const width of [1440, 1490]) {
		const page = await open("server", {width, hash: "#view=table"});
		for (const key of ["w", "p", "w"]) {
			await press(page, key);
			assert.equal(await page.isVisible("#table"), true, `${width}, ${key}`);
			assert.equal(await page.$eval("#table", (box) => box.scrollWidth <= box.clientWidth), true, `${width}, ${key}`);
		}
		await close(page);
	}
});

test("small windows: the panel lies over the pane, and nothing is lost at 200 %", async () => {
	const page = await open("server", {width: 640, height: 600});
	assert.equal(await page.isVisible("#panel"), false);
	await press(page, "2");
	await click(page, ".table-row");
	assert.equal(await page.isVisible("#panel"), true);
	assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), true);
	await page.screenshot({path: path.join(PICTURES, "small.png")});
	await close(page);
});
