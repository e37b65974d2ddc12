#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The page over the real server, in a browser: its numbers are those of `xheap heap` for the same selection, and the command that it shows has its rows.
// Then the self-contained file of the same trace, and the end of the server.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {writeFileSync} from "node:fs";
import path from "node:path";
import test, {after, before} from "node:test";
import {CLASSES, makeModel, selectCells} from "../../viewer/cells.js";
import {decodeCells} from "../../viewer/decode.js";
import {commandTime, formatBlocks, formatBytes, formatChange, formatCount, formatWhole, lifeLimit, lifeName, sizeName} from "../../viewer/format.js";
import {layoutFlame} from "../../viewer/tree.js";
import {faultsOf} from "./axe.mjs";
import {FOLDER as FOLDER_OF_BUILD, launchBrowser, SOURCE} from "./packages.mjs";
import {randomFrom} from "./random.mjs";

const XHEAP = process.env.XHEAP ?? path.join(SOURCE, "build/xheap"),
	WORK = process.env.TMPDIR ?? "/tmp",
	FOLDER = path.join(SOURCE, "tests/golden/traces"),
	TRACES = ["libstdcxx.xht", "processes.xht", "libcxx.xht", "c.xht"],
	TITLES = {peak: "size at the peak", total: "total size", outstanding: "outstanding size"},
	WINDOWS = 4,
	ROWS = 10;

const PICTURES = path.join(FOLDER_OF_BUILD, "pictures");
let browser, server, address;
/** @returns {Promise<[any, string]>} a server, and its address */
async function serve(...files) {
	const served = spawn(XHEAP, ["view", "--no-open", ...files], {cwd: WORK, stdio: ["ignore", "pipe", "inherit"]});
	const found = await new Promise((done, failed) => {
		let said = "";
		served.stdout.on("data", (text) => {
			said += text;
			const printed = /http:\/\/\S+/.exec(said);
			if (printed) done(printed[0]);
		});
		served.on("exit", (status) => failed(new Error(`the server ended with ${status}: ${said}`)));
	});
	return [served, found];
}
before(async () => {
	browser = await launchBrowser();
	[server, address] = await serve(...TRACES.map((name) => path.join(FOLDER, name)));
});
after(async () => {
	server.kill();
	await browser.close();
});

const settle = (page) =>
	page.evaluate(
		() =>
			new Promise((done) =>
				requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))),
			),
	);
const text = (page, selector) => page.textContent(selector);
/** Waits until the first classes have these bytes. */
const showsClasses = (page, wanted) =>
	page.waitForFunction(
		(bytes) =>
			[...document.querySelectorAll("#classes b")]
				.slice(0, bytes.length)
				.map((one) => one.textContent)
				.join() === bytes.join(),
		wanted,
	);

async function open(url) {
	const page = await (await browser.newContext({viewport: {width: 1280, height: 800}})).newPage(),
		[origin] = url.split("#");
	page.faults = [];
	page.on("pageerror", (error) => page.faults.push(error.stack));
	page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.faults.push(message.text()));
	page.on("request", (request) => {
		if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) page.faults.push(request.url());
	});
	await page.goto(url);
	await page.waitForFunction(() => !document.body.classList.contains("waiting"));
	await settle(page);
	return page;
}

async function close(page) {
	assert.deepEqual(page.faults, [], "no errors, and no request leaves the server");
	await page.context().close();
}

/** Goes on to another selection. */
async function goTo(page, hash) {
	await page.evaluate((words) => (location.hash = words), hash);
	await settle(page);
}

function run(...words) {
	const done = spawnSync(XHEAP, words, {encoding: "utf8", maxBuffer: 1 << 28});
	assert.ok(done.status === 0, `${words.join(" ")}: ${done.stderr}`);
	return done.stdout;
}

const heap = (...words) => JSON.parse(run("heap", ...words, "-noIndex", "-format", "json"));

async function boundsOf(number) {
	const [origin, token] = address.split("#token="),
		headers = {"X-Xheap-Token": token};
	const trace = await (await fetch(`${origin}trace?trace=${number}`, {headers})).json();
	const cells = decodeCells(
		await (await fetch(`${origin}cells?trace=${number}&n=256`, {headers})).arrayBuffer(),
		trace.threads.length,
		trace.heaps.length,
	);
	return {trace, cells};
}

/** What the command that the page shows prints, run as a shell would. */
function outputOf(shown) {
	const done = spawnSync("bash", ["--norc", "-c", shown.replace(/^xheap/, '"$0"') + " -format json -noIndex", XHEAP], {
		encoding: "utf8",
		maxBuffer: 1 << 28,
	});
	assert.equal(done.status, 0, `${shown}: ${done.stderr}`);
	return done.stdout;
}

const rowsOfCommand = (shown) => JSON.parse(outputOf(shown)).actions[0].rows;

