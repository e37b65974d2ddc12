#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The page of a real session of a real program: it goes on by itself, its numbers are those of `xheap heap` for the same moment, many tabs are one reader, and it says what becomes of the session.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {once} from "node:events";
import {readFileSync, readdirSync} from "node:fs";
import {connect} from "node:net";
import path from "node:path";
import {createInterface} from "node:readline";
import test, {after, before} from "node:test";
import {formatBytes, formatWhole} from "../../viewer/format.js";
import {faultsOf} from "./axe.mjs";
import {FOLDER, launchBrowser, SOURCE} from "./packages.mjs";

const BUILD = path.dirname(FOLDER),
	XHEAP = process.env.XHEAP ?? path.join(BUILD, "xheap"),
	WORK = process.env.TMPDIR ?? "/tmp",
	OBEYS = path.join(BUILD, "tests/viewer/obeys");
let browser;
before(async () => (browser = await launchBrowser()));
/** What runs beside the test, however that ends. */
const children = [];
after(async () => {
	for (const child of children) child.kill("SIGKILL");
	await browser.close();
});

function begun(...words) {
	children.push(spawn(...words));
	return children.at(-1);
}

function run(...words) {
	const done = spawnSync(XHEAP, words, {encoding: "utf8", cwd: WORK, maxBuffer: 1 << 28});
	assert.equal(done.status, 0, `${words.join(" ")}: ${done.stderr}`);
	return done.stdout;
}

/** The program, which does what it is told. */
class Program {
	constructor(command, ...words) {
		this.process = begun(command, words, {cwd: WORK, stdio: ["pipe", "pipe", "ignore"]});
		this.lines = createInterface({input: this.process.stdout})[Symbol.asyncIterator]();
	}
	async line() {
		return (await this.lines.next()).value;
	}
	async grow(count) {
		this.process.stdin.write(`${count}\n`);
		assert.equal(await this.line(), "done");
	}
	end() {
		this.process.stdin.end();
		return new Promise((done) => this.process.on("exit", done));
	}
}

/** The server, and its address. */
async function serve(...words) {
	const server = begun(XHEAP, ["view", "--no-open", ...words], {cwd: WORK, stdio: ["ignore", "pipe", "inherit"]});
	server.address = await new Promise((done, failed) => {
		let said = "";
		server.stdout.on("data", (text) => {
			said += text;
			const found = /http:\/\/\S+/.exec(said);
			if (found) done(found[0]);
		});
		server.on("exit", (status) => failed(new Error(`the server ended with ${status}: ${said}`)));
	});
	return server;
}

/** A program whose session has this name, and the server of its page. */
async function begin(name) {
	const program = new Program(OBEYS);
	assert.equal(await program.line(), "ready");
	await program.grow(100);
	run("start", name, "-p", String(program.process.pid), "-o", `${name}.xht`);
	return {program, name, file: path.join(WORK, `${name}.xht`), server: await serve("--session", name)};
}

async function open(address, context) {
	const page = await (context ?? (await browser.newContext({viewport: {width: 1280, height: 800}}))).newPage();
	page.faults = [];
	/** Requests for pictures that wait. */
	page.reading = 0;
	page.on("pageerror", (error) => page.faults.push(error.stack));
	page.on("request", (request) => (page.reading += request.url().includes("live?")));
	for (const end of ["requestfinished", "requestfailed"])
		page.on(end, (request) => (page.reading -= request.url().includes("live?")));
	await page.goto(address);
	await page.waitForFunction(() => !document.body.classList.contains("waiting"));
	return page;
}

const text = (page, selector) => page.textContent(selector);
/** Waits until an element has such words. */
const says = (page, selector, words) =>
	page.waitForFunction(
		([where, pattern]) => new RegExp(pattern).test(document.querySelector(where).textContent),
		[selector, words],
		{timeout: 30_000},
	);