TRACES.slice(0, 2).forEach((name, number) => {
	const file = path.join(FOLDER, name);

	test(`${name}: sums of selections`, async () => {
		const page = await open(`${address}&trace=${number}`),
			{trace, cells} = await boundsOf(number),
			random = randomFrom(number + 1),
			below = (limit) => Math.floor(random() * limit);
		const whole = heap(file, "-totals").totals;
		assert.equal(trace.totals.peak_bytes, whole.peak_bytes);
		assert.match(await text(page, "#sentence"), new RegExp(formatBytes(whole.peak_bytes)), "check 2");
		await page.keyboard.press("p");
		await settle(page);
		assert.match(
			await text(page, "#selection-words"),
			new RegExp(`${formatBytes(whole.peak_bytes)} live in ${formatWhole(whole.peak_count)} blocks`),
			"check 5",
		);
		for (let i = 0; i < WINDOWS; i++) {
			const from = below(cells.bounds.length - 2),
				to = from + 1 + below(cells.bounds.length - 1 - from),
				times = [commandTime(cells.bounds[from] + 1), commandTime(cells.bounds[to])];
			await goTo(page, `#trace=${number}&selection=${cells.bounds[from]}~${cells.bounds[to]}~AIFO%2BAOFI`);
			const shown = await page.$$eval("#classes b", (all) => all.map((one) => one.textContent));
			const wanted = CLASSES.map((code) => heap(file, "-totals", "-window", code, ...times).totals.total_bytes);
			assert.deepEqual(shown, wanted.map(formatBytes), `check 3: ${times}`);
			const both = heap(file, "-totals", "-window", "AIFO+AOFI", ...times).totals;
			assert.equal(both.total_bytes, wanted[1] + wanted[2]);
			assert.match(
				await page.getAttribute("#flame", "aria-label"),
				new RegExp(`: ${formatBytes(both.total_bytes)}\\.`),
				"a set of classes",
			);
			const at = commandTime(Math.max(0, cells.bounds[to])),
				live = heap(file, "-totals", "-at", at).totals;
			await goTo(page, `#trace=${number}&selection=${cells.bounds[to]}`);
			assert.match(
				await text(page, "#selection-words"),
				new RegExp(`${formatBytes(live.peak_bytes)} live in ${formatWhole(live.peak_count)} blocks`),
				`at ${at}`,
			);
		}
		await close(page);
	});

	test(`${name}: frames are those of -tree`, async () => {
		const {trace, cells} = await boundsOf(number),
			model = makeModel(cells, trace);
		for (const [key, choice] of [
			["peak_bytes", {kind: "moment", at: cells.peak}],
			["total_bytes", {kind: "window", from: 0, to: model.last, classes: 3}],
		]) {
			const {hits} = selectCells(model, choice, null),
				layout = layoutFlame(model, {
					...{hits, measure: "bytes", by: "function", isFolded: true, isInverted: false, isMerged: false},
					...{width: 1e9, opened: {has: () => true}, focus: "", order: null, title: ""},
				});
			const found = {},
				wanted = {},
				paths = [""];
			layout.frames.forEach(({frame, parent, value}, i) => {
				if (i) paths[i] = `${paths[parent]}\n${cells.frames[frame].key}`;
				if (i) found[paths[i]] = value;
			});
			const path = [];
			for (const row of heap(file, "-tree", "-top", "1000000").actions[0].rows) {
				path.length = row.depth;
				path.push(`\n${row.frame.image ?? ""}!${row.frame.symbol ?? `+${row.frame.offset}`}`);
				if (row[key]) wanted[path.join("")] = row[key];
			}
			assert.deepEqual(found, wanted, `check 4: ${key}`);
		}
	});

	test(`${name}: rows are those of the command`, async () => {
		const page = await open(`${address}&trace=${number}`),
			{cells} = await boundsOf(number),
			last = cells.bounds.at(-1);
		for (const selection of ["peak", `-1~~AIFI%2BAIFO`, `${cells.bounds[20]}~${cells.bounds[200]}~AIFI%2BAIFO`])
			for (const rows of ["function", "inclusive", "stack", "image"]) {
				await goTo(page, `#trace=${number}&view=table&rows=${rows}&selection=${selection}`);
				const shown = await page.$$eval(".table-row", (all) =>
						all.map((row) => [
							row.querySelector(".bytes").textContent,
							row.querySelectorAll(".column-number")[1].textContent,
						]),
					),
					kind = selection === "peak" ? "peak" : "total";
				const wanted = rowsOfCommand(await page.getAttribute("#command", "title"))
					.map((row) => [row[`${kind}_bytes`], row[`${kind}_count`]])
					.filter(([, count]) => count)
					.map(([bytes, count]) => [formatBytes(bytes), formatCount(count)]);
				// Rows that have nothing of the selection were made in it.
				const sort = (list) =>
					list
						.filter(([, count]) => count !== "0")
						.slice(0, ROWS)
						.map(String)
						.sort();
				assert.deepEqual(sort(shown), sort(wanted), `check 4: ${rows} of ${selection} up to ${last}`);
			}
		await close(page);
	});
});

test("a zoom asks for finer cells; who freed is found", async () => {
	const page = await open(`${address}&trace=0`),
		file = path.join(FOLDER, TRACES[0]);
	const asked = [];
	page.on("request", (request) => asked.push(request.url()));
	await page.focus("#timeline");
	await page.keyboard.press("+");
	const isFiner = () => asked.some((url) => /cells\?.*from=/.test(url));
	for (let i = 0; i < 200 && !isFiner(); i++) await page.waitForTimeout(50);
	const range = JSON.parse(new URLSearchParams((await page.evaluate(() => location.hash)).slice(1)).get("range"));
	await page.waitForTimeout(300);
	await settle(page);
	const box = await page.locator("#timeline").boundingBox();
	await page.mouse.move(box.x + 200, box.y + 60);
	await page.mouse.down();
	await page.mouse.move(box.x + 400, box.y + 60);
	await page.mouse.move(box.x + 600, box.y + 60);
	await page.mouse.up();
	await settle(page);
	const command = await page.getAttribute("#command", "title"),
		[, from, to] = /-window AIFO (\S+) (\S+)/.exec(command);
	const wanted = CLASSES.map((code) => heap(file, "-totals", "-window", code, from, to).totals.total_bytes);
	assert.deepEqual(
		await page.$$eval("#classes b", (all) => all.map((one) => one.textContent)),
		wanted.map(formatBytes),
		`check 9: ${command}, of ${JSON.stringify(range)}`,
	);
	await goTo(page, "#trace=0&view=table&selection=-1~~AIFI");
	await page.click(".table-row");
	await page.waitForFunction(() =>
		/\d %|\d+ blocks/.test(document.querySelector("#panel .freed")?.textContent ?? ""),
	);
	const isOfAll = async () => {
		const [head, selected] = await page.evaluate(() => [
			document.querySelector("#freed .right").textContent,
			document.querySelector("#panel .numbers dd").textContent,
		]);
		assert.equal(head, `of ${selected}`, await page.evaluate(() => location.hash));
	};
	await isOfAll();
	for (const words of [
		"view=table&rows=inclusive&selection=-1~~AIFI+AIFO",
		"view=table&rows=stack",
		"view=table&rows=image&selection=-1~~AIFI+AIFO",
		"view=table&rows=size&selection=-1~~AIFI",
		"selection=-1~~AIFI+AIFO&isInverted=1",
		"selection=-1~~AIFI+AIFO&isInverted=1&isMerged=1&isFolded=0&by=thread",
		"selection=-1~~AIFI+AIFO&isMerged=1",
	]) {
		await goTo(page, `#trace=0&${words.replace("+", "%2B")}`);
		if (words.includes("view=table")) await page.click(".table-row");
		else {
			await page.focus("#flame");
			// The first one opens a chain.
			for (const key of ["ArrowDown", "ArrowDown", "Space", "Space"]) await page.keyboard.press(key);
		}
		await page.waitForSelector("#freed .right:not(:empty)");
		await isOfAll();
	}
	await close(page);
});

test("words of a filter are the server's: the sums are those of the command", async () => {
	const page = await open(address),
		filter = async (words) => {
			await page.fill("#search", words);
			await page.keyboard.press("Enter");
		},
		made = () => page.$$eval("#classes b", (all) => all.slice(0, 2).map((one) => one.textContent));
	await page.keyboard.press("w");
	await settle(page);
	const before = await made();
	await filter("-size 64 128");
	await page.waitForFunction(() => document.querySelector("#filters button"));
	const file = path.join(FOLDER, TRACES[0]),
		classes = CLASSES.slice(0, 2).map((code) =>
			formatBytes(heap(file, "-totals", "-size", "64", "128", "-window", code, "0", "1000s").totals.total_bytes),
		);
	await showsClasses(page, classes);
	assert.match(await text(page, "#command"), / -size 64 128$/);
	const hash = await page.evaluate(() => location.hash);
	const other = await open(`${address}&${hash.slice(1)}`);
	await showsClasses(other, classes);
	await close(other);
	await filter("-size 64");
	await page.waitForFunction(() => /-size takes/.test(document.getElementById("notice").textContent));
	assert.deepEqual(page.faults.splice(0).length, 1, "the browser says that the server refused it");
	assert.equal(await text(page, "#filters"), "-size 64 128 ×", "what is refused changes nothing");
	assert.equal(await page.inputValue("#search"), "-size 64", "what is refused can be mended");
	await filter("-sizes 1 2");
	await page.waitForFunction(() =>
		/-sizes is no filter here.* -window .*-size.*-closed$/.test(document.getElementById("notice").textContent),
	);
	assert.equal(page.faults.splice(0).length, 1);
	for (const [words, said] of [
		["-at", /-at takes a time/],
		["-at 5:6", /-at takes a time/],
		["-range 1ms", /-range takes two times/],
		["-range 2ms 1ms", /the range ends before it begins/],
		["-at 100s", /the trace ends at/],
	]) {
		await filter(words);
		await settle(page);
		assert.match(await text(page, "#notice"), said);
		assert.equal(await page.inputValue("#search"), words);
	}
	assert.deepEqual(await made(), classes);
	await filter("-closed");
	await page.waitForFunction(() => document.querySelectorAll("#filters button").length === 2);
	assert.match(await text(page, "#command"), / -size 64 128 -closed$/);
	for (const selector of ["#filters button >> nth=1", "#filters button"]) {
		await page.click(selector);
		await settle(page);
	}
	await showsClasses(page, before);
	assert.equal(await text(page, "#filters"), "");
	await close(page);
});