const loggerOf = (file) =>
	readdirSync("/proc")
		.filter((name) => /^\d+$/.test(name))
		.find((pid) => {
			try {
				const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
				return words[0].endsWith("xheap") && words.includes(path.basename(file)) && words.includes("start");
			} catch {
				return false;
			}
		});

async function close(page) {
	assert.deepEqual(page.faults, []);
	await page.close();
}

test("a session goes on, holds, and becomes its trace", async () => {
	const {program, name, file, server} = await begin("goes"),
		page = await open(server.address);
	await says(page, "#recording-words", "Session goes is recorded, as of");
	await program.grow(5000);
	await says(page, "#selection-words", "live in 5,100 blocks");
	// Grows stays on while pictures follow each other.
	await page.keyboard.press("g");
	const picture = await text(page, "#recording-words");
	await program.grow(-1000);
	await page.waitForFunction((before) => document.querySelector("#recording-words").textContent !== before, picture);
	assert.equal(await page.getAttribute("#presets button:nth-child(3)", "aria-pressed"), "true");
	await page.keyboard.press("1");
	await page.keyboard.press("p");
	await says(page, "#selection-words", "live in 4,100 blocks");

	await page.click("#hold");
	await says(page, "#recording-words", "held");
	const held = await text(page, "#selection-words");
	await program.grow(7000);
	await page.click("#flush");
	const [origin, token] = server.address.split("#token="),
		headers = {"X-Xheap-Token": token};
	for (let seen = 0, bytes = ""; !bytes.includes('"total_count": 12000'); ) {
		const answer = await fetch(`${origin}live?trace=0&seen=${seen}`, {headers});
		bytes = await answer.text();
		seen = Number(/"number": (\d+)/.exec(bytes)?.[1] ?? seen);
	}
	assert.equal(await text(page, "#selection-words"), held, "a held picture stays");
	await page.click("#hold");
	await says(page, "#selection-words", "live in 11,100 blocks");

	// Grows: what was made lately, and is still there.
	await page.keyboard.press("g");
	await says(page, "#selection-words", " to ");
	assert.match(await page.evaluate(() => location.hash), /selection=\d+%7E%7EAIFO/, "its end is that of the recording");
	await page.keyboard.press("3");
	await says(page, "#blocks-controls", "Hold the picture");
	for (const colorScheme of ["light", "dark"]) {
		await page.emulateMedia({colorScheme});
		assert.deepEqual(await faultsOf(page), [], `while it is recorded, ${colorScheme}`);
	}
	await page.keyboard.press("1");
	await page.keyboard.press("p");
	await says(page, "#selection-words", "live in 11,100 blocks");

	// The last picture of the recording, as the command tells it for that moment.
	const shown = await text(page, "#selection-words"),
		command = await text(page, "#command"),
		at = /-at (\S+)/.exec(command)[1];
	run("stop", name);
	await says(page, "#recording-words", "Session goes has ended");
	await page.waitForSelector("#hold", {state: "hidden"});
	const {totals} = JSON.parse(run("heap", file, "-totals", "-at", at, "-noIndex", "-format", "json"));
	const earlier = JSON.parse(run("heap", file, "-totals", "-noIndex", "-format", "json")).totals;
	assert.equal(earlier.total_count, 12000, "the 100 blocks from before are in no total");
	assert.match(
		shown,
		new RegExp(`${formatBytes(totals.outstanding_bytes)} live in ${formatWhole(totals.outstanding_count)} blocks`),
	);
	await says(page, "#sentence", "At most");
	// Now is the end of the trace, which is not its peak.
	await says(page, "#selection-words", "^At \\d.* live in 11,100 blocks");
	assert.match(await text(page, "#legend"), /before the trace/);
	await page.keyboard.press("3");
	await says(page, "#blocks-controls", "blocks, ");
	await close(page);
	server.kill();
	await program.end();
});