test("a moment and a range are typed as for the command, and exact on any time", async () => {
	const page = await open(`${address}&trace=0`),
		file = path.join(FOLDER, TRACES[0]),
		filter = async (words) => {
			await page.fill("#search", words);
			await page.keyboard.press("Enter");
		};
	const {peak_bytes: bytes, peak_count: count} = heap(file, "-totals", "-at", "7654321ns").totals;
	await filter("-at 7654.321");
	await page.waitForFunction(
		(words) => document.getElementById("selection-words").textContent.includes(words),
		`At 7.65\u2009ms ${formatBytes(bytes)} live in ${formatWhole(count)} blocks`,
	);
	assert.match(await text(page, "#command"), /-at 7654321ns$/);
	await filter("-size 16 4096 -range 3333333ns 15.5ms");
	await showsClasses(
		page,
		CLASSES.map((code) =>
			formatBytes(heap(file, "-totals", "-size", "16", "4096", "-window", code, "3333333ns", "15500us").totals.total_bytes),
		),
	);
	assert.match(await text(page, "#command"), /-window AIFI\+AIFO 3333333ns 15500us -size 16 4096$/);
	await close(page);
});

test("a command has the shown numbers, or there is none", async () => {
	const page = await open(`${address}&trace=0`),
		window = "selection=18000000~24000000~AIFO",
		filters = (...list) => `filters=${encodeURIComponent(JSON.stringify(list))}`,
		never = {by: "life", key: "40", hide: false};
	await goTo(page, `#trace=0&${window}&${filters(never)}`);
	await page.waitForFunction(() => / -tree so -window AIFO 18000001ns 24ms$/.test(document.getElementById("command").title));
	const rows = rowsOfCommand(await page.getAttribute("#command", "title")),
		sum = (key) => formatBytes(rows.filter(({depth}) => depth === rows[0].depth).reduce((all, row) => all + row[key], 0));
	assert.notEqual(sum("outstanding_bytes"), sum("total_bytes"), "some were freed behind the window");
	assert.equal(await page.$eval("#classes button:nth-child(2) b", (one) => one.textContent), sum("outstanding_bytes"));
	await goTo(page, `#trace=0&${window}&${filters({by: "image", key: "libstdc++.so.6.0.30", hide: true})}`);
	assert.deepEqual([await text(page, "#command"), await page.isVisible("#copy-command")], ["", false]);
	assert.equal(await text(page, "#lacks"), "no command has these numbers: none can be told without libstdc++.so.6.0.30");
	const alone = await open(`${address}&trace=0&view=compare&other=9,0,peak`);
	assert.deepEqual([await text(alone, "#command"), await alone.isVisible("#copy-command")], ["", false]);
	alone.faults = [];
	await close(alone);
	await close(page);
});

test("blocks one by one: those of the dump, in any order, and all that is known of one", async () => {
	const page = await open(`${address}&trace=0&view=blocks&selection=-1~~AIFI%2BAIFO`),
		file = path.join(FOLDER, TRACES[0]),
		rows = run("dump", file, "-allocations", "-format", "json").trim().split("\n").map((line) => JSON.parse(line)),
		{total_count: count, total_bytes: bytes} = heap(file, "-totals").totals,
		first = () => page.$$eval("#blocks .table-row", (all) => all.map((row) => [...row.querySelectorAll(".column-number")].slice(0, 2).map((cell) => cell.textContent)));
	await page.waitForSelector("#blocks .table-row");
	assert.equal(await text(page, "#blocks-controls"), `${formatWhole(count)} blocks, ${formatBytes(bytes)}`);
	const largest = rows.toSorted((a, b) => b.size - a.size || a.id - b.id).slice(0, ROWS);
	assert.deepEqual((await first()).slice(0, ROWS), largest.map((row) => [formatBytes(row.size), row.address]));
	await page.$eval("#blocks", (box) => (box.scrollTop = box.scrollHeight));
	const least = rows.toSorted((a, b) => b.size - a.size || a.id - b.id).slice(-ROWS);
	await page.waitForFunction(
		(address) => [...document.querySelectorAll("#blocks .table-row:last-child .column-number")][1]?.textContent === address,
		least.at(-1).address,
	);
	assert.deepEqual((await first()).slice(-ROWS), least.map((row) => [formatBytes(row.size), row.address]));
	assert.ok((await page.$$(".table-row")).length <= 60, "few rows are in the document");
	for (let i = 0; i < 2; i++) {
		await page.click("#blocks .sorter >> text=Made");
		await settle(page);
	}
	await page.waitForFunction((words) => document.querySelector("#blocks .table-row .address")?.textContent === words, rows[0].address);
	await page.click("#blocks .table-row");
	await page.waitForSelector("#panel .stack");
	assert.match(await text(page, "#panel"), new RegExp(`^Block.*${rows[0].address}.*size.*lived.*Made by`));
	assert.match(await page.evaluate(() => location.hash), /block=0/);
	await fits(page, "blocks", ["#blocks", "#panel"]);
	await page.keyboard.press("Escape");
	await settle(page);
	assert.doesNotMatch(await text(page, "#panel"), /^Block/);
	await page.keyboard.press("2");
	await page.click("#table .table-row");
	const [selected, blocks] = await page.$$eval("#panel .numbers dd", (all) => [0, 2].map((i) => all[i].textContent));
	await page.click("#panel .button >> text=Its blocks");
	await page.waitForFunction((words) => document.getElementById("blocks-controls").textContent === words, `${formatBlocks(Number(blocks.replaceAll(",", "")))}, ${selected}`);
	assert.match(await text(page, "#lacks"), /: none can be told what is selected$/);
	assert.equal(await page.isVisible("#copy-command"), false);
	const item = (by, key) => `-1~~AIFO&item=${encodeURIComponent(JSON.stringify({kind: "group", by, key}))}`;
	for (const selection of ["peak", "-1~~AIFO", item("inclusive", "server!main"), item("size", "7")]) {
		await goTo(page, `#trace=0&view=blocks&selection=${selection}`);
		assert.equal(await text(page, "#lacks"), "but for the order");
		const shown = await page.getAttribute("#command", "title"),
			dumped = outputOf(shown).trim().split("\n").map((line) => JSON.parse(line)),
			total = formatBytes(dumped.reduce((sum, {size}) => sum + size, 0));
		await page.waitForFunction((words) => document.getElementById("blocks-controls").textContent === words, `${formatWhole(dumped.length)} blocks, ${total}`);
	}
	await close(page);
});

/** In each size and theme: a picture, and nothing that is wider than its place; axe finds nothing serious. */
async function fits(page, name, boxes) {
	for (const [width, height] of [[1280, 800], [1920, 1080], [3840, 2160]])
		for (const colorScheme of ["light", "dark"]) {
			await page.setViewportSize({width, height});
			await page.emulateMedia({colorScheme});
			await settle(page);
			await page.screenshot({path: path.join(PICTURES, `${name}-${width}-${colorScheme}.png`)});
			const wide = await page.evaluate(
				(selectors) =>
					["html", "body", "#tabs-row", ...selectors].filter((selector) => {
						const box = document.querySelector(selector);
						return box.scrollWidth > box.clientWidth || (selector === "html" && box.scrollHeight > box.clientHeight);
					}),
				boxes,
			);
			assert.deepEqual(wide, [], `${name} at ${width}, ${colorScheme}`);
			if (width === 1280) assert.deepEqual(await faultsOf(page), [], `check 23: ${name}, ${colorScheme}`);
		}
	await page.setViewportSize({width: 1280, height: 800});
	await settle(page);
}

test("check 18: the map is that of the command, and a page names its address", async () => {
	const page = await open(`${address}&trace=1&view=map&selection=12000000&words=-size+0+30`);
	await page.waitForSelector("#map-head b");
	const shown = await text(page, "#command"),
		done = spawnSync("bash", ["--norc", "-c", `${shown.replace(/^xheap/, '"$0"')} -format json -noIndex`, XHEAP], {encoding: "utf8"}),
		told = JSON.parse(done.stdout),
		counts = told.fullness.map(({pages}) => formatWhole(pages)).reverse();
	assert.match(shown, /-map -at 12ms -size 0 30$/);
	assert.deepEqual(await page.$$eval("#map-head .colors span", (all) => all.map((one) => one.textContent.split(": ")[1] ?? one.textContent)), [
		...counts,
		" no block so far",
	]);
	const little = told.fullness[3];
	assert.match(
		await text(page, "#map-head"),
		new RegExp(`^${formatBytes(little.pages * told.page_bytes)} are kept by ${formatBytes(little.live_bytes)}: ${counts[1]} pages .* on ${told.keepers[0].pages} of them`),
	);
	assert.match(await text(page, "#selection-words"), new RegExp(`${formatBytes(told.live_bytes)} live in`), "its bytes are those of the moment");
	const sums = await page.$$eval("#panel .freed", (all) => all.map((one) => one.textContent));
	assert.deepEqual(
		sums.map((words) => words.split(", the oldest")[0]),
		told.keeper_stacks.map((row) => `${formatBytes(row.pages * told.page_bytes)} kept by ${formatBytes(row.live_bytes)} in ${formatBlocks(row.live_blocks)}`),
	);
	const box = await page.locator("#map-pages").boundingBox();
	await page.mouse.move(box.x + 4, box.y + 22 + 4);
	await settle(page);
	assert.ok((await text(page, "#tip")).startsWith(`${told.runs[0].address}: `), await text(page, "#tip"));
	await page.mouse.move(0, 0);
	await page.focus("#map-pages");
	// The filter leaves gaps of less than 1 MiB between runs.
	const pages = told.runs.reduce((sum, {pages: count}) => sum + count + 256, 0);
	for (const {address: first, function: keeper} of told.runs) {
		for (let i = 0; i <= pages && !(await text(page, "#live")).startsWith(`${first}: `); i++) await page.keyboard.press("ArrowRight");
		if (!keeper) continue;
		assert.ok((await text(page, "#live")).includes(`most by ${keeper.replace(/^[^!]*!|^[^+]*(?=\+)/, "")},`), `${first}: ${await text(page, "#live")}`);
		if (!keeper.includes("!")) continue;
		await page.keyboard.press("Enter");
		await settle(page);
		// It may be one whose blocks the filter leaves out.
		const address = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
		assert.ok(JSON.parse(address.get("item")).key.includes(keeper.split("!").at(-1)));
		break;
	}
	await page.keyboard.press("Escape");
	for (const by of ["function", "age", "fullness"]) {
		await page.click(`#map-${by}`);
		await settle(page);
		assert.equal(await page.getAttribute(`#map-${by}`, "aria-pressed"), "true");
		await fits(page, `map-${by}`, ["#map-head", "#map-pages", "#panel"]);
	}
	await page.keyboard.press("[");
	await page.waitForFunction((words) => document.getElementById("command").textContent !== words, shown);
	await close(page);
});