test("a held picture is a trace: findings, finer times, single blocks", async () => {
	const {program, name, file, server} = await begin("whole"),
		page = await open(server.address);
	await says(page, "#panel", "Hold the picture to see this");
	await program.grow(5000);
	await says(page, "#selection-words", "live in 5,100 blocks");
	await page.click("#hold");
	await says(page, "#panel", "obeys!main (has|holds) \\d+ % of the (peak|bytes that are never freed)");
	await says(page, "#sentence", "is still there");
	await program.grow(-5000);
	await page.click("#flush");
	assert.match(await text(page, "#selection-words"), /live in 5,100 blocks/);
	const at = /-at (\S+)/.exec(await text(page, "#command"))[1],
		totals = () => JSON.parse(run("heap", file, "-totals", "-at", at, "-noIndex", "-format", "json")).totals;
	assert.equal(totals().outstanding_count, 5000, "and 100 from before");

	await page.keyboard.press("3");
	await says(page, "#blocks-controls", "5,100 blocks, ");
	await page.click("#blocks .table-row >> nth=0");
	await says(page, "#panel", "not freed");
	for (const colorScheme of ["light", "dark"]) {
		await page.emulateMedia({colorScheme});
		assert.deepEqual(await faultsOf(page), [], `held, ${colorScheme}`);
	}
	const asked = page.waitForResponse((answer) => /cells\?.*from=.*held=\d+/.test(answer.url()));
	await page.focus("#timeline");
	await page.keyboard.press("+");
	const answer = await asked,
		held = Number(/held=(\d+)/.exec(answer.url())[1]),
		[origin, token] = server.address.split("#token="),
		statusOf = async (time) =>
			(await fetch(`${origin}blocks?trace=0&held=${time}`, {headers: {"X-Xheap-Token": token}})).status;
	assert.equal(answer.status(), 200);
	assert.deepEqual([await statusOf(held), await statusOf(held + 1e12), await statusOf(-1)], [200, 422, 400]);

	await page.click("#hold");
	await says(page, "#selection-words", "live in 100 blocks");
	await says(page, "#panel", "Hold the picture to see this");
	// Another moment, and again: what is asked is as of then.
	await page.click("#hold");
	await says(page, "#blocks-controls", "^100 blocks, ");
	await page.click("#hold");
	await says(page, "#panel", "Hold the picture to see this");
	// A large trace takes its time.
	let read;
	const isRead = new Promise((done) => (read = done));
	await page.route(/\/trace\?/, async (route) => {
		await isRead;
		await route.continue();
	});
	run("stop", name);
	await says(page, "#recording-words", "has ended");
	await says(page, "#panel", "its trace is being read");
	await says(page, "#blocks-controls", "its trace is being read");
	read();
	await says(page, "#sentence", "is still there");
	// What is live at the end is a finding of runs that are too short for growth, and this one need not be.
	await says(page, "#panel", "obeys!main (has|holds) \\d+ % of the (peak|bytes that are live at the end)");
	assert.equal(await statusOf(held), 410);
	await close(page);
	server.kill();
	await program.end();
});

test("ten tabs are one reader, and each goes on", async () => {
	const {program, name, server} = await begin("tabs"),
		context = await browser.newContext({viewport: {width: 800, height: 600}}),
		pages = [];
	for (let i = 0; i < 10; i++) pages.push(await open(server.address, context));
	await program.grow(4000);
	for (const page of pages) await says(page, "#selection-words", "live in 4,100 blocks");
	assert.equal(
		pages.reduce((sum, page) => sum + page.reading, 0),
		1,
		"one request waits for pictures",
	);
	// The reader goes: another tab reads.
	const reader = pages.find((page) => page.reading);
	pages.splice(pages.indexOf(reader), 1);
	await close(reader);
	await program.grow(-2000);
	for (const page of pages) await says(page, "#selection-words", "live in 2,100 blocks");
	run("stop", name);
	for (const page of pages) await says(page, "#recording-words", "has ended");
	for (const page of pages) await close(page);
	server.kill();
	await program.end();
});