test("check 17: sizes by lifetimes are those of single blocks; an area becomes a filter, and removing it restores all", async () => {
	const page = await open(`${address}&trace=0&view=sizes&selection=-1~~AIFI%2BAIFO`),
		file = path.join(FOLDER, TRACES[0]),
		sums = new Map(),
		kinds = () => page.$$eval("#sizes .kind[title]", (all) => all.map((one) => one.title).filter(Boolean)),
		total = () => text(page, "#sizes .kind-total");
	for (const line of run("dump", file, "-allocations", "-format", "json").trim().split("\n")) {
		const row = JSON.parse(line),
			size = row.size ? Math.floor(Math.log2(row.size)) + 1 : 0,
			isFreed = ["free", "realloc", "destroy"].includes(row.end_kind),
			lived = row.lifetime_ns;
		let life = 0;
		while (lifeLimit(life + 1) <= lived) life++;
		const name = `${sizeName(size)}, ${isFreed ? `lived ${lifeName(life)}` : "never freed"}`;
		sums.set(name, (sums.get(name) ?? 0) + row.size);
	}
	assert.deepEqual((await kinds()).sort(), [...sums].filter(([, bytes]) => bytes).map(([name, bytes]) => `${name}: ${formatBytes(bytes)}`).sort());
	assert.equal(await total(), formatBytes(heap(file, "-totals").totals.total_bytes));
	assert.match(await text(page, "#command"), /-frames st -by size$/);
	await fits(page, "sizes", ["#sizes", "#panel"]);
	const before = await kinds(),
		// The cells are made anew with each picture, so a locator may have an old one.
		cell = (row, column) =>
			page.$eval(`[data-place="${row} ${column}"]`, (element) => {
				const box = element.getBoundingClientRect();
				return [box.x + box.width / 2, box.y + box.height / 2];
			}),
		drag = async (from, to) => {
			await page.mouse.move(...(await cell(...from)));
			await page.mouse.down();
			await page.mouse.move(...(await cell(...to)));
			await settle(page);
			assert.equal(await page.isVisible(".kinds-area"), true);
			await page.mouse.up();
		};
	await drag([5, 3], [2, 8]);
	await page.waitForFunction((all) => document.querySelector("#sizes .kind-total").textContent !== all, await (async () => formatBytes(heap(file, "-totals").totals.total_bytes))());
	const shown = await text(page, "#command"),
		words = /-size \d+ \d+ -closed -lifetime \S+ \S+$/.exec(shown)[0].split(" ");
	assert.equal(await total(), formatBytes(heap(file, "-totals", ...words).totals.total_bytes));
	assert.deepEqual(
		(await page.$$eval("#filters .filter", (all) => all.map((one) => one.textContent.replace(" ×", "")))).join(" "),
		words.join(" "),
	);
	while (await page.$("#filters .filter")) {
		await page.click("#filters .filter");
		await settle(page);
	}
	await page.waitForFunction((count) => document.querySelectorAll("#sizes .kind[title*=':']").length === count, before.length);
	assert.deepEqual(await kinds(), before);
	const never = (await page.$$("#sizes .kinds-row:first-child .kind-life")).length - 1;
	await drag([1, never], [4, never - 1]);
	await settle(page);
	assert.match(await text(page, "#filters"), /^-size \d+ \d+ ×never freed ×$/, "freed and never freed are no area");
	await page.keyboard.press("Escape");
	await page.waitForFunction((count) => document.querySelectorAll("#sizes .kind[title*=':']").length === count, before.length);
	await page.focus("#sizes");
	for (const key of ["ArrowDown", "ArrowRight", "Shift+ArrowDown", "Shift+ArrowRight", "Enter"]) await page.keyboard.press(key);
	await page.waitForSelector("#filters .filter");
	assert.match(await text(page, "#filters"), /^-size \d+ \d+ ×-closed ×-lifetime \S+ \S+ ×$/);
	await close(page);
});

const LINES = `#include <stdlib.h>
static void *keep(int n) { return malloc(n); } // <img src=x onerror=broken=1> \u202e
void *make(int n)
{
	char *p = keep(n);
	char *q = keep(2 * n);
	free(n % 3 ? p : NULL);
	return q;
}
int main(void)
{
	for (int i = 0; i < 50; i++)
		make(i + 1);
	make(100000); // ${"long ".repeat(100)}
	return 0;
}
`;