test("a hundred readers get one picture, and who does not read delays nobody", async () => {
	const {program, name, server} = await begin("many"),
		[origin, token] = server.address.split("#token="),
		headers = {"X-Xheap-Token": token};
	const ask = async (seen) => {
		const answer = await fetch(`${origin}live?trace=0&seen=${seen}`, {headers});
		return answer.status === 200 ? Number(/"number": (\d+)/.exec(await answer.text())[1]) : 0;
	};
	await program.grow(20000);
	let seen = 0;
	while (!seen) seen = await ask(0);
	const {hostname, port} = new URL(origin),
		idle = connect(port, hostname);
	idle.pause();
	for (let i = 0; i < 50; i++)
		idle.write(`GET /live?trace=0&seen=0 HTTP/1.1\r\nHost: ${hostname}:${port}\r\nX-Xheap-Token: ${token}\r\n\r\n`);
	const many = Array.from({length: 100}, () => ask(seen));
	await program.grow(1000);
	const numbers = await Promise.all(many);
	assert.ok(numbers[0] > seen);
	assert.ok(numbers.every((number) => number === numbers[0]));
	idle.destroy();
	run("stop", name);
	server.kill();
	await program.end();
});

test("a logger that stands still, dies, and is recovered", async () => {
	const {program, name, file, server} = await begin("lost"),
		page = await open(server.address);
	await program.grow(3000);
	await says(page, "#selection-words", "live in 3,100 blocks");
	const logger = Number(loggerOf(file));
	process.kill(logger, "SIGSTOP");
	await says(page, "#recording-words", "does not answer");
	process.kill(logger, "SIGCONT");
	await says(page, "#recording-words", "is recorded");
	process.kill(logger, "SIGKILL");
	await says(page, "#recording-words", "has died; xheap recover");
	assert.match(await text(page, "#selection-words"), /live in 3,100 blocks/, "what is known stays");
	run("recover", file);
	await says(page, "#recording-words", "was recovered");
	await says(page, "#sentence", "At most");
	await close(page);
	server.kill();
	await program.end();
});

test("a file that is being written goes on", async () => {
	const file = path.join(WORK, "file.xht"),
		program = new Program(XHEAP, "record", "--quiet", "-o", file, OBEYS);
	assert.equal(await program.line(), "ready");
	await program.grow(2000);
	const server = await serve(file),
		page = await open(server.address);
	await says(page, "#recording-words", "This trace is recorded");
	await program.grow(2000);
	await says(page, "#selection-words", "live in 4,\\d+ blocks");
	await program.end();
	await says(page, "#recording-words", "This trace has ended");
	await says(page, "#sentence", "At most");
	await close(page);
	server.kill();
});

test("what cannot be followed is said", async () => {
	const program = new Program(OBEYS);
	await program.line();
	run("start", "flight", "--file-mode", "flight", "-p", String(program.process.pid), "-o", "flight.xht");
	await program.grow(10);
	const server = begun(XHEAP, ["view", "--no-open", "--session", "flight"], {cwd: WORK});
	const [said] = await once(createInterface({input: server.stderr}), "line");
	assert.match(said, /session flight is shown as it is now: its trace is not one file that only grows/);
	server.kill();
	run("stop", "flight");
	await program.end();
	const none = spawnSync(XHEAP, ["view", "--session", "nobody"], {encoding: "utf8", cwd: WORK});
	assert.equal(none.status, 2);
	assert.match(none.stderr, /there is no session nobody/);
	if (process.getuid() === 0) {
		run("start", "roots", "-o", "roots.xht");
		const words = ["--reuid=nobody", "--clear-groups", XHEAP, "view", "--session", "roots"],
			other = spawnSync("setpriv", words, {encoding: "utf8"});
		assert.equal(other.status, 2);
		assert.match(other.stderr, /there is no session roots/, "it is another user's");
		run("stop", "roots");
	}
	const both = spawnSync(XHEAP, ["view", "--session", "nobody", "a.xht"], {encoding: "utf8", cwd: WORK});
	assert.equal(both.status, 2);
});