test("source lines have the bytes of heap -lines, and hostile ones are text", async () => {
	const file = path.join(WORK, "lines.c"),
		program = path.join(WORK, "lines"),
		trace = path.join(WORK, "lines.xht");
	writeFileSync(file, LINES);
	assert.equal(spawnSync(process.env.CC ?? "cc", ["-g", "-O0", "-o", program, file]).status, 0);
	run("record", "-q", "-o", trace, program);
	const [own, url] = await serve(trace),
		item = encodeURIComponent(JSON.stringify({kind: "group", by: "function", key: "lines!keep"})),
		page = await open(`${url}&view=table&selection=-1~~AIFI%2BAIFO&item=${item}`),
		wanted = new Map();
	for (const row of heap(trace, "-stacks", "-lines", "-noDefaultCull").actions[0].rows)
		for (const line of new Set(row.stack.filter((frame) => frame.file === file).map((frame) => frame.line)))
			wanted.set(line, (wanted.get(line) ?? 0) + row.total_bytes);
	for (const [place, middle] of [
		["lines.c:2", 2],
		["lines.c", 6],
	]) {
		await page.click(`button.stack-place >> text=/${place}$/ >> nth=0`);
		await page.waitForFunction((number) => document.querySelector(".source-line.chosen .faint")?.textContent === String(number), middle);
		const rows = await page.$$eval(".source-line", (all) => all.map((row) => [".value", ".faint", "code"].map((part) => row.querySelector(part).textContent)));
		assert.ok(rows.length >= 9);
		for (const [bytes, number, code] of rows) {
			assert.equal(bytes, wanted.has(Number(number)) ? formatBytes(wanted.get(Number(number))) : "", number);
			const told = LINES.split("\n")[number - 1].replaceAll("\t", "  ").replace("\u202e", "\ufffd");
			assert.ok(code === told || (code.endsWith("…") && told.startsWith(code.slice(0, -1))), code);
		}
		assert.equal((await page.$$(".source")).length, 1, "one at a time");
	}
	assert.equal(await page.evaluate(() => "broken" in window), false);
	await fits(page, "source", ["#panel", ".source"]);
	await close(page);
	own.kill();
});

test("the page of two traces begins with what they differ by", async () => {
	for (const [other, selection] of [
		["c.xht", "-1~~AIFO"],
		["libcxx.xht", null],
	]) {
		const [own, url] = await serve(...["c.xht", other].map((name) => path.join(FOLDER, name))),
			page = await open(url),
			state = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
		assert.equal(state.get("view"), "compare");
		assert.equal(state.get("selection"), selection);
		await page.close();
		own.kill();
	}
});

test("check 16: what is compared is what xheap diff says, row by row", async () => {
	const page = await open(`${address}&trace=0`),
		[file] = TRACES.map((name) => path.join(FOLDER, name)),
		{cells} = await boundsOf(0),
		{bounds} = cells,
		name = {function: "-frames", inclusive: "-frames", stack: "-stacks", image: "-image"};
	await page.setViewportSize({width: 1280, height: 4000});
	const window = (from, to, classes) => `${bounds[from]}~${bounds[to]}~${classes}`,
		at = (i) => `@=${commandTime(bounds[i])}`,
		range = (i, j) => `@${commandTime(bounds[i] + 1)}..${commandTime(bounds[j])}`;
	for (const [other, selection, a, b, key, note = ""] of [
		["2,0,peak", "peak", [2, ""], [0, ""], "peak"],
		["0,0,-1~~AIFI+AIFO", "-1~~AIFI+AIFO", [0, ""], [0, ""], "total"],
		["2,1,-1~~AIFI+AIFO", "-1~~AIFI+AIFO", [0, ""], [2, ""], "total"],
		[`0,0,${bounds[210]}`, `${bounds[250]}`, [0, at(210)], [0, at(250)], "peak"],
		["3,1,-1~~AIFI+AIFO", "-1~~AIFI+AIFO", [0, ""], [3, ""], "total", "Matched as one program: server, words."],
		["", window(180, 200, "AIFO"), [0, range(180, 200)], [1, range(180, 200)], "outstanding", "A and B are of different programs: only frames of common libraries match."],
		[`0,0,${window(180, 200, "AIFO")}`, window(200, 240, "AIFO"), [0, range(180, 200)], [0, range(200, 240)], "outstanding"],
	])
		for (const rows of ["function", "inclusive", "stack", "image"]) {
			const words = new URLSearchParams({trace: 0, view: "compare", rows, other, selection});
			await goTo(page, `#${words}`);
			await page.waitForSelector("#compare:not(.empty)");
			assert.equal((await page.$$eval("#compare-head .faint", (all) => all.map((one) => one.textContent))).join(""), note);
			const sides = [a, b].map(([trace, suffix]) => path.join(FOLDER, TRACES[trace]) + suffix),
				more = rows === "inclusive" ? ["-inclusive"] : [];
			const wanted = JSON.parse(run("diff", ...sides, name[rows], ...more, "-top", "100000", "-format", "json", "-noIndex")).actions[0].rows;
			const shown = await page.$$eval("#compare .table-row", (all) => all.map((row) => [...row.querySelectorAll(".column-number")].slice(0, 3).map((cell) => cell.textContent)));
			const sums = wanted
				.map((row) => ["a", "b"].map((side) => row[side][`${key}_bytes`]))
				.filter(([first, second]) => first !== second)
				.map(([first, second]) => [formatChange(second - first), formatBytes(first), formatBytes(second)]);
			const changed = shown.filter(([change]) => change !== "0\u2009B").map(String);
			assert.ok(changed.length > 0 || other === "0,0,-1~~AIFI+AIFO", "something changed");
			assert.deepEqual(changed.sort(), sums.map(String).sort(), `${rows} ${words}`);
			const command = await page.getAttribute("#command", "title");
			assert.deepEqual(rowsOfCommand(command).length, wanted.length, command);
			const grown = /[+−][\d.]+\u2009%$/.exec(await text(page, "#compare-head > .more, #compare-head > .less"))?.[0] ?? "",
				said = run("diff", ...sides, "-totals", "-noIndex").split("\n").find((line) => line.includes(TITLES[key])) ?? "",
				percent = /[+-][\d.]+ %/.exec(said)?.[0] ?? "";
			assert.equal(grown.replace("−", "-").replace("\u2009", " "), percent, `${command}: the share that the total grew by`);
		}
	await page.keyboard.press("p");
	await page.keyboard.press("m");
	assert.match(await page.evaluate(() => location.hash), /view=compare.*other=0%2C0%2Cpeak/);
	assert.match(await text(page, "#compare-head"), /^Alibstdcxx.xht, live at [^B]*, the peak: .*B.*0.B/);
	await page.click("#compare .table-row");
	await fits(page, "compare", ["#compare-head", "#compare-table", "#panel"]);
	await page.click("#compare-head .button:last-child");
	await settle(page);
	assert.match(await page.evaluate(() => location.hash), /other=0%2C1%2Cpeak/);
	assert.ok(file);
	await close(page);
});

test("several runs of each side: the means and spreads of xheap diff", async () => {
	const files = TRACES.map((name) => path.join(FOLDER, name)),
		[own, url] = await serve(files[0], files[2], "--", files[2], files[1], files[2]),
		page = await open(`${url}&view=compare`),
		name = {function: "-frames", inclusive: "-frames", stack: "-stacks", image: "-image"};
	await page.setViewportSize({width: 1280, height: 14000});
	for (const [selection, key] of [
		["peak", "peak"],
		["-1~~AIFI+AIFO", "total"],
		["-1~~AIFO", "outstanding"],
	])
		for (const [rows, trace] of [["function", 0], ["inclusive", 1], ["stack", 3], ["image", 4]]) {
			await page.goto(`${url.split("#")[0]}?${rows}${key}#${new URLSearchParams({trace, view: "compare", rows, selection})}`);
			await page.waitForSelector("#compare:not(.empty) .table-row");
			const command = await page.getAttribute("#command", "title"),
				told = JSON.parse(spawnSync("bash", ["--norc", "-c", `${command.replace(/^xheap/, '"$0"')} -top 100000 -format json -noIndex`, XHEAP], {encoding: "utf8", maxBuffer: 1 << 28}).stdout),
				wanted = told.actions[0].rows;
			assert.match(command, /^xheap diff \S+ \S+ -- \S+ \S+ \S+ -/);
			assert.ok(command.includes(`${name[rows]} `), command);
			const shown = await page.$$eval("#compare .table-row", (all) => all.map((row) => [...[...row.querySelectorAll(".column-number")].slice(0, 3), row.querySelector(".column-change")].map((cell) => cell.textContent)));
			const sums = wanted
				.map((row) => [...["a", "b"].map((side) => row[side][`${key}_bytes`]), row.in_spread.includes(`${key}_bytes`) ? "in spread" : ""])
				.filter(([first, second]) => first !== second)
				.map(([first, second, spread]) => [formatChange(second - first), formatBytes(first), formatBytes(second), spread]);
			const changed = shown.filter(([change]) => change !== "0\u2009B").map(String);
			assert.ok(changed.length > 0);
			assert.deepEqual(changed.sort(), sums.filter(([change]) => change !== "0\u2009B").map(String).sort(), command);
		}
	await fits(page, "compare-runs", ["#compare-head", "#compare-table", "#panel"]);
	assert.match(await text(page, "#compare-head"), /^Amean of 2 runs, .*: [\d.]+.[KM]iB ± [\d.]+.[KM]iBBmean of 3 runs, .*± /);
	await page.click("#compare-head .button:last-child");
	await page.waitForFunction(() => /^Amean of 3 runs.*Bmean of 2 runs/.test(document.getElementById("compare-head").textContent));
	assert.match(await page.getAttribute("#command", "title"), /^xheap diff \S+ \S+ \S+ -- \S+ \S+ -image/);
	await close(page);
	own.kill();
});

test("the self-contained file has the same numbers, and asks for nothing", async () => {
	const file = path.join(FOLDER, TRACES[0]),
		html = path.join(WORK, "view.html");
	run("view", "--html", html, file);
	const page = await open(`file://${html}`),
		{peak_bytes: bytes, peak_count: count} = heap(file, "-totals").totals;
	await page.keyboard.press("p");
	await settle(page);
	assert.match(
		await text(page, "#selection-words"),
		new RegExp(`${formatBytes(bytes)} live in ${formatWhole(count)} blocks`),
	);
	await close(page);
});

test("check 25: a server that has ended is said", async () => {
	const page = await open(`${address}&trace=0`);
	server.removeAllListeners("exit");
	const gone = new Promise((done) => server.on("exit", done));
	server.kill();
	await gone;
	await page.focus("#timeline");
	await page.keyboard.press("+");
	await page.waitForSelector("#ended:not([hidden])");
	assert.match(await text(page, "#ended"), /the server has ended; run xheap view libstdcxx\.xht processes\.xht libcxx\.xht c\.xht again/);
	await page.keyboard.press("w");
	await settle(page);
	assert.match(await text(page, "#selection-words"), /Whole run/, "what is loaded goes on working");
	await page.keyboard.press("3");
	await page.waitForSelector("#blocks .table-body p");
	assert.equal(await text(page, "#blocks .table-body"), "No single blocks: the server has ended");
	await page.context().close();
});
